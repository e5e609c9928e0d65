"""Requests about payments, answered by the domain: who may ask, what the body says, and what is shown."""

from dataclasses import dataclass
from typing import Any

from payagg.domain.business import Business
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import OUTCOMES, Payment
from payagg.domain.values import CURRENCY, Environment, parse_reference
from payagg_testing.conformance.domain.payments import BASE_URL, DomainPayments
from payagg_testing.conformance.domain.world import instant, view

Body = dict[str, Any]
Reply = tuple[int, Any]
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
    world: DomainPayments

    def initiate(self, bearer: str | None, body: Body) -> Reply:
        business, key = self.world.admit_server(bearer)
        return self._initiate(body, business, key.environment, body.get("gateway"))

    def initiate_test(self, bearer: str | None, body: Body, business_id: str) -> Reply:
        business = self.world.admit_manager(bearer, business_id)
        business.ensure_active()
        if not self.world.active_keys(business_id, Environment.SANDBOX):
            raise Refusal(ErrorCode.NO_SANDBOX_KEY)
        return self._initiate(body, business, Environment.SANDBOX, SANDBOX_SLUG, is_test=True)

    def _initiate(
        self, body: Body, business: Business, environment: Environment, gateway: str | None, *, is_test: bool = False
    ) -> Reply:
        optional: Body = {argument: body.get(name) for argument, name in OPTIONAL.items()}
        currency = body.get("currency", CURRENCY)
        payment, is_new = self.world.start_payment(
            business.id, environment, body.get("amount"), currency, gateway=gateway, is_test=is_test, **optional
        )
        more = {"expiresAt": instant(payment.expires_at), "checkoutUrl": f"{BASE_URL}/checkout/{payment.reference}"}
        return 201 if is_new else 200, _facts(payment) | more

    def read(self, bearer: str | None, body: Body, reference: str) -> Reply:
        business, key = self.world.admit_server(bearer)
        return 200, detail(self._own_payment(reference, business.id, key.environment))

    def read_test(self, bearer: str | None, body: Body, business_id: str, reference: str) -> Reply:
        self.world.admit_manager(bearer, business_id)
        return 200, detail(self._own_payment(reference, business_id, Environment.SANDBOX))

    def simulate(self, bearer: str | None, body: Body, reference: str) -> Reply:
        business, key = self.world.admit_server(bearer)
        if not self.world.rules.simulator_allowed(key.environment):
            raise Refusal(ErrorCode.SANDBOX_ONLY)
        return self._simulate(body, business.id, reference)

    def simulate_test(self, bearer: str | None, body: Body, business_id: str, reference: str) -> Reply:
        self.world.admit_manager(bearer, business_id)
        return self._simulate(body, business_id, reference)

    def _simulate(self, body: Body, business_id: str, reference: str) -> Reply:
        parse_reference(reference)
        outcome = str(body.get("outcome"))
        if outcome not in OUTCOMES:
            raise invalid("outcome", "Must be SUCCESS, FAILED or REVERSED.")
        self.world.complete(self._own_payment(reference, business_id, Environment.SANDBOX), outcome)
        return 200, detail(self.world.payments[reference])

    def public(self, bearer: str | None, body: Body, reference: str) -> Reply:
        shown = detail(self._look(reference))
        return 200, {name: shown[name] for name in ("reference", "amount", "currency", "status", "environment")}

    def options(self, bearer: str | None, body: Body, reference: str) -> Reply:
        choices = self.world.choices(self._look(reference))
        return 200, {"gateways": [{"slug": slug, "available": can_be} for slug, can_be in choices.items()]}

    def process(self, bearer: str | None, body: Body, reference: str) -> Reply:
        reference = self._load(reference).reference
        hand_off = self.world.start_charge(reference, body.get("gatewaySlug"), body.get("cardNumber"))
        return 200, {"reference": reference, "checkoutUrl": hand_off.checkout_url}

    def verify(self, bearer: str | None, body: Body, reference: str) -> Reply:
        payment = self.world.look(self._load(reference).reference)
        return 200, {**detail(payment), "callbackUrl": payment.callback_url}

    def _load(self, reference: str) -> Payment:
        payment = self.world.payments.get(parse_reference(reference))
        if payment is None:
            raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
        return payment

    def _look(self, reference: str) -> Payment:
        return self._load(reference).as_of(self.world.now())

    def _own_payment(self, reference: str, business_id: str, environment: Environment) -> Payment:
        payment = self._look(reference)
        if (payment.business_id, payment.environment) != (business_id, environment):
            raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
        return payment


def detail(payment: Payment) -> Body:
    return _facts(payment) | view(payment, "gateway", "failure_reason")


def _facts(payment: Payment) -> Body:
    return view(payment, "reference", "amount", "currency", "environment", "status")
