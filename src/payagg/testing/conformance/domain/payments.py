"""Payments over the domain: initiated under idempotency keys, simulated, handed to the simulator, verified."""

from dataclasses import dataclass, replace
from typing import Any

from payagg.domain.attempt import Attempt, ExistingHandOff, HandOff, HandOffKind, provider_reference
from payagg.domain.business import Business
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import OUTCOMES, SIMULATED, Payment, Status, Transition
from payagg.domain.report import ProviderReport
from payagg.domain.simulator import elapsed
from payagg.domain.values import Environment, parse_reference
from payagg.testing.conformance.domain.gateways import GatewayRoutes
from payagg.testing.conformance.domain.webhooks import WebhookRoutes
from payagg.testing.conformance.domain.world import DomainWorld, instant

Body = dict[str, Any]
Reply = tuple[int, Any]
BASE_URL = "https://pay.example"
# Of a body, by the argument of `Payment.initiate`.
OPTIONAL = {
    "customer_email": "customerEmail",
    "customer_name": "customerName",
    "customer_phone": "customerPhone",
    "callback_url": "callbackUrl",
    "webhook_url": "webhookUrl",
    "metadata": "metadata",
    "idempotency_key": "idempotencyKey",
}


@dataclass(frozen=True)
class PaymentRoutes:
    world: DomainWorld
    gateways: GatewayRoutes
    webhooks: WebhookRoutes

    def initiate(self, bearer: str | None, body: Body) -> Reply:
        business, key = self.world.admit_server(bearer)
        return self._initiated(body, business, key.environment, body.get("gateway"))

    def initiate_test(self, bearer: str | None, body: Body, business_id: str) -> Reply:
        business = self.world.admit_manager(bearer, business_id)
        business.ensure_active()
        keys = self.world.keys.values()
        if not any((one.business_id, one.environment) == (business_id, Environment.SANDBOX) for one in keys):
            raise Refusal(ErrorCode.NO_SANDBOX_KEY)
        return self._initiated(body, business, Environment.SANDBOX, SANDBOX_SLUG, is_test=True)

    def _initiated(
        self, body: Body, business: Business, environment: Environment, gateway: str | None, *, is_test: bool = False
    ) -> Reply:
        world, now = self.world, self.world.now()
        optional: Body = {argument: body.get(name) for argument, name in OPTIONAL.items()}
        payment = world.rules.payment.initiate(
            reference=world.entropy.reference(now),
            business_id=business.id,
            environment=environment,
            amount=body.get("amount"),  # type: ignore[arg-type]  # whatever was sent: the domain refuses it
            now=now,
            gateway=gateway,
            is_test=is_test,
            **optional,
        )
        payment = replace(payment, currency=body.get("currency", payment.currency))
        slot = (business.id, environment, payment.idempotency_key or "")
        if payment.idempotency_key is not None and slot in world.originals:
            return 200, _initiation(world.payments[world.originals[slot]].replay(now))
        self.gateways.ensure_can_initiate(business.id, environment, gateway)
        if payment.idempotency_key is not None:
            world.originals[slot] = payment.reference
        world.payments[payment.reference], world.attempts[payment.reference] = payment, []
        return 201, _initiation(payment)

    def read(self, bearer: str | None, body: Body, reference: str) -> Reply:
        business, key = self.world.admit_server(bearer)
        return 200, _detail(self._owned(reference, business.id, key.environment))

    def read_test(self, bearer: str | None, body: Body, business_id: str, reference: str) -> Reply:
        self.world.admit_manager(bearer, business_id)
        return 200, _detail(self._owned(reference, business_id, Environment.SANDBOX))

    def simulate(self, bearer: str | None, body: Body, reference: str) -> Reply:
        business, key = self.world.admit_server(bearer)
        if not self.world.rules.simulator_allowed(key.environment):
            raise Refusal(ErrorCode.SANDBOX_ONLY)
        parse_reference(reference)
        trigger = OUTCOMES.get(str(body.get("outcome")))
        if trigger is None:
            raise invalid("outcome", "Must be SUCCESS, FAILED or REVERSED.")
        payment = self._owned(reference, business.id, Environment.SANDBOX)
        payment.ensure_open()
        self._write(*payment.move(trigger, self.world.now(), actor="merchant", reason=SIMULATED))
        return 200, _detail(self.world.payments[reference])

    def public(self, bearer: str | None, body: Body, reference: str) -> Reply:
        shown = _detail(self._seen(reference))
        return 200, {name: shown[name] for name in ("reference", "amount", "currency", "status", "environment")}

    def options(self, bearer: str | None, body: Body, reference: str) -> Reply:
        payment = self._seen(reference)
        rows = [{"slug": one.slug, "available": one.has_credentials} for one in self._offered(payment)]
        if self.world.rules.simulator_allowed(payment.environment):
            rows.append({"slug": SANDBOX_SLUG, "available": True})
        return 200, {"gateways": rows}

    def process(self, bearer: str | None, body: Body, reference: str) -> Reply:
        """No provider is played here: the simulator alone takes a charge."""
        world, now, payment = self.world, self.world.now(), self._stored(reference)
        attempts, slug = world.attempts[reference], body.get("gatewaySlug")
        step = world.rules.next_step(payment, attempts, slug, now)
        if isinstance(step, ExistingHandOff):
            return 200, {"reference": reference, "checkoutUrl": step.hand_off.checkout_url}
        if slug != SANDBOX_SLUG or not world.rules.simulator_allowed(payment.environment):
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, field="gatewaySlug")
        scenario, number = world.rules.scenario_of(body.get("cardNumber")), len(attempts) + 1
        claim = Attempt.claim(
            payment, number, gateway=slug, gateway_id=None, scenario=scenario, token=reference, now=now
        )
        hand_off = HandOff(HandOffKind.SIMULATOR, f"{BASE_URL}/checkout/{reference}")
        attempts.append(claim.hand_over(hand_off, now, 0.0))
        self._write(*payment.hand_over(slug, now, "payer"))
        return 200, {"reference": reference, "checkoutUrl": hand_off.checkout_url}

    def verify(self, bearer: str | None, body: Body, reference: str) -> Reply:
        world, now, payment = self.world, self.world.now(), self._stored(reference)
        attempt = next((one for one in world.attempts[reference] if one.is_handed_off), None)
        if attempt is not None and attempt.scenario is not None and not payment.is_final:
            outcome, reason = world.rules.outcome_of(attempt.scenario, elapsed(attempt.handed_off_at, now))
            amounts = frozenset({payment.amount})
            told = provider_reference(reference, attempt.number)
            report = ProviderReport(told, outcome, str(outcome), amounts, reason=reason)  # type: ignore[arg-type]
            verdict = world.rules.judge(
                report,
                payment,
                world.attempts[reference],
                gateway=SANDBOX_SLUG,
                environment=payment.environment,
                asked=attempt,
                paid=[one.reason for one in world.log if one.reference == reference and _is_success(one)],
                actor="simulator",
                now=now,
            )
            for change in verdict.changes:
                self._write(*change)
        seen = self._seen(reference)
        return 200, {**_detail(seen), "callbackUrl": seen.callback_url}

    def _offered(self, payment: Payment) -> list[Any]:
        return [] if payment.is_test else self.gateways.offered(payment.business_id)

    def _stored(self, reference: str) -> Payment:
        payment = self.world.payments.get(parse_reference(reference))
        if payment is None:
            raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
        return payment

    def _seen(self, reference: str) -> Payment:
        return self._stored(reference).as_of(self.world.now())

    def _owned(self, reference: str, business_id: str, environment: Environment) -> Payment:
        payment = self._seen(reference)
        if (payment.business_id, payment.environment) != (business_id, environment):
            raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
        return payment

    def _write(self, payment: Payment, transition: Transition | None) -> None:
        self.world.payments[payment.reference] = payment
        if transition is not None:
            self.world.log.append(transition)
            self.webhooks.tell(payment, transition, _detail(payment))


def _is_success(transition: Transition) -> bool:
    return transition.to_status is Status.SUCCESS


def _initiation(payment: Payment) -> Body:
    more = {"expiresAt": instant(payment.expires_at), "checkoutUrl": f"{BASE_URL}/checkout/{payment.reference}"}
    return _facts(payment) | more


def _detail(payment: Payment) -> Body:
    return _facts(payment) | {"gateway": payment.gateway, "failureReason": payment.failure_reason}


def _facts(payment: Payment) -> Body:
    return {
        "reference": payment.reference,
        "amount": payment.amount,
        "currency": payment.currency,
        "environment": payment.environment.value,
        "status": payment.status.value,
    }
