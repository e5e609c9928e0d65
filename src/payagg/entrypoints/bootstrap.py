"""Wiring: the only file that names concrete adapters."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

import structlog

from payagg.adapters.images import PillowImages
from payagg.adapters.jwks import KeySet
from payagg.adapters.logos import ObjectLogos
from payagg.adapters.postgres.migrations import HEAD
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.providers.registry import lists_of, providers_of
from payagg.adapters.security import AesVault, Tokens, UnfitKey
from payagg.adapters.system import DatabaseClock, SystemEntropy
from payagg.adapters.webhooks.addresses import is_public_name
from payagg.adapters.webhooks.resolver import Resolver
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application.accounts.access import Access
from payagg.application.accounts.api_keys import ApiKeys
from payagg.application.accounts.audit import AuditTrail
from payagg.application.accounts.businesses import Businesses
from payagg.application.gateways.checkout_settings import CheckoutSettings
from payagg.application.gateways.credentials import CredentialRetirement, GatewayCredentials
from payagg.application.gateways.gateways import Gateways
from payagg.application.gateways.payment_options import PaymentOptions
from payagg.application.gateways.seed import seed_gateways
from payagg.application.payments.checkout import Checkout
from payagg.application.payments.payments import Payments
from payagg.application.payments.provider_calls import ProviderCalls, no_crash
from payagg.application.payments.provider_events import ProviderEvents
from payagg.application.payments.refused_events import RefusedEvents
from payagg.application.payments.resolutions import Resolutions
from payagg.application.payments.settlement import Settlement
from payagg.application.payments.status_checks import Reconciler
from payagg.application.payments.verification import Verification
from payagg.application.ports.elsewhere import NOWHERE, Elsewhere
from payagg.application.ports.outside import Clock, Entropy, ObjectStore, Vault
from payagg.application.ports.providers import Provider, ProviderLists
from payagg.application.ports.store import Store
from payagg.application.ports.webhooks import Sender
from payagg.application.reports.anomalies import Anomalies
from payagg.application.reports.reconciliation import ReconciliationRuns
from payagg.application.reports.search import PaymentSearch
from payagg.application.telemetry import flush, keep_flushing
from payagg.application.upkeep.retention import Retention
from payagg.application.upkeep.sweeps import Sweep
from payagg.application.webhooks.delivery_log import DeliveryLog
from payagg.application.webhooks.dispatcher import Dispatcher
from payagg.application.webhooks.endpoints import Webhooks
from payagg.entrypoints.extensions import parts
from payagg.entrypoints.settings import Settings, SettingsError, require_secrets

CLOSE_SECONDS = 5
RELEASE_SCHEMA = HEAD  # the newest schema of this release
Own = TypeVar("Own")
_log = structlog.get_logger("payagg.bootstrap")


class Services:
    """Every use case over the given ports: all that an entrypoint needs. Tests and internal tools pass their own ports.

    `crash_point` is called with the name of each step at which tests kill a process; `running` passes none.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store,
        clock: Clock,
        entropy: Entropy,
        vault: Vault,
        tokens: Tokens,
        providers: dict[str, Provider],
        lists: dict[str, ProviderLists],
        sender: Sender,
        logos: ObjectStore,
        elsewhere: Elsewhere = NOWHERE,
        crash_point: Callable[[str], None] = no_crash,
    ) -> None:
        self.settings, self.store, self.clock, self.entropy = settings, store, clock, entropy
        self.tokens, self.vault, self.logos, self.elsewhere = tokens, vault, logos, elsewhere
        base = store, clock, entropy
        sealed = GatewayCredentials(vault, providers)
        self.access = Access(store, clock, tokens)
        self.settlement = Settlement(*base, elsewhere)
        self.payment_options = options = PaymentOptions(store, clock, sealed)
        self.provider_calls = ProviderCalls(*base, settings.base_url)
        self.payments = Payments(*base, self.settlement, options, settings.base_url, settings.checkout_ttl)
        self.anomalies = Anomalies(*base)
        self.resolutions = Resolutions(*base, self.settlement)
        self.checkout = Checkout(*base, options, self.provider_calls, self.settlement, crash_point)
        self.verification = Verification(store, clock, options, self.provider_calls, self.settlement, crash_point)
        self.gateways = Gateways(*base, sealed, logos, PillowImages(), settings.reserved_slugs, settings.drain_window)
        self.checkout_settings = CheckoutSettings(*base)
        self.api_keys = ApiKeys(*base)
        self.webhooks = Webhooks(*base, vault, sender)
        self.delivery_log = DeliveryLog(*base)
        self.gateway_settling = CredentialRetirement(*base, sealed)
        self.businesses = Businesses(*base)
        self.audit = AuditTrail(store)
        self.payment_search = PaymentSearch(store, clock)
        self.refused_events = RefusedEvents(store, clock)
        self.provider_events = ProviderEvents(
            *base, options, self.settlement, self.refused_events, crash_point, elsewhere
        )
        self.reconciler = Reconciler(*base, options, self.provider_calls, self.settlement, crash_point)
        self.reconciliation_runs = ReconciliationRuns(*base, options, self.settlement, lists, elsewhere)
        self.dispatcher = Dispatcher(*base, vault, sender)
        self.retention = Retention(*base, settings.idempotency_retention)
        own = parts(settings.extensions, "services")  # each is made of all the above
        self.own: tuple[Any, ...] = tuple(make(self) for make in own)

    def of(self, kind: type[Own]) -> Own:
        """An extension's services."""
        return next(one for one in self.own if isinstance(one, kind))

    def sweeps_of_extensions(self) -> list[Sweep]:
        return [sweep for of in parts(self.settings.extensions, "sweeps") for sweep in of(self)]


def tokens_of(settings: Settings, keys: KeySet | None = None, clock: Clock | None = None) -> Tokens:
    """Raises SettingsError for a key that is malformed, weak, or of another algorithm."""
    try:
        return Tokens(
            settings.jwt_key,
            settings.jwt_algorithm,
            keys=keys,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            lifetime_max=settings.token_lifetime_max,
            clock=clock,
        )
    except UnfitKey as error:
        raise SettingsError(f"PAYAGG_JWT_KEY {error}.") from None


def check_for_serving(settings: Settings) -> None:
    """Raises SettingsError unless a server has its secrets, they are strong enough, and its links are safe to
    follow."""
    require_secrets(settings)
    tokens_of(settings)
    elsewhere_of(settings)
    base = urlsplit(settings.base_url)
    if base.scheme == "http" and is_public_name(base.hostname or ""):
        raise SettingsError(f"PAYAGG_BASE_URL must be https: {base.hostname} is public, and payers follow its links.")


async def schema_fits(settings: Settings, database_url: str) -> bool:
    """Whether this release works on the database's schema. Raises Unavailable."""
    store = PostgresStore(database_url, pool_size=1, pgbouncer=settings.pgbouncer)
    try:
        return await store.is_current()
    finally:
        await store.close()


def elsewhere_of(settings: Settings) -> Callable[[Store], Elsewhere]:
    """Raises SettingsError where what is set of other installations contradicts itself."""
    found = (of(settings) for of in parts(settings.extensions, "elsewhere"))
    return next((make for make in found if make is not None), lambda _: NOWHERE)


def gateway_credentials(settings: Settings) -> GatewayCredentials:
    """The vault of stored credentials, for commands without services."""
    providers = providers_of(settings.providers, allow_loopback=settings.dev)
    return GatewayCredentials(AesVault(settings.encryption_keys), providers)


def entropy_of(settings: Settings) -> Entropy:
    """Randomness, for commands without services."""
    return SystemEntropy(settings.reference_prefix)


async def _load(keys: KeySet) -> None:
    """The first load. A file that is no key set is a wrong setting; an unreachable issuer is retried."""
    try:
        await keys.load()
    except ValueError as error:
        if not keys.is_remote:
            raise SettingsError(f"PAYAGG_JWT_JWKS {error}.") from None
        _log.warning("the key set could not be loaded; tokens that need it are refused until it is", reason=str(error))


@asynccontextmanager
async def running(settings: Settings, database_url: str) -> AsyncIterator[Services]:
    """Services on Postgres, ready to use; leaving closes the connections. Raises Unavailable when it is down."""
    store = PostgresStore(database_url, pool_size=settings.pool_size, pgbouncer=settings.pgbouncer, dates_payments=True)
    clock = DatabaseClock(store.now)
    sender = HttpSender(allow_loopback=settings.dev, resolve=Resolver())
    keys = KeySet(settings.jwt_jwks) if settings.jwt_jwks is not None else None
    tokens = tokens_of(settings, keys, clock)
    keeping: list[asyncio.Task[None]] = []
    elsewhere = elsewhere_of(settings)(store)
    try:
        if keys is not None:
            await _load(keys)
            keeping.append(asyncio.create_task(keys.keep()))
        await clock.synchronise()
        keeping += [asyncio.create_task(clock.keep()), asyncio.create_task(keep_flushing(store))]
        services = Services(
            settings,
            store=store,
            clock=clock,
            entropy=entropy_of(settings),
            vault=AesVault(settings.encryption_keys),
            tokens=tokens,
            providers=providers_of(settings.providers, allow_loopback=settings.dev),
            lists=lists_of(settings.providers, allow_loopback=settings.dev),
            sender=sender,
            logos=ObjectLogos(settings.logo_store or settings.state_dir / "logos"),
            elsewhere=elsewhere,
        )
        brandings = {spec.slug: spec.branding for spec in settings.providers}
        await seed_gateways(services.gateways, settings.builtin_slug, brandings)
        yield services
    finally:
        for task in keeping:
            task.cancel()
        await sender.close()
        await elsewhere.close()
        # No request waits any more; an unresponsive database must not keep the process.
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await flush(store)
                await store.close()
