"""What a gateway lacks before a payment can go through it, for administrators."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from payagg.application.gateways.credentials import GatewayCredentials
from payagg.application.must_exist import must_exist
from payagg.application.ports.outside import Clock, Vault
from payagg.application.ports.providers import Provider
from payagg.application.ports.store import Store
from payagg.domain.gateway import UnavailableReason
from payagg.domain.values import Environment

OPEN_ATTEMPTS_MAX = 1000


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
    async with store.begin() as tx:
        gateways = await tx.gateways.everything()
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


async def gateway_readiness(
    store: Store, clock: Clock, vault: Vault, providers: Mapping[str, Provider], gateway_id: str
) -> GatewayReadiness:
    """Raises NOT_FOUND."""
    async with store.begin() as tx:
        gateway = must_exist(await tx.gateways.get(gateway_id))
        open_attempts = await tx.attempts.count_open(gateway_id, OPEN_ATTEMPTS_MAX)
        health = await tx.health.all()
    sealed = GatewayCredentials(vault, providers)
    reasons, names = sealed.reasons(gateway, health, clock.now()), sorted(sealed.current(gateway))
    return GatewayReadiness(
        has_processor=gateway.slug in providers,
        credential_names=list(providers[gateway.slug].credential_names) if gateway.slug in providers else [],
        open_attempts=open_attempts,
        environments=[
            EnvironmentReadiness(one, reason, [name for name in names if name.startswith(one.value.lower())])
            for one, reason in reasons.items()
        ],
    )
