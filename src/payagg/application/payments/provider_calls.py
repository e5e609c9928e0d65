"""Calls to providers: each is bounded, recorded for `explain`, counted for health, and outside any transaction."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from payagg.application.deadline import renew
from payagg.application.gateways.payment_options import ChosenProvider
from payagg.application.ports.payments import ProviderCall
from payagg.application.ports.store import Transaction
from payagg.application.telemetry import count, observe, span
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.attempt import Attempt, Charge, HandOff
from payagg.domain.checks import with_changes
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.health import Health
from payagg.domain.payment import Payment
from payagg.domain.report import FaultKind, ProviderFault, ProviderReport
from payagg.domain.values import Environment

R = TypeVar("R", HandOff, ProviderReport)
CALL_SECONDS = 15.0


def no_crash(_: str) -> None:
    """The product's hook does nothing; tests pass one that crashes."""


@dataclass(frozen=True)
class ProviderCalls(UseCase):
    base_url: str

    async def start(self, payment: Payment, attempt: Attempt, choice: ChosenProvider, business_name: str) -> HandOff:
        """Starts the attempt's charge; raises ProviderFault."""
        charge = self._charge(payment, attempt, choice, business_name)
        call = partial(choice.provider.start_charge, charge)
        return await self._call("start_charge", "payer", payment, attempt, call, tells=not choice.provider.starts_alone)

    async def fetch(self, payment: Payment, attempt: Attempt, choice: ChosenProvider, actor: str) -> ProviderReport:
        """Checks the status of the attempt's charge; raises ProviderFault."""
        charge = self._charge(payment, attempt, choice, "")
        call = partial(choice.provider.fetch_charge, charge)
        report = await self._call("fetch_charge", actor, payment, attempt, call, tells=True)
        return with_changes(report, account=choice.account(payment.environment))

    def _charge(self, payment: Payment, attempt: Attempt, choice: ChosenProvider, business_name: str) -> Charge:
        return Charge(
            reference=attempt.provider_reference,
            amount=payment.amount,
            currency=payment.currency,
            environment=payment.environment,
            credentials=choice.credentials,
            checkout_url=f"{self.base_url}/checkout/{payment.reference}",
            business_name=business_name,
            customer_email=payment.customer_email,
            customer_name=payment.customer_name,
            customer_phone=payment.customer_phone,
            scenario=attempt.scenario,
            handed_off_at=attempt.handed_off_at,
            now=self.clock.now(),
        )

    async def _call(
        self,
        operation: str,
        actor: str,
        payment: Payment,
        attempt: Attempt,
        call: Callable[[], Awaitable[R]],
        *,
        tells: bool,
    ) -> R:
        """`tells`: whether the answer is evidence of the provider's health."""
        if attempt.gateway == SANDBOX_SLUG:
            return await call()  # the simulator is our own code: no bound, no record, no health
        # The same clock as the timeout's.
        clock = asyncio.get_running_loop().time
        started = clock()
        fault: ProviderFault | None = None
        answer: R | None = None
        try:
            with span(f"provider {operation}", {"payagg.gateway": attempt.gateway}):
                async with asyncio.timeout(CALL_SECONDS):
                    answer = await call()
        except TimeoutError:
            fault = ProviderFault(FaultKind.TIMEOUT)
        except ProviderFault as raised:
            fault = raised
        renew()
        await self._note(operation, actor, payment, attempt, answer, fault, clock() - started, tells=tells)
        if fault is not None:
            raise fault
        assert answer is not None
        return answer

    @retry_on_conflict
    async def _note(
        self,
        operation: str,
        actor: str,
        payment: Payment,
        attempt: Attempt,
        answer: HandOff | ProviderReport | None,
        fault: ProviderFault | None,
        seconds: float,
        *,
        tells: bool,
    ) -> None:
        now = self.clock.now()
        if isinstance(answer, HandOff):
            result, word = answer.kind.value, None
        elif answer is not None:
            result, word = answer.outcome.value, answer.word
        else:
            assert fault is not None
            result, word = fault.kind.value, None
        count("provider_calls", attempt.gateway, operation, result)
        observe("provider_call_duration_seconds", seconds, attempt.gateway, operation)
        async with self.store.begin() as tx:
            await tx.provider_calls.add(
                ProviderCall(
                    id=self.entropy.id("pcl", now),
                    reference=payment.reference,
                    attempt=attempt.number,
                    gateway=attempt.gateway,
                    operation=operation,
                    result=result,
                    word=word,
                    duration_ms=int(seconds * 1000),
                    actor=actor,
                    at=now,
                )
            )
            if tells and (fault is None or fault.is_sent):
                # A provider that refuses a request is up.
                ok = fault is None or not fault.kind.is_unhealthy
                await self._judge(tx, attempt.gateway, payment.environment, ok, now)

    async def _judge(self, tx: Transaction, gateway: str, environment: Environment, ok: bool, now: datetime) -> None:
        fresh = Health(gateway, environment)
        known = [h for h in await tx.health.all() if (h.gateway, h.environment) == (gateway, environment)]
        # Success must not queue every payment of a provider behind one locked row.
        if ok and known in ([], [fresh]):
            return
        health = await tx.health.lock(gateway, environment)
        changed = health.after(ok, now)
        if changed != health:
            await tx.health.save(changed)
