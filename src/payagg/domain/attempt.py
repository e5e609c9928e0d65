"""Attempts to start a charge at a provider: what `process` may do next, the hand-off, and the schedule of checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from payagg.domain.checks import check_id, check_instant, check_integer, check_member, check_text, with_changes
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import SEQUENCE_MAX, Payment, check_gateway
from payagg.domain.values import CLOCK_SLACK, CURRENCY, MAX_AMOUNT, MIN_AMOUNT, Environment, parse_reference

ATTEMPTS_MAX = 20  # per payment: each may be a call to a provider that anybody who holds the checkout link can cause
CHECKOUT_URL_MAX = 8192  # characters; a hand-off may carry launch parameters
TOKEN_MAX = 64
LEASE = timedelta(seconds=20)  # longer than a provider call may take, so a live claimant is never overtaken
VERIFY_EVERY = timedelta(seconds=2)  # at most one provider call per reference, and less often as the charge ages
VERIFY_PART = 100  # of the time since the hand-off: whoever asks for three days causes some 800 calls, each a kept row
VERIFY_FINAL_EVERY = timedelta(hours=1)  # the same of a payment that is final

# Of the time since the hand-off, so that a burst of payments does not return as one. Never more than a drain lasts: a
# gateway that is deleted right after it is asked for the last time before its secrets go.
CHECK_JITTER = 0.1
CHECK_SPREAD_MAX = timedelta(minutes=25)

# When an attempt is checked, counted from its hand-off, until its payment is SUCCESS or REVERSED.
CHECK_AFTER = (
    timedelta(minutes=1),
    timedelta(minutes=3),
    timedelta(minutes=10),
    timedelta(minutes=30),
    timedelta(hours=1),
    timedelta(hours=3),
    timedelta(hours=6),
    timedelta(hours=12),
    timedelta(hours=24),
    timedelta(hours=48),
    timedelta(hours=72),
)

# The last check, while nobody answers it: by then nobody else asks, and the payment would stay PENDING for good, or its
# refund unknown.
RETRY_LAST_EVERY = timedelta(hours=1)
RETRY_LAST_FOR = timedelta(hours=24)

LONGEST_CHECK = CHECK_AFTER[-1] + CHECK_SPREAD_MAX  # from the hand-off to the last check

# When a paid charge is checked, counted from its confirmation here: this finds a refund or a dispute whose one event
# was lost.
CHECK_PAID_AFTER = tuple(timedelta(days=days) for days in (1, 7, 30, 90, 180))
# After a restore, charges confirmed within this time are checked at once.
HASTEN_PAID = timedelta(days=30)

FIRST_CHECK_MAX = CHECK_AFTER[0] * (1 + CHECK_JITTER)  # the latest first check of a handed-off attempt


def next_check(
    since: datetime, now: datetime, chance: float, schedule: Sequence[timedelta] = CHECK_AFTER
) -> datetime | None:
    """The next instant of `schedule` still ahead, a little spread by `chance` in [0, 1); None after the last.

    Instants that passed while no worker ran are skipped: one check answers for all of them.
    """
    ahead = (after for after in schedule if since + after > now)
    after = next(ahead, None)
    return since + after + min(after * CHECK_JITTER, CHECK_SPREAD_MAX) * chance if after is not None else None


class HandOffKind(Enum):
    REDIRECT = "REDIRECT"
    SDK = "SDK"
    SIMULATOR = "SIMULATOR"


@dataclass(frozen=True)
class HandOff:
    """Where the payer goes next. Returned unchanged to every repeat of `process`.

    Raises VALIDATION_ERROR for what no hand-off can be, with the field's JSON name.
    """

    kind: HandOffKind
    checkout_url: str

    def __post_init__(self) -> None:
        check_member(self.kind, "handoff", HandOffKind)
        check_text(self.checkout_url, "checkoutUrl", CHECKOUT_URL_MAX, 1)


class AttemptState(Enum):
    """CLAIMED: a process owns the call. HANDED_OFF: the payer was sent. REFUSED: certainly no charge. UNKNOWN: the
    provider's answer never came; only a check shows the outcome."""

    CLAIMED = "CLAIMED"
    HANDED_OFF = "HANDED_OFF"
    REFUSED = "REFUSED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class ChargeFacts:
    """A provider's facts about a charge beside its status; None = not given. Amounts are kobo."""

    provider_id: str | None = None  # the provider's own id of the transaction; internal, for operators alone
    channel: str | None = None  # `card`, `bank_transfer` ...: the provider's word
    fee: int | None = None
    received: int | None = None  # what the payer paid, a fee on top included
    paid_at: datetime | None = None  # by the provider's clock


NO_FACTS = ChargeFacts()


@dataclass(frozen=True)
class Attempt:
    """One attempt to start a charge. At most one attempt per payment can ever hold a hand-off.

    Raises INVALID_REFERENCE, GATEWAY_NOT_FOUND or VALIDATION_ERROR for what no attempt can be, with the field's name.
    """

    reference: str
    number: int
    gateway_id: str | None  # None for the simulator, which is not a managed gateway
    gateway: str  # slug
    provider_reference: str
    token: str  # fencing: a result is recorded only while this still matches
    state: AttemptState
    lease_until: datetime
    scenario: str | None  # the simulator's outcome word; never a card number
    hand_off: HandOff | None
    created_at: datetime
    handed_off_at: datetime | None = None  # for one in doubt, when the payer may have been sent there
    asks: int = 0  # the number of checks so far
    next_ask_at: datetime | None = None
    last_ask_at: datetime | None = None
    last_decline: str | None = None  # our word for the decline that the provider named when last asked, if it did
    account: str | None = None  # fingerprint of the provider account that the charge was started with
    confirmed_at: datetime | None = None  # when a provider's report that it was paid was first accepted as true
    provider_id: str | None = None  # this and the next three as in ChargeFacts
    channel: str | None = None
    fee: int | None = None
    paid_at: datetime | None = None

    def __post_init__(self) -> None:
        parse_reference(self.reference)
        check_integer(self.number, "number", 1, SEQUENCE_MAX)
        if self.gateway_id is not None:
            check_id(self.gateway_id, "gatewayId")
        check_gateway(self.gateway)
        if self.provider_reference != provider_reference(self.reference, self.number):
            raise invalid("providerReference", "Must be made of the payment's reference and the attempt's number.")
        check_text(self.token, "token", TOKEN_MAX, 1)
        check_member(self.state, "state", AttemptState)
        if (self.state is AttemptState.HANDED_OFF) is not isinstance(self.hand_off, HandOff):
            raise invalid("handOff", "An attempt has one when it is HANDED_OFF, and only then.")
        check_integer(self.asks, "asks", 0, SEQUENCE_MAX)
        check_instant(self.lease_until, "leaseUntil")
        check_instant(self.created_at, "createdAt")

    @classmethod
    def claim(
        cls,
        payment: Payment,
        number: int,
        *,
        gateway: str,
        gateway_id: str | None,
        scenario: str | None,
        token: str,
        now: datetime,
        account: str | None = None,
    ) -> "Attempt":
        """A claim on the right to call the provider once, under a reference no earlier attempt used."""
        return cls(
            reference=payment.reference,
            number=number,
            gateway_id=gateway_id,
            gateway=gateway,
            provider_reference=provider_reference(payment.reference, number),
            token=token,
            state=AttemptState.CLAIMED,
            lease_until=now + LEASE,
            scenario=scenario,
            hand_off=None,
            created_at=now,
            account=account,
            # If the claimant dies, the worker checks the charge even when nobody calls process again.
            next_ask_at=now + LEASE,
        )

    def may_still_be_paid(self, payment: Payment, now: datetime) -> bool:
        """Whether the payer's page may take another card after a decline: a provider's page does until the payment's
        window closes, the simulator answers once."""
        is_page = self.hand_off is not None and self.hand_off.kind is not HandOffKind.SIMULATOR
        return is_page and not payment.is_final and now < payment.expires_at

    def verify_every(self, now: datetime, *, is_final: bool) -> timedelta:
        """The shortest pause between two calls of `verify`; `is_final`: the payment."""
        age = now - (self.handed_off_at or self.created_at)
        return max(VERIFY_FINAL_EVERY if is_final else VERIFY_EVERY, age / VERIFY_PART)

    @property
    def is_handed_off(self) -> bool:
        """Whether the payer was sent to it, or may have been: only such an attempt can fail its payment."""
        return self.state is AttemptState.HANDED_OFF

    def confirm(self, facts: ChargeFacts, now: datetime) -> "Attempt":
        """Paid: with what the provider says of it that was not known, and asked about from now on as CHECK_PAID_AFTER
        says. `confirmed_at` stays as it was first set. The simulator has nothing to add, then or later."""
        if self.gateway == SANDBOX_SLUG:
            return with_changes(self, next_ask_at=None)
        since = self.confirmed_at or now
        return with_changes(
            self,
            confirmed_at=since,
            next_ask_at=next_check(since, now, 0, CHECK_PAID_AFTER),
            provider_id=self.provider_id or facts.provider_id,
            channel=self.channel or facts.channel,
            fee=facts.fee if self.fee is None else self.fee,
            paid_at=self.paid_at or facts.paid_at,
        )

    def is_of_other_account(self, account: str | None) -> bool:
        """Whether the charge was started with another provider account than `account`; an unknown one counts as the
        same."""
        return self.account is not None and account is not None and self.account != account

    def is_other_transaction(self, provider_id: str | None) -> bool:
        """Whether `provider_id` is not the transaction that paid it: two of them may carry one reference."""
        return self.provider_id is not None and provider_id is not None and self.provider_id != provider_id

    @property
    def is_in_doubt(self) -> bool:
        """Whether the payer may have been sent to it in a time that a restore removed. Until its provider has answered
        that nobody is paying there, no other charge may start."""
        return self.hand_off is None and self.handed_off_at is not None

    def leave_in_doubt(self, at: datetime) -> "Attempt":
        """A restored database lacks its end: it may have been handed off right after the instant `at`."""
        return with_changes(self, handed_off_at=at)

    def take_over(self, token: str, now: datetime) -> "Attempt":
        """The claim under a new owner; the old owner's token no longer records anything."""
        return with_changes(self, state=AttemptState.CLAIMED, token=token, lease_until=now + LEASE)

    def hand_over(self, hand_off: HandOff, now: datetime, chance: float) -> "Attempt":
        """HANDED_OFF at `now`, first asked about as the schedule says."""
        return with_changes(
            self,
            state=AttemptState.HANDED_OFF,
            hand_off=hand_off,
            handed_off_at=now,
            next_ask_at=next_check(now, now, chance),
        )

    def refuse(self) -> "Attempt":
        """REFUSED: nobody was sent there, and no check is needed. One that was found paid is UNKNOWN and keeps its
        checks: it may be refunded. So does one in doubt, whose payer may be there."""
        if self.confirmed_at is not None:
            return with_changes(self, state=AttemptState.UNKNOWN)
        return with_changes(
            self, state=AttemptState.REFUSED, next_ask_at=self.next_ask_at if self.is_in_doubt else None
        )

    def leave_unknown(self, now: datetime, chance: float) -> "Attempt":
        """UNKNOWN: no answer came; it will be checked. One that was found paid keeps the checks it has."""
        due = next_check(now, now, chance) if self.confirmed_at is None else self.next_ask_at
        return with_changes(self, state=AttemptState.UNKNOWN, next_ask_at=due)

    def is_held(self, now: datetime) -> bool:
        """Whether a live claimant may still be calling the provider."""
        return self.state is AttemptState.CLAIMED and now < self.lease_until <= now + LEASE + CLOCK_SLACK


def provider_reference(reference: str, number: int) -> str:
    """Attempt 1 carries our reference, attempt n `REF.n`: a provider never sees one reference twice."""
    return reference if number == 1 else f"{reference}.{number}"


def payment_reference(provider_reference: str) -> str:
    """The payment an attempt's reference belongs to."""
    return provider_reference.partition(".")[0]


@dataclass(frozen=True)
class Charge:
    """Everything a provider adapter needs to start or look up one charge. `amount` is kobo.

    Raises INVALID_REFERENCE or VALIDATION_ERROR for what no charge can be, with the field's JSON name.
    """

    reference: str  # the attempt's provider reference
    amount: int
    currency: str
    environment: Environment
    credentials: Mapping[str, str] = field(repr=False)
    checkout_url: str  # our hosted page, where the payer returns
    business_name: str = ""
    customer_email: str | None = field(default=None, repr=False)
    customer_name: str | None = field(default=None, repr=False)
    customer_phone: str | None = field(default=None, repr=False)
    scenario: str | None = None
    handed_off_at: datetime | None = None
    now: datetime | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.reference, str):
            raise invalid("reference", "Must be a string.")
        parse_reference(payment_reference(self.reference))
        check_integer(self.amount, "amount", MIN_AMOUNT, MAX_AMOUNT)
        if self.currency != CURRENCY:
            raise invalid("currency", f"Must be {CURRENCY}.")
        check_member(self.environment, "environment", Environment)


@dataclass(frozen=True)
class ExistingHandOff:
    """The payer was sent somewhere already: the same hand-off is the answer."""

    attempt: Attempt
    hand_off: HandOff


@dataclass(frozen=True)
class Wait:
    """A live claimant may be calling a provider. `renewed`: its claim to store, where a clock that was ahead dated it:
    nobody knows how old it is, so its lease begins again."""

    renewed: Attempt | None = None


@dataclass(frozen=True)
class Start:
    """A new attempt may start at `gateway`. Before, `unanswered` is to be asked about: its claimant died or its answer
    never came, so its charge may exist. It is passed over only when its provider cannot be asked at all, and then only
    if it is not in doubt."""

    gateway: str
    unanswered: Attempt | None


def next_step(
    payment: Payment, attempts: Sequence[Attempt], choice: str | None, now: datetime
) -> ExistingHandOff | Wait | Start:
    """What `process` may do next for a payer who chose the gateway `choice` (None: the preferred one).

    Raises PAYMENT_ALREADY_PROCESSED, PAYMENT_EXPIRED, or VALIDATION_ERROR when there is no gateway to start at.
    """
    payment.ensure_processable(now)
    for attempt in attempts:
        if attempt.hand_off is not None:
            return ExistingHandOff(attempt, attempt.hand_off)
    last = attempts[-1] if attempts else None
    if last is not None and last.is_held(now):
        return Wait()
    if last is not None and last.state is AttemptState.CLAIMED and now < last.lease_until:
        return Wait(with_changes(last, lease_until=now + LEASE))
    gateway = choice or payment.gateway
    if gateway is None:
        raise invalid("gatewaySlug", "Choose a gateway.")
    is_unanswered = last is not None and last.state in (AttemptState.CLAIMED, AttemptState.UNKNOWN)
    return Start(gateway, last if is_unanswered else None)


def ensure_attempts_left(attempts: Sequence[Attempt]) -> None:
    """Raises GATEWAY_NOT_AVAILABLE once ATTEMPTS_MAX were made."""
    if len(attempts) >= ATTEMPTS_MAX:
        raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, "Too many tries; start a new payment.", "gatewaySlug")


def postpone_check(payment: Payment, attempt: Attempt, now: datetime) -> Attempt | None:
    """The attempt to store instead of a check at `now`, or None when a check is due.

    A refused attempt is not checked again, unless it was found paid after all or is in doubt, nor is one whose result
    can change nothing. A live claim gets the time to end.
    """
    is_refused = attempt.state is AttemptState.REFUSED and attempt.confirmed_at is None and not attempt.is_in_doubt
    if is_refused or _is_past_asking(payment, attempt):
        return with_changes(attempt, next_ask_at=None)
    if attempt.is_held(now):
        return with_changes(attempt, next_ask_at=attempt.lease_until)
    return None


def after_check(payment: Payment, attempt: Attempt, began: datetime, chance: float, *, is_answered: bool) -> Attempt:
    """The attempt after a check that began at `began`, with the next instant of its schedule; none after the last,
    which is made again for RETRY_LAST_FOR, and once at least, until it is answered.

    An answer is no evidence about the time after its request: when a worker was frozen in between, the instants that
    passed meanwhile are still due.
    """
    is_over = _is_past_asking(payment, attempt)
    since = attempt.confirmed_at or attempt.handed_off_at or attempt.created_at
    schedule: Sequence[timedelta] = CHECK_AFTER if attempt.confirmed_at is None else CHECK_PAID_AFTER
    due, end = next_check(since, began, chance, schedule), since + schedule[-1]
    # After an outage of ours the first check at all may come later than that day.
    is_first = (attempt.last_ask_at or since) < end
    if due is None and not is_answered and (is_first or began < end + RETRY_LAST_FOR):
        due = began + RETRY_LAST_EVERY
    last = max(began, attempt.last_ask_at or began)
    return with_changes(attempt, asks=attempt.asks + 1, last_ask_at=last, next_ask_at=None if is_over else due)


def _is_past_asking(payment: Payment, attempt: Attempt) -> bool:
    """Whether no answer about the attempt can matter any more.

    A final payment may be paid by this attempt, too, and the event lost: checks go on to the end of the schedule. A
    paid one may be refunded or disputed. The simulator never pays late.
    """
    return attempt.gateway == SANDBOX_SLUG and payment.is_final
