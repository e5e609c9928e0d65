"""The merchant's business: its status, its KYC and its members."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from payagg.domain.checks import check_id, check_instant, check_member, check_text
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.machine import Machine
from payagg.domain.values import Environment

BUSINESS_NAME_MAX = 200
SUBJECT_MAX = 255  # of a token's `sub`


class BusinessStatus(Enum):
    """Only an ACTIVE business takes new payments; pending ones settle in every status."""

    ACTIVE = "ACTIVE"
    RESTRICTED = "RESTRICTED"
    SUSPENDED = "SUSPENDED"


class KycStatus(Enum):
    """The state of a business's identity check. Only APPROVED may have and use LIVE keys."""

    NOT_SUBMITTED = "NOT_SUBMITTED"
    PENDING = "PENDING"
    UNDER_REVIEW = "UNDER_REVIEW"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"


class KycTrigger(Enum):
    SUBMIT = "SUBMIT"
    START_REVIEW = "START_REVIEW"
    APPROVE = "APPROVE"
    REJECT = "REJECT"


KYC = Machine(
    name="kyc",
    states=KycStatus,
    triggers=KycTrigger,
    initial=KycStatus.NOT_SUBMITTED,
    moves={
        (KycStatus.NOT_SUBMITTED, KycTrigger.SUBMIT): KycStatus.PENDING,
        (KycStatus.REJECTED, KycTrigger.SUBMIT): KycStatus.PENDING,
        (KycStatus.PENDING, KycTrigger.START_REVIEW): KycStatus.UNDER_REVIEW,
        (KycStatus.APPROVED, KycTrigger.START_REVIEW): KycStatus.UNDER_REVIEW,
        (KycStatus.UNDER_REVIEW, KycTrigger.APPROVE): KycStatus.APPROVED,
        (KycStatus.UNDER_REVIEW, KycTrigger.REJECT): KycStatus.REJECTED,
    },
    refusals=dict.fromkeys(KycTrigger, ErrorCode.VALIDATION_ERROR),
)

# Operators name the state they want (`payagg business set --kyc`); each state is reached by exactly one trigger.
KYC_TRIGGER_FOR = {target: trigger for (_, trigger), target in KYC.moves.items()}


class Role(Enum):
    """A member's role in one business; OWNER and ADMIN are what the interface calls a manager."""

    OWNER = "OWNER"
    ADMIN = "ADMIN"
    MEMBER = "MEMBER"


MANAGERS = frozenset({Role.OWNER, Role.ADMIN})


@dataclass(frozen=True)
class Business:
    """A merchant. Raises VALIDATION_ERROR for what no business can be, with the field's JSON name."""

    id: str
    name: str
    status: BusinessStatus
    kyc_status: KycStatus
    created_at: datetime

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        check_line(self.name, "name", BUSINESS_NAME_MAX)
        check_member(self.status, "status", BusinessStatus)
        check_member(self.kyc_status, "kycStatus", KycStatus)
        check_instant(self.created_at, "createdAt")

    @property
    def is_active(self) -> bool:
        return self.status is BusinessStatus.ACTIVE

    def ensure_active(self) -> None:
        """Raises BUSINESS_RESTRICTED unless the business is ACTIVE."""
        if not self.is_active:
            raise Refusal(ErrorCode.BUSINESS_RESTRICTED)

    def ensure_may_use(self, environment: Environment) -> None:
        """Raises BUSINESS_RESTRICTED or, for LIVE without an approved KYC, KYC_REQUIRED."""
        self.ensure_active()
        if not self.takes_money(environment):
            raise Refusal(ErrorCode.KYC_REQUIRED)

    def takes_money(self, environment: Environment) -> bool:
        """Whether payers may pay: a KYC that is withdrawn stops the links that a LIVE key made before."""
        lacks_kyc = environment is Environment.LIVE and self.kyc_status is not KycStatus.APPROVED
        return self.is_active and not lacks_kyc

    def ensure_takes_money(self, environment: Environment) -> None:
        """Raises GATEWAY_NOT_AVAILABLE, the payers' code, unless it takes money."""
        if not self.takes_money(environment):
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, field="gatewaySlug")


def check_line(text: str, field: str, most: int) -> None:
    """Raises VALIDATION_ERROR unless `text` is one line of 1 to `most` printable characters, with no space around."""
    check_text(text, field, most, 1)
    if text != text.strip() or not text.isprintable():
        raise invalid(field, f"Must be 1 to {most} printable characters.")


def check_subject(subject: str, field: str) -> None:
    """Raises VALIDATION_ERROR unless it can be the `sub` of a member's token."""
    check_line(subject, field, SUBJECT_MAX)


def move_kyc(current: KycStatus, wanted: KycStatus) -> KycStatus:
    """`wanted` when the machine leads there from `current`; raises VALIDATION_ERROR otherwise.

    A move to the present state changes nothing.
    """
    if wanted is current:
        return current
    trigger = KYC_TRIGGER_FOR.get(wanted)
    if trigger is None or KYC.moves.get((current, trigger)) is not wanted:
        raise Refusal(
            ErrorCode.VALIDATION_ERROR, f"KYC cannot move from {current.value} to {wanted.value}.", "kycStatus"
        )
    return wanted


def ensure_owner_left(before: Mapping[str, Role], after: Mapping[str, Role]) -> None:
    """Raises LAST_OWNER when a change of members (roles by subject) would leave a business without its last OWNER."""
    if Role.OWNER in before.values() and Role.OWNER not in after.values():
        raise Refusal(ErrorCode.LAST_OWNER)


def ensure_manager(role: Role | None) -> None:
    """Raises FORBIDDEN unless `role` manages; None (no such business or no membership) answers alike."""
    if role not in MANAGERS:
        raise Refusal(ErrorCode.FORBIDDEN)
