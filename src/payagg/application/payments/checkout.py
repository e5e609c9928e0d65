"""The hosted checkout: the payer's page and the one charge.

`process` is claim, call, record: the claim is committed before the provider is called, the call happens outside any
transaction, and the result is recorded only while the claim's token still holds. A process may die between any two of
these; whoever comes next finds the claim and asks the provider before starting anew.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from payagg.application.gateways.payment_options import ChosenProvider, PaymentOptions
from payagg.application.payments.expiry import expire, store_expiry
from payagg.application.payments.provider_calls import ProviderCalls, no_crash
from payagg.application.payments.settlement import Settlement
from payagg.application.payments.verification import redirect_url
from payagg.application.ports.outside import Unavailable
from payagg.application.ports.store import Transaction
from payagg.application.schemas.checkout import (
    CheckoutGateways,
    CheckoutPage,
    ProcessedPayment,
    ProcessPayment,
    PublicPaymentDetail,
)
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.adjustment import money_back
from payagg.domain.attempt import (
    LEASE,
    Attempt,
    AttemptState,
    ExistingHandOff,
    HandOff,
    Wait,
    ensure_attempts_left,
    next_step,
)
from payagg.domain.business import Business
from payagg.domain.errors import ErrorCode, Refusal, must_exist
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import Payment, Status
from payagg.domain.report import PAID_LATE, FaultKind, ProviderFault
from payagg.domain.simulator import scenario_of

# How often a caller polls for the claimant's end: each poll locks the payment's row for a moment.
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
# A caller waits for at most one live claimant, one takeover and one call of its own.
WAIT = LEASE * 3


@dataclass(frozen=True)
class ClaimedAttempt:
    """The right to call the provider once; `is_takeover`: it was another's, so its charge is checked first."""

    payment: Payment
    attempt: Attempt
    choice: ChosenProvider
    business_name: str
    is_takeover: bool


@dataclass(frozen=True)
class Checkout(UseCase):
    payment_options: PaymentOptions
    provider_calls: ProviderCalls
    settlement: Settlement
    crash_point: Callable[[str], None] = no_crash
    running: set["asyncio.Task[ProcessedPayment]"] = field(default_factory=set)

    async def detail(self, reference: str) -> PublicPaymentDetail:
        return PublicPaymentDetail.of(*await self._find(reference), self.clock.now())

    async def page(self, reference: str) -> CheckoutPage:
        """What the hosted page shows of the stored payment; calls no provider."""
        (payment, business), now = await self._find(reference), self.clock.now()
        seen = payment.as_of(now)
        is_open, offered = seen.status is Status.INITIATED, self.payment_options.list_offered
        return CheckoutPage(
            payment=PublicPaymentDetail.of(payment, business, now),
            options=await offered(business, payment.environment, is_test=payment.is_test) if is_open else [],
            redirect_url=redirect_url(seen),
            settled_at=seen.settled_at,
            method=await self.payment_options.method(seen) if seen.is_final else None,
            is_paid_late=seen.status is Status.FAILED and seen.has_adjustments and await self._is_paid(seen),
        )

    async def options(self, reference: str) -> CheckoutGateways:
        payment, business = await self._find(reference)
        listed = await self.payment_options.list_options(business, payment.environment, is_test=payment.is_test)
        return CheckoutGateways(listed)

    async def process(self, reference: str, command: ProcessPayment) -> ProcessedPayment:
        """The hand-off of the payment's one charge, started now or found; safe to repeat, in parallel too.

        Raises VALIDATION_ERROR, PAYMENT_NOT_FOUND, PAYMENT_ALREADY_PROCESSED, PAYMENT_EXPIRED,
        GATEWAY_NOT_AVAILABLE, GATEWAY_ENVIRONMENT_NOT_CONFIGURED, SERVICE_UNAVAILABLE.
        """
        if command.gateway_slug is not None:
            await self.payment_options.ensure_known(command.gateway_slug)
            if command.card_number is not None:
                _scenario(command.gateway_slug, command)
        # A payer who closes the browser must not stop a charge half-way: the work continues without its caller.
        task = asyncio.create_task(self._process(reference, command))
        self.running.add(task)
        task.add_done_callback(self._on_end)
        return await asyncio.shield(task)

    def _on_end(self, task: "asyncio.Task[ProcessedPayment]") -> None:
        self.running.discard(task)
        if not task.cancelled():
            task.exception()  # marked as retrieved, even when the caller is gone

    async def _process(self, reference: str, command: ProcessPayment) -> ProcessedPayment:
        give_up, pause = self.clock.now() + WAIT, FIRST_PAUSE_SECONDS
        while self.clock.now() < give_up:
            claimed = await self._claim(reference, command)
            if isinstance(claimed, ProcessedPayment):
                return claimed
            if claimed is None:
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
            elif claimed.is_takeover:
                await self._resolve(claimed, command)
            elif (done := await self._start(claimed)) is not None:
                return done
        raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, "The provider did not answer in time; try again.")

    @retry_on_conflict
    async def _claim(self, reference: str, command: ProcessPayment) -> "ClaimedAttempt | ProcessedPayment | None":
        """A hand-off that exists, a claim, or None while another caller's claim is alive."""
        claimed: ClaimedAttempt | ProcessedPayment | None = None
        try:
            async with self.store.begin() as tx:
                claimed = await self._decide(tx, reference, command)
        except Unavailable:
            if not isinstance(claimed, ClaimedAttempt):
                raise
            return await self._found_again(claimed)
        except Refusal as refusal:
            if refusal.code is ErrorCode.PAYMENT_EXPIRED:
                await expire(self.settlement, reference)
            raise
        return claimed

    async def _found_again(self, claimed: ClaimedAttempt) -> ClaimedAttempt:
        """A claim whose COMMIT had no answer, with a new lease; its token, drawn before the write, identifies it. The
        payment's lock waits for a COMMIT that is still running. Raises Conflict when the claim was not stored or was
        taken over: the caller claims again."""
        renewed = claimed.attempt.take_over(self.entropy.hex(16), self.clock.now())
        async with self.store.begin() as tx:
            await tx.payments.lock(renewed.reference)
            await tx.attempts.save(renewed, claimed.attempt.token)
        return replace(claimed, attempt=renewed)

    async def _decide(
        self, tx: Transaction, reference: str, command: ProcessPayment
    ) -> "ClaimedAttempt | ProcessedPayment | None":
        found = await tx.payments.lock_aggregate(reference)
        if found is None or found.business is None:
            raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
        payment, business, attempts, now = found.payment, found.business, found.attempts, self.clock.now()
        step = next_step(payment, attempts, command.gateway_slug, now)
        business.ensure_takes_money(payment.environment)
        if isinstance(step, ExistingHandOff):
            return _processed_view(payment, step.attempt, step.hand_off)
        if isinstance(step, Wait):
            if step.renewed is not None:
                await tx.attempts.save(step.renewed, step.renewed.token)
            return None
        token, unanswered, options = self.entropy.hex(16), step.unanswered, self.payment_options
        if unanswered is not None:
            choice, is_admitted = await options.provider_of_attempt(tx, unanswered, payment.environment)
            if choice is not None and is_admitted:
                claim = unanswered.take_over(token, now)
                await tx.attempts.save(claim, unanswered.token)
                return ClaimedAttempt(payment, claim, choice, business.name, is_takeover=True)
            if unanswered.is_in_doubt:
                raise _no_answer(unanswered)
        choice = await options.choose(tx, payment, step.gateway)
        ensure_attempts_left(attempts)
        claim = Attempt.claim(
            payment,
            len(attempts) + 1,
            gateway=step.gateway,
            gateway_id=choice.gateway_id,
            scenario=_scenario(step.gateway, command),
            token=token,
            now=now,
            account=choice.account(payment.environment),
        )
        if unanswered is not None:
            await tx.attempts.save(unanswered.refuse(), unanswered.token)
        await tx.attempts.add(claim)
        return ClaimedAttempt(payment, claim, choice, business.name, is_takeover=False)

    async def _resolve(self, claimed: ClaimedAttempt, command: ProcessPayment) -> None:
        """Checks an attempt without an answer, then settles the payment or closes the attempt for the next one."""
        attempt = claimed.attempt
        try:
            report = await self.provider_calls.fetch(claimed.payment, attempt, claimed.choice, "process")
        except ProviderFault:
            # No payer was sent to that charge, so another gateway may be used. The same gateway must answer first; so
            # must one whose hand-off a restore may have lost.
            other = command.gateway_slug not in (None, attempt.gateway) and not attempt.is_in_doubt
            await self._finish(claimed, AttemptState.REFUSED if other else AttemptState.UNKNOWN)
            if other:
                return
            raise _no_answer(attempt) from None
        await self.settlement.report(report, attempt.gateway, claimed.payment.environment, "process", asked=attempt)
        may_pay_there = report.may_be_paid_there(attempt)
        await self._finish(claimed, AttemptState.UNKNOWN if may_pay_there else AttemptState.REFUSED)
        if may_pay_there:
            raise _no_answer(attempt)

    async def _start(self, claimed: ClaimedAttempt) -> ProcessedPayment | None:
        """Calls the provider and records the result; None when an earlier call turns out to have reached it."""
        self.crash_point("P2")
        try:
            hand_off = await self.provider_calls.start(
                claimed.payment, claimed.attempt, claimed.choice, claimed.business_name
            )
        except ProviderFault as fault:
            await self._finish(claimed, AttemptState.REFUSED if fault.kind.is_certain else AttemptState.UNKNOWN)
            if fault.kind is FaultKind.DUPLICATE:
                return None
            if fault.kind is FaultKind.BAD_CREDENTIALS:
                raise Refusal(ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED, field="gatewaySlug") from None
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, field="gatewaySlug") from None
        self.crash_point("P4")
        processed = await self._record(claimed, hand_off)
        self.crash_point("P5")
        return processed

    @retry_on_conflict
    async def _record(self, claimed: ClaimedAttempt, hand_off: HandOff) -> ProcessedPayment | None:
        """Stores the hand-off while the claim still holds; None when it was taken over, or the payment moved to another
        cell after its lease."""
        async with self.store.begin() as tx:
            found = await tx.payments.lock_for_status(claimed.payment.reference)
            if found is None:
                return None
            payment, now = found.payment, self.clock.now()
            payment.ensure_processable(now)
            stored = found.attempts[claimed.attempt.number - 1]
            if stored.token != claimed.attempt.token:
                return _processed_view(payment, stored, stored.hand_off) if stored.hand_off else None
            handed = stored.hand_over(hand_off, now, self.entropy.chance())
            await tx.attempts.save(handed, claimed.attempt.token)
            moved, transition = payment.hand_over(handed.gateway, now, actor="payer")
            await self.settlement.write(tx, moved, transition, found.subscribers)
            return _processed_view(moved, handed, hand_off)

    @retry_on_conflict
    async def _finish(self, claimed: ClaimedAttempt, state: AttemptState) -> None:
        """Frees a claim without a hand-off, as an event or a check left it during the call; an UNKNOWN one keeps its
        status checks."""
        attempt = claimed.attempt
        async with self.store.begin() as tx:
            if await tx.payments.lock(attempt.reference) is None:
                return
            stored = (await tx.attempts.of_payment(attempt.reference))[attempt.number - 1]
            if stored.token != attempt.token:
                return
            is_unknown = state is AttemptState.UNKNOWN
            ended = stored.leave_unknown(self.clock.now(), self.entropy.chance()) if is_unknown else stored.refuse()
            await tx.attempts.save(ended, attempt.token)

    async def _is_paid(self, payment: Payment) -> bool:
        async with self.store.begin() as tx:
            known = await tx.anomalies.of_payment(payment.reference)
        came = payment.amount * sum(fact.kind in PAID_LATE for fact in known)
        return money_back(known, payment.amount).kobo < came

    async def _find(self, reference: str) -> tuple[Payment, Business]:
        payment, business = must_exist(await self.store.find_checkout(reference), code=ErrorCode.PAYMENT_NOT_FOUND)
        return await store_expiry(self.settlement, payment), business


def _scenario(slug: str, command: ProcessPayment) -> str | None:
    """The simulator's outcome for the submitted test card; the number itself is not passed on."""
    return scenario_of(command.card_number) if slug == SANDBOX_SLUG else None


def _no_answer(attempt: Attempt) -> Refusal:
    """A provider that does not say what became of its attempt. A payer who may have paid must not read that this choice
    cannot be used and nothing was charged."""
    if attempt.is_in_doubt:
        return Refusal(ErrorCode.SERVICE_UNAVAILABLE, retry_after=LEASE.seconds)
    return Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, field="gatewaySlug")


def _processed_view(payment: Payment, attempt: Attempt, hand_off: HandOff) -> ProcessedPayment:
    return ProcessedPayment(
        reference=payment.reference,
        status=payment.status,
        gateway=attempt.gateway,
        handoff=hand_off.kind,
        checkout_url=hand_off.checkout_url,
    )
