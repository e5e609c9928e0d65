"""The Payaza protocol: no server call starts a charge; launch parameters go to the browser SDK. Money is naira."""

from pathlib import Path

from payagg.adapters.providers.spec import Loaded, ProviderSpec
from payagg.application.ports.providers import Branding
from payagg.domain.errors import ErrorCode


def _load() -> Loaded:
    from payagg.adapters.providers.provider_b.client import Payaza
    from payagg.adapters.providers.provider_b.lists import PayazaLists

    return Payaza, PayazaLists


PROVIDER_B = ProviderSpec(
    "provider_b",
    "provider_b",
    Branding("Payaza", "Card or bank transfer", Path(__file__).with_name("logo.png")),
    _load,
    alias=ErrorCode.INVALID_WEBHOOK_SIGNATURE,
    sdk_url="https://checkout-v2.payaza.africa/js/v1/bundle.js",
)
