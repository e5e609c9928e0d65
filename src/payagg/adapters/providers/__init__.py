"""The list of providers: a new one is one folder and one line here. Nothing outside its folder names it."""

from payagg.adapters.providers.provider_a import PROVIDER_A
from payagg.adapters.providers.provider_b import PROVIDER_B
from payagg.adapters.providers.spec import ProviderSpec

PROVIDERS: tuple[ProviderSpec, ...] = (
    PROVIDER_A,
    PROVIDER_B,
)
