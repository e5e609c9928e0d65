"""The Payaza protocol: no server call starts a charge; launch parameters go to the browser SDK. Money is naira."""

from functools import partial

from payagg.adapters.providers.branding import INK, Canvas, png
from payagg.adapters.providers.spec import Loaded, ProviderSpec
from payagg.application.ports.providers import Branding
from payagg.domain.errors import ErrorCode


def _transfer(draw: Canvas, unit: int) -> None:
    for y, start, tip in ((32, 18, 62), (48, 62, 18)):
        back = tip - 12 if tip > start else tip + 12
        draw.line((start * unit, y * unit, back * unit, y * unit), fill=INK, width=5 * unit)
        draw.polygon((tip * unit, y * unit, back * unit, (y - 8) * unit, back * unit, (y + 8) * unit), fill=INK)


def _load() -> Loaded:
    from payagg.adapters.providers.provider_b.client import Payaza
    from payagg.adapters.providers.provider_b.lists import PayazaLists

    return Payaza, PayazaLists


PROVIDER_B = ProviderSpec(
    "provider_b",
    "provider_b",
    Branding("Payaza", "Card or bank transfer", partial(png, _transfer)),
    _load,
    alias=ErrorCode.INVALID_WEBHOOK_SIGNATURE,
    sdk_url="https://checkout-v2.payaza.africa/js/v1/bundle.js",
)
