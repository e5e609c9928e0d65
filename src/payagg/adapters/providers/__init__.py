"""The registry: which adapter serves which slug. A new provider is one folder and one line here."""

from payagg.adapters.providers.provider_a import Paystack
from payagg.adapters.providers.provider_a.lists import PaystackLists
from payagg.adapters.providers.provider_b import Payaza
from payagg.adapters.providers.provider_b.lists import PayazaLists
from payagg.adapters.providers.sandbox import Simulator
from payagg.adapters.providers.transport import CALL_SECONDS, Transport
from payagg.application.ports import Provider, ProviderLists


def providers_of(
    slug_a: str, slug_b: str, *, allow_loopback: bool, deadline: float = CALL_SECONDS
) -> dict[str, Provider]:
    """Every provider by slug, the simulator included; `deadline` is seconds for one call."""
    transport = Transport(allow_loopback, deadline)
    every: tuple[Provider, ...] = (Simulator(), Paystack(slug_a, transport), Payaza(slug_b, transport))
    return {provider.slug: provider for provider in every}


def lists_of(
    slug_a: str, slug_b: str, *, allow_loopback: bool, deadline: float = CALL_SECONDS
) -> dict[str, ProviderLists]:
    """What can be asked for at once of the providers that have lists, by slug."""
    transport = Transport(allow_loopback, deadline)
    return {slug_a: PaystackLists(transport), slug_b: PayazaLists(transport)}
