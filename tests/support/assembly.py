"""The one assembly of the product in tests: every use case over a chosen store, its ports real or a test's own."""

from collections.abc import Callable
from copy import copy
from typing import Any

from payagg.adapters.logos import ObjectLogos
from payagg.adapters.providers.registry import lists_of, providers_of
from payagg.adapters.security import AesVault, Tokens
from payagg.adapters.system import SystemClock, SystemEntropy
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application.payments.provider_calls import no_crash
from payagg.application.ports.outside import Clock, Entropy, ObjectStore, Vault
from payagg.application.ports.providers import Branding, Provider, ProviderLists
from payagg.application.ports.store import Store
from payagg.application.ports.webhooks import Sender
from payagg.entrypoints.bootstrap import Services, elsewhere_of
from payagg.entrypoints.settings import Settings

JWT_KEY = "a key of the tests with 32 bytes or more"
KEYS = (("k1", bytes(range(32))),)
SETTINGS = Settings(jwt_key=JWT_KEY, jwt_algorithm="HS256", encryption_keys=KEYS, dev=True)
TOKENS = Tokens(JWT_KEY, "HS256")


def named(*slugs: str) -> dict[str, Branding]:
    """Providers' gateways of these slugs, without a logo."""
    return {slug: Branding(slug.replace("_", " ").title()) for slug in slugs}


def with_parts(services: Services, **parts: Any) -> Services:
    """A copy that has these in place of its own."""
    made = copy(services)
    vars(made).update(parts)
    return made


def services_over(
    store: Store,
    settings: Settings = SETTINGS,
    clock: Clock | None = None,
    *,
    entropy: Entropy | None = None,
    vault: Vault | None = None,
    tokens: Tokens = TOKENS,
    providers: dict[str, Provider] | None = None,
    lists: dict[str, ProviderLists] | None = None,
    sender: Sender | None = None,
    logos: ObjectStore | None = None,
    crash_point: Callable[[str], None] = no_crash,
) -> Services:
    """Providers and merchants may be on loopback, logos are kept in memory."""
    return Services(
        settings,
        store=store,
        clock=clock or SystemClock(),
        entropy=entropy or SystemEntropy(settings.reference_prefix),
        vault=vault or AesVault(settings.encryption_keys),
        tokens=tokens,
        providers=providers_of(settings.providers, allow_loopback=True) if providers is None else providers,
        lists=lists_of(settings.providers, allow_loopback=True) if lists is None else lists,
        sender=sender or HttpSender(allow_loopback=True),
        logos=logos or ObjectLogos("memory:///"),
        crash_point=crash_point,
        elsewhere=elsewhere_of(settings)(store),
    )
