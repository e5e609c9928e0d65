"""The Paystack protocol: a server call starts a charge and returns the page where the payer pays. Money is kobo."""

from functools import partial

from payagg.adapters.providers.branding import GROUND, INK, LIGHT, Canvas, png
from payagg.adapters.providers.spec import Loaded, ProviderSpec
from payagg.application.ports.providers import Branding
from payagg.domain.errors import ErrorCode


def _card(draw: Canvas, unit: int) -> None:
    draw.rounded_rectangle((14 * unit, 24 * unit, 66 * unit, 56 * unit), 5 * unit, fill=INK)
    draw.rectangle((14 * unit, 31 * unit, 66 * unit, 37 * unit), fill=GROUND)
    draw.rounded_rectangle((20 * unit, 45 * unit, 34 * unit, 49 * unit), 2 * unit, fill=LIGHT)


def _load() -> Loaded:
    from payagg.adapters.providers.provider_a.client import Paystack
    from payagg.adapters.providers.provider_a.lists import PaystackLists

    return Paystack, PaystackLists


PROVIDER_A = ProviderSpec(
    "provider_a",
    "provider_a",
    Branding("Paystack", "Card, bank transfer or USSD", partial(png, _card)),
    _load,
    refuses_malformed=True,
    alias=ErrorCode.PROVIDER_NOT_CONFIGURED,
)
