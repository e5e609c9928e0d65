"""Payaza's launch parameters, carried in the fragment of our own page: browsers never send a fragment anywhere."""

import base64
import re
from decimal import Decimal

import msgspec

from payagg.adapters.providers.adapter import value
from payagg.adapters.providers.payer_defaults import alias, names_of, phone_of
from payagg.adapters.providers.values import naira_text
from payagg.domain.attempt import Charge
from payagg.domain.values import Environment

# Left out, the mode means Test, even with a live key.
MODES = {Environment.SANDBOX: "Test", Environment.LIVE: "Live"}
# The language of the SDK's own pattern, without its ambiguity (as written there it backtracks without end). It refuses
# many good addresses (a plus sign, an ending of more than three letters), and then the popup never opens; such a payer
# gets an alias instead.
SDK_EMAIL = re.compile(r"\w+(?:[.-]\w+)*@\w+(?:[.-]\w+)*\.\w{2,3}", re.ASCII)
_WINDOW_MINUTES = 60  # a virtual account must not outlive our checkout window
# A number, not a string, and exactly the naira of the integer kobo.
_encoder = msgspec.json.Encoder(decimal_format="number")


def launch_parameters(charge: Charge) -> bytes:
    """The JSON for `PayazaCheckout.setup`; holds the public key and no secret."""
    first_name, last_name = names_of(charge.customer_name)
    email = charge.customer_email or ""
    return _encoder.encode(
        {
            "merchant_key": value(charge.credentials, charge.environment, "PublicKey"),
            "connection_mode": MODES[charge.environment],
            "checkout_amount": Decimal(naira_text(charge.amount)),
            "currency_code": charge.currency,
            "email_address": email if SDK_EMAIL.fullmatch(email) else alias(charge.reference),
            "first_name": first_name,
            "last_name": last_name,
            "phone_number": phone_of(charge.customer_phone),
            "transaction_reference": charge.reference,
            "virtual_account_configuration": {"expires_in_minutes": _WINDOW_MINUTES},
        }
    )


def launch_url(charge: Charge) -> str:
    """Our launch page with the parameters as base64url after the `#`."""
    encoded = base64.urlsafe_b64encode(launch_parameters(charge)).rstrip(b"=").decode()
    return f"{charge.checkout_url}/launch#{encoded}"
