"""The providers of a deployment by slug, ready to be called; `deadline` is seconds for one call."""

from collections.abc import Iterable

from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.sandbox import Simulator
from payagg.adapters.providers.spec import ProviderSpec
from payagg.adapters.providers.transport import CALL_SECONDS, Transport
from payagg.adapters.webhooks.resolver import Resolver
from payagg.application.ports.providers import Provider, ProviderLists


def providers_of(
    specs: Iterable[ProviderSpec] = PROVIDERS, *, allow_loopback: bool, deadline: float = CALL_SECONDS
) -> dict[str, Provider]:
    """Every provider, the simulator included."""
    transport, simulator = Transport(allow_loopback, deadline, Resolver()), Simulator()
    return {simulator.slug: simulator, **{spec.slug: spec.load()[0](spec.slug, transport) for spec in specs}}


def lists_of(
    specs: Iterable[ProviderSpec] = PROVIDERS, *, allow_loopback: bool, deadline: float = CALL_SECONDS
) -> dict[str, ProviderLists]:
    """Of those that have lists: what can be asked for at once."""
    transport = Transport(allow_loopback, deadline, Resolver())
    loaded = {spec.slug: spec.load() for spec in specs}
    return {slug: lists(adapter(slug, transport)) for slug, (adapter, lists) in loaded.items() if lists is not None}
