"""The gateways offered to a payer: after overrides, credentials, switches and health."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from msgspec import structs

from payagg.application.gateways.credentials import GatewayCredentials
from payagg.application.ports.outside import Clock
from payagg.application.ports.providers import Provider
from payagg.application.ports.store import Store, Transaction
from payagg.application.schemas.checkout import CheckoutGateway
from payagg.domain.attempt import Attempt
from payagg.domain.business import Business
from payagg.domain.business_gateway import checkout_order, ensure_selectable, is_offered, shown_name
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import SANDBOX_SLUG, UnavailableReason, logo_url, simulator_allowed
from payagg.domain.health import Health
from payagg.domain.payment import Payment
from payagg.domain.values import Environment

SIMULATOR_OPTION = CheckoutGateway(
    slug=SANDBOX_SLUG,
    name="Sandbox simulator",
    description="Test card",
    logo_url=None,
    is_default=False,
    available=True,
    unavailable_reason=None,
)


@dataclass(frozen=True)
class ChosenProvider:
    """A provider that may be called for a payment. `gateway_id` None = the simulator."""

    provider: Provider
    gateway_id: str | None
    credentials: Mapping[str, str] = field(repr=False)

    def account(self, environment: Environment) -> str | None:
        return self.provider.account(self.credentials, environment)


@dataclass(frozen=True)
class PaymentOptions:
    store: Store
    clock: Clock
    gateway_credentials: GatewayCredentials

    @cached_property
    def providers(self) -> Mapping[str, Provider]:
        return self.gateway_credentials.providers

    @property
    def simulator(self) -> ChosenProvider:
        return ChosenProvider(self.providers[SANDBOX_SLUG], None, {})

    async def ensure_can_initiate(self, business_id: str, environment: Environment, slug: str | None) -> None:
        """Raises GATEWAY_NOT_FOUND or GATEWAY_DISABLED for the preferred slug, then NO_GATEWAY_AVAILABLE for LIVE.

        Health does not count: the payer comes later. The payment itself refuses the simulator for LIVE.
        """
        now = self.clock.now()
        found = await self.store.find_choices(business_id)
        gateways, settings = [gateway.as_of(now) for gateway in found.gateways], found.settings
        if slug is not None and slug != SANDBOX_SLUG:
            preferred = next((gateway for gateway in gateways if gateway.slug == slug), None)
            ensure_selectable(preferred, settings.get(preferred.id) if preferred else None)
        if environment is Environment.LIVE and not any(
            is_offered(gateway, settings.get(gateway.id))
            and self.gateway_credentials.unready(gateway, environment) is None
            for gateway in gateways
        ):
            raise Refusal(ErrorCode.NO_GATEWAY_AVAILABLE, retry_after=60)

    async def list_options(
        self, business: Business, environment: Environment, *, is_test: bool = False, describe_renamed: bool = True
    ) -> list[CheckoutGateway]:
        """The options of the business's payments: built-in first, unavailable ones with their reason. A test payment
        has the simulator alone; a business that takes no money has no available option."""
        now = self.clock.now()
        found = await self.store.find_choices(business.id)
        gateways = [] if is_test else [gateway.as_of(now) for gateway in found.gateways]
        unhealthy = {h.gateway for h in found.health if h.environment is environment and h.is_open(now)}
        options = []
        for gateway, own in sorted(((g, found.settings.get(g.id)) for g in gateways), key=checkout_order):
            if not is_offered(gateway, own):
                continue
            reason = self.gateway_credentials.unready(gateway, environment)
            if reason is None and gateway.slug in unhealthy:
                reason = UnavailableReason.UNHEALTHY
            name = shown_name(gateway, own)
            options.append(
                CheckoutGateway(
                    slug=gateway.slug,
                    name=name,
                    description=gateway.description if describe_renamed or name == gateway.name else None,
                    logo_url=logo_url(gateway),
                    is_default=own.is_default if own else False,
                    available=reason is None,
                    unavailable_reason=reason,
                )
            )
        if simulator_allowed(environment):
            options.append(SIMULATOR_OPTION)
        if not business.takes_money(environment):
            options = [
                structs.replace(option, available=False, unavailable_reason=UnavailableReason.DISABLED)
                for option in options
            ]
        return options

    async def list_offered(
        self, business: Business, environment: Environment, *, is_test: bool = False
    ) -> list[CheckoutGateway]:
        """The options in the payer's order: available ones first, and without those that have no processor. The page's
        heading is the description, so one that the business renamed has none: its own name is the heading."""
        listed = await self.list_options(business, environment, is_test=is_test, describe_renamed=False)
        return sorted((one for one in listed if one.slug in self.providers), key=lambda option: not option.available)

    async def method(self, payment: Payment) -> str | None:
        """The payment's gateway under the business's name for it; the slug once the gateway is deleted."""
        if payment.gateway is None or payment.gateway == SANDBOX_SLUG:
            return SIMULATOR_OPTION.name if payment.gateway else None
        found = await self.store.find_choices(payment.business_id)
        gateway = next((one for one in found.gateways if one.slug == payment.gateway), None)
        if gateway is None:
            return payment.gateway
        return shown_name(gateway, found.settings.get(gateway.id))

    async def choose(self, tx: Transaction, payment: Payment, slug: str) -> ChosenProvider:
        """The provider for a payer's choice; raises GATEWAY_NOT_AVAILABLE, or GATEWAY_ENVIRONMENT_NOT_CONFIGURED
        when only its credentials are missing."""
        if slug == SANDBOX_SLUG:
            if not simulator_allowed(payment.environment):
                raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, field="gatewaySlug")
            return self.simulator
        if payment.is_test:
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, field="gatewaySlug")
        found = await tx.gateway_choices.of_business(payment.business_id)
        gateway = next((one for one in found.gateways if one.slug == slug), None)
        provider = self.providers.get(slug)
        now = self.clock.now()
        if gateway is None or provider is None or not is_offered(gateway.as_of(now), found.settings.get(gateway.id)):
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, field="gatewaySlug")
        reason = self.gateway_credentials.unready(gateway, payment.environment)
        if reason is UnavailableReason.NOT_CONFIGURED:
            raise Refusal(ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED, field="gatewaySlug")
        probes = not provider.starts_alone
        if reason is not None or not await self._admit(tx, slug, payment.environment, found.health, probes=probes):
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, field="gatewaySlug")
        return ChosenProvider(provider, gateway.id, self.gateway_credentials.current(gateway))

    async def provider_of_attempt(
        self, tx: Transaction, attempt: Attempt, environment: Environment
    ) -> tuple[ChosenProvider | None, bool]:
        """The provider of an attempt, with the credentials of the attempt's own gateway, which answers for its payments
        even when draining, disabled or deleted. None without credentials, or where no provider has the slug any more.
        And whether the provider's health lets a call through now; after a pause, one caller at a time.

        Another gateway under the same slug may be another account, where "no such payment" proves nothing.
        """
        provider = self.providers.get(attempt.gateway)
        if provider is None:
            return None, False
        if attempt.gateway_id is None:
            return ChosenProvider(provider, None, {}), True
        gateway = await tx.gateways.get_any(attempt.gateway_id)
        credentials = self.gateway_credentials.current(gateway) if gateway else {}
        if gateway is None or not provider.is_configured(credentials, environment):
            return None, False
        is_admitted = await self._admit(tx, attempt.gateway, environment, await tx.health.all(), probes=True)
        return ChosenProvider(provider, gateway.id, credentials), is_admitted

    async def of_slug(self, tx: Transaction, slug: str, environment: Environment) -> ChosenProvider | None:
        """The provider with the credentials of the gateway that has this slug now, whatever its switches. None without
        credentials."""
        gateway = await tx.gateways.by_slug(slug)
        credentials = self.gateway_credentials.current(gateway) if gateway else {}
        if gateway is None or not self.providers[slug].is_configured(credentials, environment):
            return None
        return ChosenProvider(self.providers[slug], gateway.id, credentials)

    async def _admit(
        self, tx: Transaction, slug: str, environment: Environment, health: Sequence[Health], *, probes: bool
    ) -> bool:
        """`probes=False`: the call is no evidence of the provider's health, and does not use up the one probe."""
        now = self.clock.now()
        seen = next((h for h in health if (h.gateway, h.environment) == (slug, environment)), None)
        if seen is None or not seen.open_for:
            return True  # never paused, or recovered: no row to lock
        if not probes:
            return not seen.is_open(now)
        admitted = (await tx.health.lock(slug, environment)).admit(now)
        if admitted is None:
            return False
        await tx.health.save(admitted)
        return True

    async def ensure_known(self, slug: str) -> None:
        """Raises VALIDATION_ERROR for a slug that names neither a provider nor a gateway."""
        if slug in self.providers:
            return
        async with self.store.begin() as tx:
            found = await tx.gateways.by_slug(slug)
        if found is None:
            raise invalid("gatewaySlug", "Unknown gateway.")
