"""Verification: the assigned provider's status of a charge, fetched once however many callers wait."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit, urlunsplit

from payagg.application.gateways.payment_options import ChosenProvider, PaymentOptions
from payagg.application.payments.expiry import store_expiry
from payagg.application.payments.provider_calls import ProviderCalls, no_crash
from payagg.application.payments.settlement import Settlement
from payagg.application.ports.outside import Clock
from payagg.application.ports.store import Store
from payagg.application.schemas.checkout import PayerReason, VerifiedPayment
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import Attempt, AttemptState
from payagg.domain.errors import ErrorCode, Refusal, must_exist
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import DECLINED, PAYMENT, Payment, Status
from payagg.domain.report import Outcome, ProviderFault, ReportEffect
from payagg.domain.values import CLOCK_SLACK, Environment, ascii_url


@dataclass(frozen=True)
class Verification:
    store: Store
    clock: Clock
    payment_options: PaymentOptions
    provider_calls: ProviderCalls
    settlement: Settlement
    crash_point: Callable[[str], None] = no_crash
    verifying: dict[str, "asyncio.Task[VerifiedPayment]"] = field(default_factory=dict)

    async def verify(self, reference: str) -> VerifiedPayment:
        """The status after a check at the assigned provider, as often as `Attempt.verify_every` says.

        A final payment is checked, seldom, for refunds and disputes whose event was lost.
        When the provider is unreachable, the answer is the stored status.

        Raises GATEWAY_NOT_AVAILABLE without credentials, PAYMENT_AMOUNT_MISMATCH when the provider's facts differ from
        the payment.
        """
        task = self.verifying.get(reference)
        if task is not None:
            return await self._as_stored(await asyncio.shield(task))
        task = self.verifying[reference] = asyncio.create_task(self._verify(reference))
        task.add_done_callback(lambda _: self.verifying.pop(reference, None))
        return await asyncio.shield(task)

    async def _as_stored(self, verified: VerifiedPayment) -> VerifiedPayment:
        """The answer of another caller's check as of now: it may have read the payment before this caller came, and so
        before a change that this one was told of."""
        current = await self.store.find_payment(verified.reference) if verified.status not in PAYMENT.final else None
        seen = current.as_of(self.clock.now()) if current is not None else None
        return verified if seen is None or seen.status is verified.status else _verified_view(seen, None)

    async def _verify(self, reference: str) -> VerifiedPayment:
        now = self.clock.now()
        payment, attempts = must_exist(await self.store.find_with_attempts(reference), code=ErrorCode.PAYMENT_NOT_FOUND)
        seen = payment.as_of(now)
        attempt = next((a for a in attempts if a.state is AttemptState.HANDED_OFF), None)
        if attempt is None:
            return _verified_view((await store_expiry(self.settlement, payment)).as_of(now), None)
        # Refunds and disputes of a final payment are checked seldom, and are no part of this answer.
        every = attempt.verify_every(now, is_final=seen.is_final)
        dates = (attempt.last_ask_at, seen.settled_at)
        asked_at = max((at for at in dates if at and at <= now + CLOCK_SLACK), default=None)
        if seen.is_final and (attempt.gateway == SANDBOX_SLUG or (asked_at and now < asked_at + every)):
            return _verified_view(seen, None)
        choice, is_admitted = await self._provider(attempt, payment.environment)
        if choice is None and not seen.is_final:
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE)
        if choice is None or not is_admitted:
            # Paused after faults counts as unreachable, without a call.
            return _verified_view(seen, attempt.last_decline)
        # The simulator is our own code and needs no rate.
        may_ask = attempt.gateway == SANDBOX_SLUG or await self.store.begin_check(reference, attempt.number, now, every)
        if not may_ask:
            # Checked a moment ago, perhaps by another process: that result stands until the next call.
            if not seen.is_final and await self._is_mismatch(reference):
                raise Refusal(ErrorCode.PAYMENT_AMOUNT_MISMATCH)
            return _verified_view(seen, attempt.last_decline)
        try:
            report = await self.provider_calls.fetch(payment, attempt, choice, "verify")
        except ProviderFault:
            return _verified_view(seen, attempt.last_decline)
        self.crash_point("V1")
        settled = await self.settlement.report(report, attempt.gateway, payment.environment, "verify", asked=attempt)
        self.crash_point("V2")
        if settled.effect is ReportEffect.MISMATCH and not seen.is_final:
            raise Refusal(ErrorCode.PAYMENT_AMOUNT_MISMATCH)
        decline = (report.reason or DECLINED) if settled.effect is ReportEffect.DECLINED else None
        # The answer changed nothing, but another call may have meanwhile.
        current = settled.payment or must_exist(  # unless it moved to another cell meanwhile
            await self.store.find_payment(reference), code=ErrorCode.PAYMENT_NOT_FOUND
        )
        return _verified_view(current.as_of(self.clock.now()), decline)

    async def _provider(self, attempt: Attempt, environment: Environment) -> tuple[ChosenProvider | None, bool]:
        """The attempt's provider, and whether its health lets a call through now. The simulator needs no look-up."""
        options = self.payment_options
        if attempt.gateway == SANDBOX_SLUG:
            return options.simulator, True
        async with self.store.begin() as tx:
            return await options.provider_of_attempt(tx, attempt, environment)

    async def _is_mismatch(self, reference: str) -> bool:
        """Whether the provider's last answer mismatched. Equal mismatches are stored once, so the status of the last
        look-up decides: a different one withdraws it. A mismatch from an event counts once the answer is a success,
        which would have moved the payment."""
        async with self.store.begin() as tx:
            answer = await tx.provider_calls.last_answer(reference)
            known = await tx.anomalies.of_payment(reference) if answer is not None else []
        if answer is None:
            return False
        is_success = answer.result == Outcome.SUCCEEDED.value
        found = [a for a in known if a.kind is AnomalyKind.MISMATCH and (is_success or a.is_from_asking)]
        return any(a.details.get("word") == answer.word for a in found)


def redirect_url(payment: Payment) -> str | None:
    """The merchant's callback URL with the reference and the status, in place of parameters of its own with these
    names: of two with one name some frameworks read the first, others the last. None without one, and for a stored URL
    that initiate would refuse today."""
    if payment.callback_url is None or not payment.callback_url.lower().startswith(("https://", "http://")):
        return None
    parts = urlsplit(ascii_url(payment.callback_url))
    added = {"reference": payment.reference, "status": payment.status.value}
    kept = [one for one in parts.query.split("&") if one and one.partition("=")[0] not in added]
    return urlunsplit(parts._replace(query="&".join([*kept, urlencode(added)])))


def _verified_view(payment: Payment, last_decline: str | None) -> VerifiedPayment:
    return VerifiedPayment(
        reference=payment.reference,
        status=payment.status,
        amount=payment.amount,
        currency=payment.currency,
        callback_url=payment.callback_url,
        redirect_url=redirect_url(payment),
        last_decline=PayerReason.of(last_decline) if payment.status is Status.PENDING else None,
    )
