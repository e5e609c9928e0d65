"""Payments: the PAYMENT machine, the one-hour window, and how a report settles one.

Amounts are integer kobo. Time and identity are handed in; nothing here reads a clock or draws a number.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.machine import Machine
from payagg.domain.values import CURRENCY, Environment

CHECKOUT_TTL = timedelta(hours=1)  # interface, Limits
METADATA_KEYS_MAX = 50
METADATA_KEY_MAX = 100
METADATA_DEPTH_MAX = 5
METADATA_BYTES_MAX = 16 * 1024
IDEMPOTENCY_KEY_MAX = 255
EXPIRED_REASON = "EXPIRED"
DECLINED = "DECLINED"  # the reason of a failure whose provider gives none that we know
SIMULATED = "SIMULATED"  # the reason of a transition that a simulate call made


class Status(Enum):
    INITIATED = "INITIATED"
    PENDING = "PENDING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    REVERSED = "REVERSED"


class Trigger(Enum):
    PROCESS = "PROCESS"
    SUCCEED = "SUCCEED"
    FAIL = "FAIL"
    REVERSE = "REVERSE"
    EXPIRE = "EXPIRE"


PAYMENT = Machine(
    name="payment",
    states=Status,
    triggers=Trigger,
    initial=Status.INITIATED,
    moves={
        (Status.INITIATED, Trigger.PROCESS): Status.PENDING,
        (Status.PENDING, Trigger.PROCESS): Status.PENDING,  # the existing hand-off is returned
        (Status.INITIATED, Trigger.SUCCEED): Status.SUCCESS,
        (Status.PENDING, Trigger.SUCCEED): Status.SUCCESS,
        (Status.INITIATED, Trigger.FAIL): Status.FAILED,
        (Status.PENDING, Trigger.FAIL): Status.FAILED,
        (Status.INITIATED, Trigger.REVERSE): Status.REVERSED,
        (Status.PENDING, Trigger.REVERSE): Status.REVERSED,
        (Status.INITIATED, Trigger.EXPIRE): Status.FAILED,
        (Status.PENDING, Trigger.EXPIRE): Status.FAILED,  # only on provider evidence that nothing was paid
    },
    refusals={
        Trigger.PROCESS: ErrorCode.PAYMENT_ALREADY_PROCESSED,
        Trigger.SUCCEED: ErrorCode.PAYMENT_ALREADY_FINAL,
        Trigger.FAIL: ErrorCode.PAYMENT_ALREADY_FINAL,
        Trigger.REVERSE: ErrorCode.PAYMENT_ALREADY_FINAL,
        Trigger.EXPIRE: ErrorCode.PAYMENT_ALREADY_FINAL,
    },
)

# The `outcome` of simulate, and what each asks of the machine.
OUTCOMES = {"SUCCESS": Trigger.SUCCEED, "FAILED": Trigger.FAIL, "REVERSED": Trigger.REVERSE}


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def parse_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata itself; raises VALIDATION_ERROR on `metadata` past 50 keys, 100 characters a key, depth 5, 16 KB,
    or for a number beyond 64 bits: not every reader keeps it, and the database would write out all its digits."""
    if len(metadata) > METADATA_KEYS_MAX:
        raise invalid("metadata", f"At most {METADATA_KEYS_MAX} keys.")
    _walk(metadata, 1)
    if len(_COMPACT.encode(metadata).encode()) > METADATA_BYTES_MAX:
        raise invalid("metadata", f"At most {METADATA_BYTES_MAX} bytes as JSON.")
    return metadata


def _walk(value: Any, depth: int) -> None:
    if isinstance(value, int | float) and not -(2**63) <= value < 2**63:
        raise invalid("metadata", "Numbers must fit 64 bits.")
    if not isinstance(value, Mapping | list):
        return
    if depth > METADATA_DEPTH_MAX:
        raise invalid("metadata", f"At most {METADATA_DEPTH_MAX} levels deep.")
    if isinstance(value, Mapping) and any(len(key) > METADATA_KEY_MAX for key in value):
        raise invalid("metadata", f"Keys must be at most {METADATA_KEY_MAX} characters.")
    for inner in value.values() if isinstance(value, Mapping) else value:
        _walk(inner, depth + 1)


@dataclass(frozen=True)
class Transition:
    """One committed change of status. `sequence` counts from 1 per payment, without gaps; `actor` says who."""

    reference: str
    sequence: int
    from_status: Status
    to_status: Status
    trigger: Trigger
    actor: str
    reason: str | None
    at: datetime


@dataclass(frozen=True)
class Payment:
    """A payment as stored. `gateway` is the slug preferred at initiation, then the one the payer chose."""

    reference: str
    business_id: str
    environment: Environment
    amount: int
    currency: str
    status: Status
    gateway: str | None
    customer_email: str | None
    customer_name: str | None
    customer_phone: str | None
    callback_url: str | None
    webhook_url: str | None
    metadata: Mapping[str, Any] | None
    idempotency_key: str | None
    fingerprint: bytes | None  # digest of the initiating request, to notice a key used with another body
    failure_reason: str | None
    sequence: int  # transitions so far
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    settled_at: datetime | None

    @classmethod
    def initiate(
        cls,
        *,
        reference: str,
        business_id: str,
        environment: Environment,
        amount: int,
        now: datetime,
        ttl: timedelta = CHECKOUT_TTL,
        gateway: str | None = None,
        customer_email: str | None = None,
        customer_name: str | None = None,
        customer_phone: str | None = None,
        callback_url: str | None = None,
        webhook_url: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        fingerprint: bytes | None = None,
    ) -> "Payment":
        """A new INITIATED payment that expires `ttl` after `now`; no processor is contacted."""
        return cls(
            reference=reference,
            business_id=business_id,
            environment=environment,
            amount=amount,
            currency=CURRENCY,
            status=PAYMENT.initial,
            gateway=gateway,
            customer_email=customer_email,
            customer_name=customer_name,
            customer_phone=customer_phone,
            callback_url=callback_url,
            webhook_url=webhook_url,
            metadata=metadata,
            idempotency_key=idempotency_key,
            fingerprint=fingerprint,
            failure_reason=None,
            sequence=0,
            created_at=now,
            updated_at=now,
            expires_at=now + ttl,
            settled_at=None,
        )

    @property
    def is_final(self) -> bool:
        return self.status in PAYMENT.final

    def is_expired(self, now: datetime) -> bool:
        """Whether the stored row is INITIATED past its window: already FAILED to every reader, not yet durable."""
        return self.status is Status.INITIATED and now >= self.expires_at

    def expire(self) -> tuple["Payment", Transition | None]:
        """FAILED with reason EXPIRED, dated to the instant the window closed whenever it is written."""
        return self.move(Trigger.EXPIRE, self.expires_at, actor="clock", reason=EXPIRED_REASON)

    def as_of(self, now: datetime) -> "Payment":
        """What any reader sees at `now`: expiry holds from its instant, whether or not a sweep has run."""
        return self.expire()[0] if self.is_expired(now) else self

    def replay(self, now: datetime) -> "Payment":
        """The original for a repeated idempotency key; raises DUPLICATE_PAYMENT once it is completed."""
        seen = self.as_of(now)
        if seen.is_final:
            raise Refusal(ErrorCode.DUPLICATE_PAYMENT, field="idempotencyKey")
        return seen

    def ensure_open(self) -> None:
        """Raises PAYMENT_ALREADY_FINAL on a completed payment."""
        if self.is_final:
            raise Refusal(ErrorCode.PAYMENT_ALREADY_FINAL)

    def ensure_processable(self, now: datetime) -> None:
        """Raises PAYMENT_ALREADY_PROCESSED when final, PAYMENT_EXPIRED past the window (an expired one is gone, not
        processed: the answer is the same before and after the sweep)."""
        seen = self.as_of(now)
        if seen.is_final and seen.failure_reason != EXPIRED_REASON:
            raise Refusal(ErrorCode.PAYMENT_ALREADY_PROCESSED)
        if seen.is_final or now >= self.expires_at:
            raise Refusal(ErrorCode.PAYMENT_EXPIRED)

    def hand_over(self, gateway: str, now: datetime, actor: str) -> tuple["Payment", Transition | None]:
        """PENDING with the payer's gateway; on a PENDING payment nothing changes and there is no transition."""
        moved, transition = self.move(Trigger.PROCESS, now, actor=actor)
        return (replace(moved, gateway=gateway), transition) if transition else (self, None)

    def move(
        self, trigger: Trigger, now: datetime, *, actor: str, reason: str | None = None
    ) -> tuple["Payment", Transition | None]:
        """The payment after `trigger` and the transition to record; raises the trigger's code on a final payment."""
        status = PAYMENT.next(self.status, trigger)
        if status is self.status:
            return self, None
        final = status in PAYMENT.final
        transition = Transition(
            reference=self.reference,
            sequence=self.sequence + 1,
            from_status=self.status,
            to_status=status,
            trigger=trigger,
            actor=actor,
            reason=reason,
            at=now,
        )
        moved = replace(
            self,
            status=status,
            sequence=transition.sequence,
            failure_reason=reason if status is Status.FAILED else None,
            updated_at=now,
            settled_at=now if final else None,
        )
        return moved, transition
