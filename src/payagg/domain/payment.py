"""Payments: the PAYMENT machine, the one-hour window, and how a report settles one.

Amounts are integer kobo. Time and identity are handed in; nothing here reads a clock or draws a number.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from payagg.domain.checks import (
    check_bytes,
    check_flag,
    check_id,
    check_instant,
    check_integer,
    check_member,
    check_text,
    is_storable,
    restore,
    with_changes,
)
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.machine import Machine
from payagg.domain.values import (
    CURRENCY,
    MAX_AMOUNT,
    MIN_AMOUNT,
    Environment,
    is_option_slug,
    parse_email,
    parse_reference,
    parse_url,
)

CHECKOUT_TTL = timedelta(hours=1)  # interface, Limits
CUSTOMER_NAME_MAX = 200
CUSTOMER_PHONE_MAX = 32
METADATA_KEYS_MAX = 50
METADATA_KEY_MAX = 100
METADATA_DEPTH_MAX = 5
METADATA_BYTES_MAX = 16 * 1024
IDEMPOTENCY_KEY_MAX = 255
FINGERPRINT_BYTES = 32
REASON_MAX = 4096  # characters; a provider's words
ACTOR_MAX = 600  # two administrators may be named together
SEQUENCE_MAX = 2**15 - 1  # the column is a 16-bit integer
EXPIRED_REASON = "EXPIRED"
DECLINED = "DECLINED"  # the reason of a failure whose provider gives none of ours
SIMULATED = "SIMULATED"  # the reason of a transition that a simulate call made


class Status(Enum):
    """How a payment stands. INITIATED and PENDING are open, the others final."""

    INITIATED = "INITIATED"
    PENDING = "PENDING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    REVERSED = "REVERSED"


class Trigger(Enum):
    """What moves a payment. PROCESS: the payer is sent to a provider; EXPIRE: the time to pay is over."""

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
    for what JSON cannot hold, text that cannot be stored, or a number beyond 64 bits: not every reader keeps it, and
    the database would write out all its digits."""
    if not isinstance(metadata, dict):
        raise invalid("metadata", "Must be an object.")
    if len(metadata) > METADATA_KEYS_MAX:
        raise invalid("metadata", f"At most {METADATA_KEYS_MAX} keys.")
    if _walk(metadata, 1) > METADATA_BYTES_MAX and len(_COMPACT.encode(metadata).encode()) > METADATA_BYTES_MAX:
        raise invalid("metadata", f"At most {METADATA_BYTES_MAX} bytes as JSON.")
    return metadata


def _walk(value: Any, depth: int) -> int:
    """Bytes that `value` takes as JSON at most; few metadata are so long that they must be written to be measured."""
    if isinstance(value, str):
        if not is_storable(value):
            raise invalid("metadata", "Must not hold NUL or lone surrogates.")
        return 6 * len(value) + 3  # where each character needs an escape; with quotes and a comma
    if isinstance(value, dict | list):
        if depth > METADATA_DEPTH_MAX:
            raise invalid("metadata", f"At most {METADATA_DEPTH_MAX} levels deep.")
        if isinstance(value, list):
            return 3 + sum(_walk(inner, depth + 1) for inner in value)
        size = 3
        for key, inner in value.items():
            if not (isinstance(key, str) and len(key) <= METADATA_KEY_MAX and is_storable(key)):
                raise invalid("metadata", f"Keys must be text of at most {METADATA_KEY_MAX} characters.")
            size += 6 * len(key) + 3 + _walk(inner, depth + 1)
        return size
    if isinstance(value, int | float):
        if not -(2**63) <= value < 2**63:
            raise invalid("metadata", "Numbers must fit 64 bits.")
    elif value is not None:
        raise invalid("metadata", "Must hold nothing but JSON.")
    return 26  # the longest number


def check_gateway(gateway: Any, environment: Environment | None = None) -> None:
    """Raises GATEWAY_NOT_FOUND for what is no slug, and so names no gateway, and for the simulator on a LIVE payment,
    which it would complete without any money."""
    is_invented = environment is Environment.LIVE and gateway == SANDBOX_SLUG
    if is_invented or not is_option_slug(gateway):
        raise Refusal(ErrorCode.GATEWAY_NOT_FOUND, field="gateway")


PAYER_FIELDS = ("customer_email", "customer_name", "customer_phone", "metadata")


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

    def __post_init__(self) -> None:
        """Raises VALIDATION_ERROR for a pair that the machine's table lacks."""
        parse_reference(self.reference)
        check_integer(self.sequence, "sequence", 1, SEQUENCE_MAX)
        check_member(self.from_status, "fromStatus", Status)
        check_member(self.trigger, "trigger", Trigger)
        is_move = PAYMENT.moves.get((self.from_status, self.trigger)) is self.to_status
        if not is_move or self.from_status is self.to_status:
            raise invalid("toStatus", "The machine has no such move.")
        check_text(self.actor, "actor", ACTOR_MAX, 1)
        if self.reason is not None:
            check_text(self.reason, "reason", REASON_MAX)
        check_instant(self.at, "at")


@dataclass(frozen=True)
class Payment:
    """A payment as stored. `gateway` is the slug preferred at initiation, then the one the payer chose.

    Made of values that no payment can have, it raises INVALID_REFERENCE, GATEWAY_NOT_FOUND or VALIDATION_ERROR, with
    the field's JSON name; the bounds are the interface's and those of decisions, section 3.
    """

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
    is_test: bool = False  # made by test-payment: the simulator alone serves it
    fee: int | None = None  # kobo that the provider keeps of what was paid; None = not known
    net_amount: int | None = None  # kobo: what was paid less the fee; None = not known
    has_adjustments: bool = False  # whether its anomalies hold what its merchant is to be shown
    api_key_id: str | None = None  # the key that initiated it; None for test-payment, and before keys were kept

    def __post_init__(self) -> None:
        self._check_request()
        if self.currency != CURRENCY:
            raise invalid("currency", f"Must be {CURRENCY}.")
        self._check_times()
        if self.failure_reason is not None:
            check_text(self.failure_reason, "failureReason", REASON_MAX)
        check_flag(self.has_adjustments, "hasAdjustments")
        for figure, name in ((self.fee, "fee"), (self.net_amount, "netAmount")):
            if figure is not None:
                check_integer(figure, name, 0, MAX_AMOUNT)

    def _check_request(self) -> None:
        """The values that whoever initiates gives; the others of a new payment are the domain's own."""
        parse_reference(self.reference)
        check_id(self.business_id, "businessId")
        check_member(self.environment, "environment", Environment)
        check_integer(self.amount, "amount", MIN_AMOUNT, MAX_AMOUNT)
        if self.customer_email is not None:
            parse_email(self.customer_email, "customerEmail")
        if self.customer_name is not None:
            check_text(self.customer_name, "customerName", CUSTOMER_NAME_MAX)
        if self.customer_phone is not None:
            check_text(self.customer_phone, "customerPhone", CUSTOMER_PHONE_MAX)
        if self.callback_url is not None:
            parse_url(self.callback_url, "callbackUrl")
        if self.webhook_url is not None:
            parse_url(self.webhook_url, "webhookUrl", ("https",))
        if self.metadata is not None:
            parse_metadata(self.metadata)
        if self.idempotency_key is not None:
            check_text(self.idempotency_key, "idempotencyKey", IDEMPOTENCY_KEY_MAX, 1)
        if self.fingerprint is not None:
            check_bytes(self.fingerprint, "fingerprint", FINGERPRINT_BYTES)
        if self.gateway is not None:
            check_gateway(self.gateway, self.environment)
        check_flag(self.is_test, "isTest")
        if self.api_key_id is not None:
            check_id(self.api_key_id, "apiKeyId")

    def _check_times(self) -> None:
        check_member(self.status, "status", Status)
        check_integer(self.sequence, "sequence", 0, SEQUENCE_MAX)
        check_instant(self.created_at, "createdAt")
        check_instant(self.updated_at, "updatedAt")
        check_instant(self.expires_at, "expiresAt")
        if self.expires_at <= self.created_at:
            raise invalid("expiresAt", "Must be later than createdAt.")
        if self.settled_at is not None:
            check_instant(self.settled_at, "settledAt")
        if (self.settled_at is not None) is not (self.status in PAYMENT.final):
            raise invalid("settledAt", "A payment is settled when its status is final, and only then.")
        if self.failure_reason is not None and self.status is not Status.FAILED:
            raise invalid("failureReason", "Only a failed payment has one.")

    @property
    def has_payer(self) -> bool:
        """Whether anything is kept of who pays."""
        return any(getattr(self, name) is not None for name in PAYER_FIELDS)

    def without_payer(self) -> "Payment":
        """The payment with nothing of who paid, and without the digest of a request that said so."""
        return with_changes(
            self, customer_email=None, customer_name=None, customer_phone=None, metadata=None, fingerprint=None
        )

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
        is_test: bool = False,
        api_key_id: str | None = None,
    ) -> "Payment":
        """A new INITIATED payment that expires `ttl` after `now`; no processor is contacted. Raises as the class does,
        on `expiresAt` for a `ttl` that is not positive."""
        check_instant(now, "createdAt")
        try:
            expires_at = now + ttl
            if expires_at <= now:
                raise invalid("expiresAt", "Must be later than createdAt.")
        except (TypeError, OverflowError):
            raise invalid("expiresAt", "Must be a date and time with a zone.") from None
        fields = {
            "reference": reference,
            "business_id": business_id,
            "environment": environment,
            "amount": amount,
            "currency": CURRENCY,
            "status": PAYMENT.initial,
            "gateway": gateway,
            "customer_email": customer_email,
            "customer_name": customer_name,
            "customer_phone": customer_phone,
            "callback_url": callback_url,
            "webhook_url": webhook_url,
            "metadata": metadata,
            "idempotency_key": idempotency_key,
            "fingerprint": fingerprint,
            "failure_reason": None,
            "sequence": 0,
            "created_at": now,
            "updated_at": now,
            "expires_at": expires_at,
            "settled_at": None,
            "is_test": is_test,
            "fee": None,
            "net_amount": None,
            "has_adjustments": False,
            "api_key_id": api_key_id,
        }
        payment = restore(cls, fields)  # frozen: its `__init__` calls a function for each field, 3 % of an initiation
        payment._check_request()
        return payment

    def dated(self, now: datetime) -> "Payment":
        """The new payment as of the moment that it is stored; its window is as long."""
        return with_changes(self, created_at=now, updated_at=now, expires_at=now + (self.expires_at - self.created_at))

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

    def served_by(self, gateway: str) -> "Payment":
        """The payment with the gateway whose report is about to settle it; raises GATEWAY_NOT_FOUND."""
        check_gateway(gateway, self.environment)
        return with_changes(self, gateway=gateway)

    def with_fee(self, fee: int | None, received: int | None) -> "Payment":
        """The payment with the provider's fee, where it is not known yet: `received` is what the payer paid, the
        payment's own amount where that is not said. A fee that is no part of it is left out."""
        paid = self.amount if received is None else received
        if fee is None or self.fee is not None or not 0 <= fee <= paid:
            return self
        return with_changes(self, fee=fee, net_amount=paid - fee)

    def hand_over(self, gateway: str, now: datetime, actor: str) -> tuple["Payment", Transition | None]:
        """PENDING with the payer's gateway; on a PENDING payment nothing changes and there is no transition."""
        moved, transition = self.served_by(gateway).move(Trigger.PROCESS, now, actor=actor)
        return (moved, transition) if transition else (self, None)

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
        moved = with_changes(
            self,
            status=status,
            sequence=transition.sequence,
            failure_reason=reason if status is Status.FAILED else None,
            updated_at=now,
            settled_at=now if final else None,
        )
        return moved, transition
