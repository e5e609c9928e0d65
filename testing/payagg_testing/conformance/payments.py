"""Payments: what each of the three readers sees after whatever merchants' servers and payers do."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, multiple, precondition, rule

from payagg_testing.conformance.base import ConformanceMachine, needs
from payagg_testing.conformance.expectation import lacks, matches
from payagg_testing.conformance.target import ConformanceTarget

REFERENCE = r"[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}"
FINAL = ("SUCCESS", "FAILED", "REVERSED")
HOUR = timedelta(hours=1)
SIMULATOR = "sandbox"
# Test card: what verify finds at once.
CARDS = {
    "4242424242424242": "SUCCESS",
    "4000000000000002": "FAILED",
    "4000000000000259": "REVERSED",
    "4000000000000119": "PENDING",
}
PAYMENTS: Bundle[str] = Bundle("payments")
AMOUNTS = st.sampled_from([100, 101, 99_999, 150_000, 2**31, 2**53 - 1])
# What a careless parser lets through: body and the field that must be named.
BAD_BODIES: list[tuple[dict[str, Any], str]] = [
    ({}, "amount"),
    ({"amount": 99}, "amount"),
    ({"amount": 0}, "amount"),
    ({"amount": -5000}, "amount"),
    ({"amount": "5000"}, "amount"),
    ({"amount": 5000.5}, "amount"),
    ({"amount": 5000.0}, "amount"),
    ({"amount": True}, "amount"),
    ({"amount": [5000]}, "amount"),
    ({"amount": 5000, "currency": "USD"}, "currency"),
    ({"amount": 5000, "currency": "ngn"}, "currency"),
    ({"amount": 5000, "callbackUrl": "not a url"}, "callbackUrl"),
    ({"amount": 5000, "callbackUrl": "javascript:alert(1)"}, "callbackUrl"),
    ({"amount": 5000, "webhookUrl": "http://shop.example/hooks"}, "webhookUrl"),
    ({"amount": 5000, "metadata": {f"k{n}": n for n in range(51)}}, "metadata"),
]
EXTRAS: list[dict[str, Any]] = [
    {},
    {"currency": "NGN"},
    {"customerEmail": "ada@example.com", "customerName": "Ada Obi", "customerPhone": "+2348012345678"},
    {"callbackUrl": "https://shop.example/thanks?order=1"},
    {"metadata": {f"k{n}": n for n in range(50)}},
]
BAD_REFERENCES = [
    "pay-20250131-7k2m9x",
    "PAY-20250131-7K2M9",
    "PAY-20250131-7K2M9XX",
    "PAY_20250131_7K2M9X",
    "P4Y-20250131-7K2M9X",
]
BAD_REFERENCES += ["PAY-20250131-7K2M9X%0A", "PAY-%D9%A2025131-7K2M9X", "%20PAY-20250131-7K2M9X"]
CUSTOMER = ("customerEmail", "customerName", "customerPhone")


@dataclass
class ModelPayment:
    """One payment in the words of the interface."""

    amount: int
    environment: str
    extra: dict[str, Any]
    merchant: int
    age: timedelta = timedelta(0)
    status: str = "INITIATED"
    card: str | None = None
    hand_off: str | None = None

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def is_over(self) -> bool:
        """Never begun, and its hour has passed: which status it then has, the interface leaves open."""
        return self.status == "INITIATED" and self.age >= HOUR


class PaymentConformance(ConformanceMachine):
    title = "payments"

    @classmethod
    def check_needs(cls, target: ConformanceTarget) -> None:
        needs(any("SANDBOX" in merchant.keys for merchant in target.merchants), "a sandbox key")

    def __init__(self) -> None:
        super().__init__()
        self.payments: dict[str, ModelPayment] = {}

    def key(self, model: ModelPayment) -> str:
        return self.merchants[model.merchant].keys[model.environment]

    def server(self, model: ModelPayment) -> str:
        return f"the server of business {model.merchant + 1} ({model.environment})"

    @initialize(target=PAYMENTS)
    def first(self) -> str:
        return self._initiated(150_000, "SANDBOX", {}, 0)

    @rule(
        target=PAYMENTS,
        amount=AMOUNTS,
        environment=st.sampled_from(["SANDBOX", "SANDBOX", "LIVE"]),
        extra=st.sampled_from(EXTRAS),
        merchant=st.integers(0, 1),
    )
    def initiate(self, amount: int, environment: str, extra: dict[str, Any], merchant: int) -> Any:
        merchant %= len(self.merchants)
        if environment not in self.merchants[merchant].keys:
            return multiple()
        if environment == "LIVE" and not self.target.takes_live(self.merchants[merchant]):
            return multiple()
        return self._initiated(amount, environment, extra, merchant)

    def _initiated(self, amount: int, environment: str, extra: dict[str, Any], merchant: int) -> str:
        model = ModelPayment(amount, environment, extra, merchant)
        answer = self.ask(
            self.server(model),
            f"initiates a payment of {amount} kobo",
            "POST",
            "/payments/initiate",
            201,
            bearer=self.key(model),
            body={"amount": amount, **extra},
            data={
                "reference": matches(REFERENCE),
                "amount": amount,
                "currency": "NGN",
                "environment": environment,
                "status": "INITIATED",
                "checkoutUrl": matches(r"https?://.+"),
                "expiresAt": matches(r"\d{4}-\d\d-\d\dT.+"),
            },
        )
        reference: str = answer.data["reference"]
        if reference in self.payments:
            self.fail("a reference was given out twice")
        self.payments[reference] = model
        return reference

    @rule(bad=st.sampled_from(BAD_BODIES))
    def initiate_badly(self, bad: tuple[dict[str, Any], str]) -> None:
        body, field = bad
        self.ask(
            "the server of business 1 (SANDBOX)",
            "initiates a payment with a bad body",
            "POST",
            "/payments/initiate",
            400,
            bearer=self.merchants[0].keys["SANDBOX"],
            body=body,
            code="VALIDATION_ERROR",
            field=field,
        )

    @rule(reference=st.sampled_from(BAD_REFERENCES), public=st.booleans())
    def read_badly(self, reference: str, public: bool) -> None:
        path = f"/public/payments/{reference}" if public else f"/payments/{reference}"
        bearer = None if public else self.merchants[0].keys["SANDBOX"]
        who = "a payer" if public else "the server of business 1 (SANDBOX)"
        self.ask(who, "reads a malformed reference", "GET", path, 400, bearer=bearer, code="INVALID_REFERENCE")

    @rule(reference=PAYMENTS)
    def read(self, reference: str) -> None:
        self.agrees(reference)

    @rule(reference=PAYMENTS, outcome=st.sampled_from(FINAL))
    def simulate(self, reference: str, outcome: str) -> None:
        model, path = self.payments[reference], f"/payments/{reference}/simulate"
        if model.is_over:
            return
        statuses, code = (409,), "PAYMENT_ALREADY_FINAL"
        if model.environment == "LIVE":
            statuses, code = (403,), "SANDBOX_ONLY"
        elif not model.is_final:
            statuses, code, model.status = (200,), "", outcome
        self.ask(
            self.server(model),
            f"simulates {outcome}",
            "POST",
            path,
            *statuses,
            bearer=self.key(model),
            body={"outcome": outcome},
            code=code or None,
            data={"reference": reference, "status": outcome} if not code else None,
        )
        self.agrees(reference)

    @rule(
        reference=PAYMENTS, outcome=st.sampled_from([{}, {"outcome": "PENDING"}, {"outcome": "PAID"}, {"outcome": 1}])
    )
    def simulate_badly(self, reference: str, outcome: dict[str, Any]) -> None:
        model = self.payments[reference]
        if model.environment == "SANDBOX":
            path, key = f"/payments/{reference}/simulate", self.key(model)
            who, code = self.server(model), "VALIDATION_ERROR"
            self.ask(who, "simulates nonsense", "POST", path, 400, bearer=key, body=outcome, code=code)
            self.agrees(reference)

    @rule(reference=PAYMENTS, card=st.sampled_from(sorted(CARDS)))
    def process(self, reference: str, card: str) -> None:
        """The payer chooses the simulator. On a LIVE payment it is never an option."""
        model = self.payments[reference]
        self.look_at_options(reference)
        statuses, code, data = self.foreseen_of_process(model, card)
        answer = self.ask(
            "the payer",
            f"chooses the simulator with the card {card}",
            "POST",
            f"/public/payments/{reference}/process",
            *statuses,
            body={"gatewaySlug": SIMULATOR, "cardNumber": card},
            code=code,
            data=data,
        )
        if answer.status == 200 and model.hand_off is None:
            model.hand_off, model.card, model.status = answer.data["checkoutUrl"], card, "PENDING"
        self.agrees(reference)

    def foreseen_of_process(
        self, model: ModelPayment, card: str
    ) -> tuple[tuple[int, ...], str | None, dict[str, Any] | None]:
        if model.is_final and model.age >= HOUR:
            return (409, 410), None, None
        if model.is_final:
            return (409,), "PAYMENT_ALREADY_PROCESSED", None
        if model.age >= HOUR:
            return (410,), "PAYMENT_EXPIRED", None
        if model.environment == "LIVE":
            return (400,), "GATEWAY_NOT_AVAILABLE", None
        return (200,), None, {"checkoutUrl": model.hand_off or matches(r".+")}

    def look_at_options(self, reference: str) -> None:
        model, path = self.payments[reference], f"/public/payments/{reference}/gateways"
        data: dict[str, Any] = {"gateways[*].slug": lacks(SIMULATOR)} if model.environment == "LIVE" else {}
        if model.environment == "SANDBOX" and model.status == "INITIATED" and not model.is_over:
            data = {f"gateways[slug={SIMULATOR}].available": True}
        self.ask("the payer", "looks at the options", "GET", path, 200, data=data)

    @rule(reference=PAYMENTS)
    def verify(self, reference: str) -> None:
        model = self.payments[reference]
        if model.is_over:
            return
        if model.status == "PENDING" and model.card is not None:
            model.status = CARDS[model.card]
        callback = model.extra.get("callbackUrl")
        data = {"status": model.status, **({"callbackUrl": callback} if callback else {})}
        path = f"/public/payments/{reference}/verify"
        self.ask("the payer's browser", "verifies", "GET", path, 200, data=data)
        self.agrees(reference)

    @precondition(lambda self: self.target.service.can_wait)
    @rule(duration=st.sampled_from([timedelta(minutes=30), HOUR - timedelta(seconds=5), HOUR]))
    def time_passes(self, duration: timedelta) -> None:
        self.wait(duration)
        self.target.service.work()
        for model in self.payments.values():
            model.age += duration

    def agrees(self, reference: str) -> None:
        """The merchant and the payer see what the model says; neither sees more than is theirs."""
        model = self.payments[reference]
        status: Any = matches("INITIATED|FAILED") if model.is_over else model.status
        facts = {"reference": reference, "amount": model.amount, "currency": "NGN", "status": status}
        gateway = {"gateway": SIMULATOR} if model.hand_off is not None else {}
        path = f"/payments/{reference}"
        self.ask(
            self.server(model),
            "reads",
            "GET",
            path,
            200,
            bearer=self.key(model),
            data=facts | gateway | {"": lacks("businessId")},
        )
        hidden = lacks("businessId", "id", "metadata", *CUSTOMER)
        self.ask("the payer", "looks at the payment", "GET", f"/public{path}", 200, data=facts | {"": hidden})
