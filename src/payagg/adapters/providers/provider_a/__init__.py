"""The Paystack protocol: a server call starts a charge and returns the page where the payer pays. Money is kobo."""

from pathlib import Path

from payagg.adapters.providers.spec import Loaded, ProviderSpec
from payagg.application.ports.providers import Branding
from payagg.domain.errors import ErrorCode


def _load() -> Loaded:
    from payagg.adapters.providers.provider_a.client import Paystack
    from payagg.adapters.providers.provider_a.lists import PaystackLists

    return Paystack, PaystackLists


PROVIDER_A = ProviderSpec(
    "provider_a",
    "provider_a",
    Branding("Paystack", "Card, bank transfer or USSD", Path(__file__).with_name("logo.png")),
    _load,
    refuses_malformed=True,
    alias=ErrorCode.PROVIDER_NOT_CONFIGURED,
)
