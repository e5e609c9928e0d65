"""Defects for the simulation to find: each breaks one rule of the product and names the invariant that must notice."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

import payagg.domain.attempt as attempts
from payagg.adapters.memory import delivery_queue
from payagg.adapters.memory.store import MemoryStore
from payagg.application import settlement
from payagg.application.checkout import Checkout, ClaimedAttempt, _processed
from payagg.application.dispatcher import Dispatcher
from payagg.application.gateways import Gateways
from payagg.application.payment_options import ChosenProvider, PaymentOptions
from payagg.application.payments import Payments
from payagg.application.ports import TryResult
from payagg.application.provider_calls import ProviderCalls
from payagg.application.provider_events import ProviderEventRoute, ProviderEvents
from payagg.application.schemas.payments import ProcessedPayment, ProcessPayment
from payagg.application.settlement import Settlement
from payagg.application.store import ClaimedDelivery, DeliveryResult, Transaction
from payagg.domain.attempt import Attempt, AttemptState
from payagg.domain.checks import revised
from payagg.domain.payment import Payment, Status, Transition, Trigger
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment
from payagg.domain.webhook import EVENT_FOR

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Planted:
    """`caught_by` is the invariant's name; `plant` switches the defect on."""

    name: str
    caught_by: str
    plant: Plant


DEFECTS: list[Planted] = []


def planted(caught_by: str) -> Callable[[Plant], Plant]:
    def add(plant: Plant) -> Plant:
        DEFECTS.append(Planted(plant.__name__.replace("_", " "), caught_by, plant))
        return plant

    return add


# --- the charge ------------------------------------------------------------------------------------------------------


@planted("INV1")
def a_takeover_begins_anew_without_asking(patch: pytest.MonkeyPatch) -> None:
    async def resolve(self: Checkout, claimed: ClaimedAttempt, command: ProcessPayment) -> None:
        await self._finish(claimed, AttemptState.REFUSED)

    patch.setattr(Checkout, "_resolve", resolve)


@planted("INV1")
def a_lost_answer_counts_as_no_charge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FaultKind, "is_certain", property(lambda kind: True))


@planted("INV7")
def a_claim_is_never_stale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Attempt, "is_held", lambda attempt, now: attempt.state is AttemptState.CLAIMED)


@planted("INV8")
def a_hand_off_is_told_before_it_is_kept(patch: pytest.MonkeyPatch) -> None:
    record = Checkout._record

    async def told_first(self: Checkout, claimed: ClaimedAttempt, hand_off: Any) -> ProcessedPayment:
        asyncio.get_running_loop().create_task(record(self, claimed, hand_off))
        return _processed(claimed.payment, claimed.attempt, hand_off)

    patch.setattr(Checkout, "_record", told_first)


@planted("INV0")
def a_stale_claimant_records_its_result(patch: pytest.MonkeyPatch) -> None:
    record = Checkout._record

    async def whatever_the_token(self: Checkout, claimed: ClaimedAttempt, hand_off: Any) -> ProcessedPayment | None:
        async with self.store.begin() as tx:
            stored = (await tx.payments.attempts(claimed.payment.reference))[claimed.attempt.number - 1]
        own = replace(claimed.attempt, token=stored.token)
        return await record(self, replace(claimed, attempt=own), hand_off)

    patch.setattr(Checkout, "_record", whatever_the_token)


# --- what providers say ----------------------------------------------------------------------------------------------


@planted("INV5")
def the_amount_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProviderReport, "mismatch", lambda report, payment: None)


@planted("INV2")
def the_reconciler_ignores_late_successes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempts, "_is_past_asking", lambda payment, attempt: payment.is_final)
    patch.setattr(settlement, "ends_asking", lambda payment: payment.is_final)


@planted("INV2")
def the_reconciler_gives_up_after_three_asks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempts, "ASK_AFTER", attempts.ASK_AFTER[:3])


@planted("INV3")
def silence_counts_as_a_failure(patch: pytest.MonkeyPatch) -> None:
    fetch = ProviderCalls.fetch

    async def fails(
        self: ProviderCalls, payment: Payment, attempt: Attempt, choice: ChosenProvider, actor: str
    ) -> ProviderReport:
        try:
            return await fetch(self, payment, attempt, choice, actor)
        except ProviderFault:
            return ProviderReport(attempt.provider_reference, Outcome.FAILED, "silence", frozenset({payment.amount}))

    patch.setattr(ProviderCalls, "fetch", fails)
    patch.setattr(Attempt, "may_still_be_paid", lambda attempt, payment, now: False)


@planted("INV3")
def pending_payments_expire_by_our_own_clock(patch: pytest.MonkeyPatch) -> None:
    open_states = (Status.INITIATED, Status.PENDING)
    patch.setattr(Payment, "is_expired", lambda p, now: p.status in open_states and now >= p.expires_at)


@planted("INV8")
def an_event_is_acknowledged_before_it_is_kept(patch: pytest.MonkeyPatch) -> None:
    receive = ProviderEvents.receive

    async def acknowledge(
        self: ProviderEvents, route: ProviderEventRoute, body: bytes, headers: Mapping[str, str]
    ) -> None:
        asyncio.get_running_loop().create_task(receive(self, route, body, headers))

    patch.setattr(ProviderEvents, "receive", acknowledge)


@planted("INV3")
def a_drain_ends_the_payments_in_flight(patch: pytest.MonkeyPatch) -> None:
    end_drains = Gateways.end_drains

    async def with_payments(self: Gateways) -> int:
        ended = await end_drains(self)
        if ended:
            async with self.store.begin() as tx:
                own = Settlement(self.store, self.clock, self.entropy)
                for reference in list(tx.payments.state.payments):  # type: ignore[attr-defined]
                    payment = await tx.payments.lock(reference)
                    if payment is not None and payment.status is Status.PENDING:
                        await own.move(tx, payment, Trigger.FAIL, actor="drains")
        return ended

    patch.setattr(Gateways, "end_drains", with_payments)


@planted("INV2")
def a_drained_gateway_answers_for_nothing(patch: pytest.MonkeyPatch) -> None:
    assigned = PaymentOptions.assigned

    async def active_ones(
        self: PaymentOptions, tx: Transaction, attempt: Attempt, environment: Environment
    ) -> ChosenProvider | None:
        gateway = await tx.gateways.get_any(attempt.gateway_id) if attempt.gateway_id else None
        is_off = gateway is not None and not gateway.is_active
        return None if is_off else await assigned(self, tx, attempt, environment)

    patch.setattr(PaymentOptions, "assigned", active_ones)


# --- payments --------------------------------------------------------------------------------------------------------


@planted("INV6")
def the_idempotency_key_is_ignored(patch: pytest.MonkeyPatch) -> None:
    async def without_looking(self: MemoryStore, payment: Payment, remembered: object = None) -> tuple[Payment, bool]:
        async with self.begin():
            self.state.payments[payment.reference] = payment
        return payment, True

    patch.setattr(MemoryStore, "add_payment", without_looking)


@planted("INV8")
def a_payment_is_acknowledged_before_it_is_kept(patch: pytest.MonkeyPatch) -> None:
    initiate = Payments._initiate

    async def kept_later(
        self: Payments, command: Any, business: Any, environment: Any, remembered: Any, add: Any
    ) -> Any:
        async def later(payment: Payment) -> tuple[Payment, bool]:
            asyncio.get_running_loop().create_task(add(payment))
            return payment, True

        return await initiate(self, command, business, environment, remembered, later)

    patch.setattr(Payments, "_initiate", kept_later)


# --- telling merchants -----------------------------------------------------------------------------------------------


@planted("INV4")
def an_event_is_written_after_the_commit(patch: pytest.MonkeyPatch) -> None:
    async def write(
        self: Settlement, tx: Transaction, payment: Payment, transition: Transition | None, subscribers: Any = None
    ) -> Payment:
        if transition is not None:
            await tx.payments.save(payment, transition)
            asyncio.get_running_loop().create_task(told(self, payment, transition))
        return payment

    async def told(self: Settlement, payment: Payment, transition: Transition) -> None:
        async with self.store.begin() as tx:
            await self._emit(tx, payment, EVENT_FOR[payment.status], transition.sequence)

    patch.setattr(Settlement, "write", write)


@planted("INV4")
def a_delivery_counts_as_made_before_it_is_sent(patch: pytest.MonkeyPatch) -> None:
    tried = Dispatcher._try

    async def noted_first(self: Dispatcher, one: ClaimedDelivery) -> None:
        self._note(DeliveryResult(one, TryResult(200, None, 0), self.clock.now(), retry_at=None))
        await tried(self, one)

    patch.setattr(Dispatcher, "_try", noted_first)


@planted("INV4")
def each_try_has_an_event_id_of_its_own(patch: pytest.MonkeyPatch) -> None:
    tried = Dispatcher._try

    async def renamed(self: Dispatcher, one: ClaimedDelivery) -> None:
        fresh = revised(one.delivery, event_id=self.entropy.id("evt", self.clock.now()))
        await tried(self, replace(one, delivery=fresh))

    patch.setattr(Dispatcher, "_try", renamed)


@planted("INV4")
def a_delivery_is_given_up_after_one_try(patch: pytest.MonkeyPatch) -> None:
    finished = Dispatcher._finished
    patch.setattr(
        Dispatcher, "_finished", lambda self, one, sent, at: replace(finished(self, one, sent, at), retry_at=None)
    )


@planted("INV7")
def a_delivery_lease_never_runs_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delivery_queue, "_is_leased", lambda delivery, now: delivery.lease_until is not None)
