"""Gateways: their life cycle with its drain, their credentials, and how long replaced secrets serve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime, timedelta
from enum import Enum

from payagg.domain.checks import (
    check_bytes,
    check_flag,
    check_id,
    check_instant,
    check_integer,
    check_member,
    check_name,
    check_text,
    with_changes,
)
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.machine import Machine
from payagg.domain.values import Environment, is_option_slug

SANDBOX_SLUG = "sandbox"
DRAIN_WINDOW = timedelta(minutes=30)  # interface, Limits
NAME_MIN, NAME_MAX = 2, 100  # interface, Limits, as the bounds that follow
DESCRIPTION_MAX = 1000
ORDER_MAX = 2**31 - 1  # the column is a 32-bit integer
LOGO_PATH_MAX = 200
CREDENTIALS_MAX = 50
CREDENTIAL_VALUE_MAX = 4000
CREDENTIAL_NAME_MAX = 100  # each change's entry of the audit trail holds the names
OVERLAP = timedelta(hours=24)  # how long a replaced signing secret still proves events
REPLACED_MAX = 20  # replaced secrets of one gateway
PROVES_FOR = timedelta(days=180)  # how long events of a deleted gateway are proved: a bank's dispute may come that late
SETTLING_MAX = timedelta(hours=72)  # how long a deleted gateway's credentials may serve: the schedule of asking
LOGO_MAX_BYTES = 2 * 1024 * 1024
LOGO_MAX_SIDE = 4096  # pixels


class GatewayStatus(Enum):
    """Whether a gateway takes payments. DRAINING takes no new ones and finishes open ones."""

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
    """A processor integration. `credentials` and `replaced_secrets` are sealed blobs as stored, never plain text.

    A deleted gateway keeps both for settling alone, and `updated_at` is then the instant of its deletion. A slug of the
    deployment's own may hold underscores, an administrator's goes through `parse_slug`.
    Raises VALIDATION_ERROR for what no gateway can be, with the field's JSON name.
    """

    id: str
    slug: str
    name: str
    created_at: datetime
    updated_at: datetime
    description: str | None = None
    logo_path: str | None = None
    display_order: int = 0
    is_built_in: bool = False
    status: GatewayStatus = GATEWAY.initial
    drain_started_at: datetime | None = None
    drain_ends_at: datetime | None = None
    credentials: bytes | None = None
    replaced_secrets: bytes | None = None
    replaced_secrets_until: datetime | None = None  # when the last of them stops proving events

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        if not is_option_slug(self.slug):
            raise invalid("slug", "Must be 2 to 50 of a-z, 0-9 and single hyphens or underscores.")
        check_name(self.name, NAME_MAX, NAME_MIN)
        if self.description is not None:
            check_text(self.description, "description", DESCRIPTION_MAX)
        if self.logo_path is not None:
            check_text(self.logo_path, "logoPath", LOGO_PATH_MAX, 1)
        check_integer(self.display_order, "displayOrder", 0, ORDER_MAX)
        check_flag(self.is_built_in, "isBuiltIn")
        check_member(self.status, "status", GatewayStatus)
        if self.is_built_in and self.status is not GatewayStatus.ACTIVE:
            raise invalid("status", "The built-in gateway is always ACTIVE.")
        self._check_times()
        if self.credentials is not None:
            check_bytes(self.credentials, "credentials")

    def _check_times(self) -> None:
        drains = self.status is GatewayStatus.DRAINING
        for instant, field in ((self.drain_started_at, "drainStartedAt"), (self.drain_ends_at, "drainEndsAt")):
            if instant is not None:
                check_instant(instant, field)
            if drains is not (instant is not None):
                raise invalid(field, "A gateway has it while it drains, and only then.")
        check_instant(self.created_at, "createdAt")
        check_instant(self.updated_at, "updatedAt")

    def as_of(self, now: datetime) -> "Gateway":
        """The gateway as of `now`: a drain ends at its instant, whether or not a worker has run."""
        if self.status is GatewayStatus.DRAINING and self.drain_ends_at is not None and now >= self.drain_ends_at:
            return self._move(GatewayTrigger.END_DRAIN, self.drain_ends_at)
        return self

    def enable(self, now: datetime) -> "Gateway":
        """Raises GATEWAY_ALREADY_ENABLED when ACTIVE."""
        return self._move(GatewayTrigger.ENABLE, now)

    def disable(self, now: datetime, drain: timedelta = DRAIN_WINDOW) -> "Gateway":
        """DRAINING until now + drain; raises GATEWAY_BUILT_IN or GATEWAY_NOT_ACTIVE."""
        self._ensure_not_built_in()
        moved = self._move(GatewayTrigger.DISABLE, now)
        return with_changes(moved, drain_started_at=now, drain_ends_at=now + drain)

    def delete(self, now: datetime) -> "Gateway":
        """Raises GATEWAY_BUILT_IN, or GATEWAY_IN_USE while ACTIVE or DRAINING."""
        self._ensure_not_built_in()
        return self._move(GatewayTrigger.DELETE, now)

    def without_secrets(self, now: datetime, has_open_attempts: bool) -> "Gateway":
        """The gateway without the secrets that have served: the credentials of a deleted one once none of its attempts
        is open or SETTLING_MAX has passed, and replaced ones that prove nothing any more."""
        is_settled = not has_open_attempts or now >= self.updated_at + SETTLING_MAX
        if self.status is GatewayStatus.DELETED and is_settled and self.has_credentials:
            return with_changes(self, credentials=None)
        if self.replaced_secrets_until is not None and now >= self.replaced_secrets_until:
            return with_changes(self, replaced_secrets=None, replaced_secrets_until=None)
        return self

    def _move(self, trigger: GatewayTrigger, now: datetime) -> "Gateway":
        status = GATEWAY.next(self.status, trigger)
        return with_changes(self, status=status, drain_started_at=None, drain_ends_at=None, updated_at=now)

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
class ReplacedSecret:
    """A signing secret that is no longer on file and proves events of one environment until `valid_until`.
    `credentials` holds it alone, under the name by which its provider reads it."""

    environment: Environment
    credentials: Mapping[str, str] = dataclass_field(repr=False)
    valid_until: datetime


def logo_url(gateway: Gateway) -> str | None:
    """The bare path of the public logo, or None where none was uploaded."""
    return f"/api/v1/public/gateways/{gateway.id}/logo" if gateway.logo_path else None


def replaced_context(gateway_id: str) -> str:
    """What a gateway's sealed replaced secrets are bound to: of its own, so that none opens where credentials are
    expected."""
    return f"{gateway_id}:replaced"


def after_rotation(
    kept: Sequence[ReplacedSecret],
    before: Mapping[Environment, Mapping[str, str]],
    after: Mapping[Environment, Mapping[str, str]],
    now: datetime,
) -> tuple[ReplacedSecret, ...]:
    """The replaced secrets, newest first, once the signing secrets of each environment went from `before` to `after`.

    One that was removed is kept like one that was changed; one that is on file again needs no keeping. One of LIVE that
    signs for SANDBOX now was misplaced: whoever has it could write events of real money.
    """
    added = [
        ReplacedSecret(environment, secret, now + OVERLAP)
        for environment, secret in before.items()
        if secret and secret != after.get(environment)
    ]
    known = {(one.environment, tuple(one.credentials.items())) for one in added}
    known |= {(environment, tuple(secret.items())) for environment, secret in after.items()}
    still = [
        one for one in kept if now < one.valid_until and (one.environment, tuple(one.credentials.items())) not in known
    ]
    sandbox = set(after.get(Environment.SANDBOX, {}).values())
    proving = [
        one
        for one in (*added, *still)
        if one.environment is not Environment.LIVE or sandbox.isdisjoint(one.credentials.values())
    ]
    return tuple(proving[:REPLACED_MAX])


def parse_credentials(credentials: Mapping[str, str]) -> Mapping[str, str]:
    """A processor's credentials themselves; raises VALIDATION_ERROR on `credentials`, or on the entry at fault."""
    if not isinstance(credentials, Mapping) or not 1 <= len(credentials) <= CREDENTIALS_MAX:
        raise invalid("credentials", f"Must be an object of 1 to {CREDENTIALS_MAX} properties.")
    for name, value in credentials.items():
        check_text(name, "credentials", CREDENTIAL_NAME_MAX)
        check_text(value, f"credentials.{name}", CREDENTIAL_VALUE_MAX)
    return credentials


class UnavailableReason(Enum):
    """Why a listed option cannot be chosen; DISABLED means that provider environment is switched off."""

    NOT_CONFIGURED = "NOT_CONFIGURED"
    UNHEALTHY = "UNHEALTHY"
    DISABLED = "DISABLED"


def simulator_allowed(environment: Environment) -> bool:
    """The simulator stands in for a processor in SANDBOX only; completing LIVE by it would be inventing money."""
    return environment is Environment.SANDBOX
