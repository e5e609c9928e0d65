"""What a gateway lacks before a payment can go through it, for administrators, and whether its provider accepts the
credentials on file."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from payagg.application.gateways.credentials import GatewayCredentials
from payagg.application.gateways.payment_options import PaymentOptions
from payagg.application.ports.outside import Entropy
from payagg.application.ports.providers import Provider
from payagg.application.ports.store import Store
from payagg.application.schemas.gateways import CredentialsTest
from payagg.application.telemetry import count
from payagg.application.use_case import UseCase, in_transaction
from payagg.domain.attempt import Charge
from payagg.domain.audit import Action, Actor
from payagg.domain.errors import ErrorCode, Refusal, must_exist
from payagg.domain.gateway import UnavailableReason
from payagg.domain.rate_limit import RateLimit, over_limit
from payagg.domain.report import ProviderFault
from payagg.domain.values import CURRENCY, MIN_AMOUNT, Environment

OPEN_ATTEMPTS_MAX = 1000
TESTS = RateLimit(10)  # of one gateway in one environment


class EnvironmentReadiness(Struct, rename="camel", frozen=True):
    """`unavailableReason`: why the gateway cannot be chosen in this environment, whatever its status; null when it can.
    `credentialsOnFile`: the names that belong to the environment, never their values."""

    environment: Environment
    unavailable_reason: UnavailableReason | None
    credentials_on_file: list[str]


class GatewayReadiness(Struct, rename="camel", frozen=True):
    """`hasProcessor`: the deployment has an adapter for the slug; without one nothing can be paid through the gateway.
    `credentialNames`: the credentials that adapter reads. `openAttempts`: attempts with status checks due, counted up
    to OPEN_ATTEMPTS_MAX."""

    has_processor: bool
    credential_names: list[str]
    open_attempts: Annotated[int, Meta(ge=0, le=OPEN_ATTEMPTS_MAX, examples=[0])]
    environments: list[EnvironmentReadiness]


async def live_slugs(store: Store, credentials: GatewayCredentials) -> list[str]:
    """The slugs of gateways with LIVE credentials on file, deleted ones that still settle included: each receives
    events."""
    gateways = await in_transaction(store, lambda tx: tx.gateways.everything())
    known = [one for one in gateways if one.slug in credentials.providers and one.has_credentials]
    live = Environment.LIVE
    return sorted(
        {one.slug for one in known if credentials.providers[one.slug].is_configured(credentials.current(one), live)}
    )


async def unbound_slugs(store: Store, providers: Mapping[str, Provider]) -> list[str]:
    """The slugs of open attempts that no provider has."""
    async with store.begin() as tx:
        strangers = [one for one in await tx.gateways.everything() if one.slug not in providers]
        return sorted({one.slug for one in strangers if await tx.attempts.count_open(one.id, 1)})


async def gateway_readiness(options: PaymentOptions, gateway_id: str) -> GatewayReadiness:
    """Raises NOT_FOUND."""
    async with options.store.begin() as tx:
        gateway = must_exist(await tx.gateways.get(gateway_id))
        open_attempts = await tx.attempts.count_open(gateway_id, OPEN_ATTEMPTS_MAX)
        health = await tx.health.all()
    sealed, provider = options.gateway_credentials, options.providers.get(gateway.slug)
    reasons, names = sealed.reasons(gateway, health, options.clock.now()), sorted(sealed.current(gateway))
    return GatewayReadiness(
        has_processor=provider is not None,
        credential_names=list(provider.credential_names) if provider is not None else [],
        open_attempts=open_attempts,
        environments=[
            EnvironmentReadiness(one, reason, [name for name in names if name.startswith(one.value.lower())])
            for one, reason in reasons.items()
        ],
    )


async def try_credentials(
    options: PaymentOptions, entropy: Entropy, gateway_id: str, environment: Environment, *, by: Actor
) -> CredentialsTest:
    """Looks up a reference that does not exist. Charges nobody and says nothing about the provider's health. Raises
    NOT_FOUND, RATE_LIMITED or GATEWAY_ENVIRONMENT_NOT_CONFIGURED."""
    store, now = options.store, options.clock.now()
    async with store.begin() as tx:
        gateway = must_exist(await tx.gateways.get(gateway_id))
    provider, credentials = options.providers.get(gateway.slug), options.gateway_credentials.current(gateway)
    if provider is None or not provider.is_configured(credentials, environment):
        raise Refusal(ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED)
    until = await store.count_hit(f"credentials-test:{gateway_id}:{environment.value}", now, TESTS)
    if until is not None:
        raise over_limit((until - now).total_seconds())
    async with store.begin() as tx:
        changes = {"environment": {"before": None, "after": environment.value}}
        use = UseCase(store, options.clock, entropy)
        await use.record(tx, by, Action.GATEWAY_TEST_CREDENTIALS, gateway_id, changes)
    unpaid = Charge(entropy.reference(now), MIN_AMOUNT, CURRENCY, environment, credentials, checkout_url="", now=now)
    fault = None
    try:
        await provider.fetch_charge(unpaid)
    except ProviderFault as raised:
        fault = raised.kind
    count("provider_calls", gateway.slug, "test_credentials", fault.value if fault else "ACCEPTED")
    return CredentialsTest(environment=environment, is_accepted=fault is None, fault=fault)
