"""Gateways: their life cycle with its drain, what a business may change, and who is offered what."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.machine import Machine
from payagg.domain.values import Environment

SANDBOX_SLUG = "sandbox"
DRAIN_WINDOW = timedelta(minutes=30)  # interface, Limits
CREDENTIALS_MAX = 50
CREDENTIAL_VALUE_MAX = 4000
LOGO_MAX_BYTES = 2 * 1024 * 1024
LOGO_MAX_SIDE = 4096  # pixels


class GatewayStatus(Enum):
    ACTIVE = "ACTIVE"
    DRAINING = "DRAINING"
    DISABLED = "DISABLED"
    DELETED = "DELETED"


class GatewayTrigger(Enum):
    ENABLE = "ENABLE"
    DISABLE = "DISABLE"
    END_DRAIN = "END_DRAIN"
    DELETE = "DELETE"


GATEWAY = Machine(
    name="gateway",
    states=GatewayStatus,
    triggers=GatewayTrigger,
    initial=GatewayStatus.DISABLED,
    moves={
        (GatewayStatus.DISABLED, GatewayTrigger.ENABLE): GatewayStatus.ACTIVE,
        (GatewayStatus.DRAINING, GatewayTrigger.ENABLE): GatewayStatus.ACTIVE,
        (GatewayStatus.ACTIVE, GatewayTrigger.DISABLE): GatewayStatus.DRAINING,
        (GatewayStatus.DRAINING, GatewayTrigger.END_DRAIN): GatewayStatus.DISABLED,
        (GatewayStatus.DISABLED, GatewayTrigger.DELETE): GatewayStatus.DELETED,
    },
    refusals={
        GatewayTrigger.ENABLE: ErrorCode.GATEWAY_ALREADY_ENABLED,
        GatewayTrigger.DISABLE: ErrorCode.GATEWAY_NOT_ACTIVE,
        GatewayTrigger.END_DRAIN: ErrorCode.GATEWAY_NOT_ACTIVE,
        GatewayTrigger.DELETE: ErrorCode.GATEWAY_IN_USE,
    },
)


@dataclass(frozen=True)
class Gateway:
    """A processor integration. `credentials` is the sealed blob as stored, never plain text."""

    id: str
    slug: str
    name: str
    description: str | None
    logo_path: str | None
    display_order: int
    is_built_in: bool
    status: GatewayStatus
    drain_started_at: datetime | None
    drain_ends_at: datetime | None
    credentials: bytes | None
    created_at: datetime
    updated_at: datetime

    def as_of(self, now: datetime) -> "Gateway":
        """The gateway as it stands at `now`: a drain ends at its instant, whether or not a worker has run."""
        if self.status is GatewayStatus.DRAINING and self.drain_ends_at is not None and now >= self.drain_ends_at:
            return self._moved(GatewayTrigger.END_DRAIN, self.drain_ends_at)
        return self

    def enable(self, now: datetime) -> "Gateway":
        """Raises GATEWAY_ALREADY_ENABLED when ACTIVE."""
        return self._moved(GatewayTrigger.ENABLE, now)

    def disable(self, now: datetime, drain: timedelta = DRAIN_WINDOW) -> "Gateway":
        """DRAINING until now + drain; raises GATEWAY_BUILT_IN or GATEWAY_NOT_ACTIVE."""
        self._ensure_not_built_in()
        moved = self._moved(GatewayTrigger.DISABLE, now)
        return replace(moved, drain_started_at=now, drain_ends_at=now + drain)

    def delete(self, now: datetime) -> "Gateway":
        """Raises GATEWAY_BUILT_IN, or GATEWAY_IN_USE while ACTIVE or DRAINING."""
        self._ensure_not_built_in()
        return self._moved(GatewayTrigger.DELETE, now)

    def _moved(self, trigger: GatewayTrigger, now: datetime) -> "Gateway":
        status = GATEWAY.next(self.status, trigger)
        return replace(self, status=status, drain_started_at=None, drain_ends_at=None, updated_at=now)

    def _ensure_not_built_in(self) -> None:
        if self.is_built_in:
            raise Refusal(ErrorCode.GATEWAY_BUILT_IN)

    @property
    def is_active(self) -> bool:
        return self.status is GatewayStatus.ACTIVE

    @property
    def has_credentials(self) -> bool:
        return self.credentials is not None


@dataclass(frozen=True)
class BusinessGateway:
    """What one business chose for one gateway. No row means the defaults: the model is opt-out."""

    business_id: str
    gateway_id: str
    is_enabled: bool = True
    display_name: str | None = None
    display_order: int | None = None
    is_default: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None

    def changed(
        self,
        gateway: Gateway,
        now: datetime,
        *,
        is_enabled: bool | None = None,
        display_order: int | None = None,
        is_default: bool | None = None,
        display_name: str | None = None,
        rename: bool = False,
    ) -> "BusinessGateway":
        """The settings after a merchant's change; None keeps a value, `rename` makes `display_name` count.

        Raises VALIDATION_ERROR when the built-in gateway would be disabled or reordered, or when a disabled
        gateway would become the default. Turning a gateway off clears its default flag.
        """
        if gateway.is_built_in and is_enabled is False:
            raise invalid("isEnabled", "The built-in gateway cannot be disabled.")
        if gateway.is_built_in and display_order is not None:
            raise invalid("displayOrder", "The built-in gateway cannot be reordered.")
        enabled = self.is_enabled if is_enabled is None else is_enabled
        if is_default and not enabled:
            raise invalid("isDefault", "A disabled gateway cannot be the default.")
        return replace(
            self,
            is_enabled=enabled,
            display_order=self.display_order if display_order is None else display_order,
            is_default=enabled and (self.is_default if is_default is None else is_default),
            display_name=display_name if rename else self.display_name,
            created_at=self.created_at or now,
            updated_at=now,
        )


class UnavailableReason(Enum):
    """Why a listed option cannot be chosen; DISABLED means that provider environment is switched off."""

    NOT_CONFIGURED = "NOT_CONFIGURED"
    UNHEALTHY = "UNHEALTHY"
    DISABLED = "DISABLED"


def ensure_selectable(gateway: Gateway | None, settings: BusinessGateway | None) -> Gateway:
    """The gateway a merchant prefers; raises GATEWAY_NOT_FOUND unless ACTIVE, GATEWAY_DISABLED when opted out."""
    if gateway is None or not gateway.is_active:
        raise Refusal(ErrorCode.GATEWAY_NOT_FOUND, field="gateway")
    if settings is not None and not settings.is_enabled:
        raise Refusal(ErrorCode.GATEWAY_DISABLED, field="gateway")
    return gateway


def is_offered(gateway: Gateway, settings: BusinessGateway | None) -> bool:
    """Whether a payer of this business sees the gateway at all."""
    return gateway.is_active and (settings is None or settings.is_enabled)


def checkout_order(pair: tuple[Gateway, BusinessGateway | None]) -> tuple[bool, int, int, str]:
    """Sort key of a business's list: the built-in first, then the business's order, then the platform's."""
    gateway, settings = pair
    own = settings.display_order if settings and settings.display_order is not None else gateway.display_order
    return (not gateway.is_built_in, own, gateway.display_order, gateway.slug)


def simulator_allowed(environment: Environment) -> bool:
    """The simulator stands in for a processor in SANDBOX only; completing LIVE by it would be inventing money."""
    return environment is Environment.SANDBOX
