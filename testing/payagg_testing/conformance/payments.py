"""Payments: what each of the three readers sees after whatever merchants' servers and payers do."""

from datetime import timedelta
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, multiple, precondition, rule

from payagg.domain.values import Environment
from payagg_testing.conformance.assumptions import CARD
from payagg_testing.conformance.expectation import lacks
from payagg_testing.conformance.payments_by_url import PaymentsByUrl
from payagg_testing.conformance.statements import CLOCK, LIVE, SANDBOX_KEY, tries
from payagg_testing.state_machine.model import CARDS, FINAL, HOUR, SIMULATOR

KNOWN_AT_ONCE = sorted(card for card, (_, _, seconds) in CARDS.items() if not seconds)
SLOW, KNOWN_AFTER = next((card, timedelta(seconds=known)) for card, (_, _, known) in CARDS.items() if known)
NO_ANSWER = next(card for card, (outcome, _, _) in CARDS.items() if outcome == "PENDING")
INSTANT = timedelta(seconds=0.5)
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
    {"metadata": {"rebate": -250, "rate": 0.075, "cart": {"items": ["A", None, {"size": [1]}]}, "note": "x" * 100}},
]
# What a payer may not choose.
OTHERS: list[dict[str, Any]] = [
    {"amount": 100},
    {"currency": "USD", "environment": "LIVE"},
    {"callbackUrl": "https://thief.example/thanks"},
]
UNKNOWN = "PAY-20250131-7K2M9X"
BAD_REFERENCES = [
    "pay-20250131-7k2m9x",
    "PAY-20250131-7K2M9",
    "PAY-20250131-7K2M9XX",
    "PAY_20250131_7K2M9X",
    "P4Y-20250131-7K2M9X",
]
BAD_REFERENCES += ["PAY-20250131-7K2M9X%0A", "PAY-%D9%A2025131-7K2M9X", "%20PAY-20250131-7K2M9X"]


class PaymentConformance(PaymentsByUrl):
    title = "payments"
    in_passing: ClassVar = {"checkout.7": (LIVE,), "checkout.8": (LIVE,)}

    needs = (SANDBOX_KEY,)

    @initialize(target=PAYMENTS)
    def first(self) -> str:
        return self.initiate_payment(0, "SANDBOX", {"amount": 150_000})

    @rule(
        target=PAYMENTS,
        amount=AMOUNTS,
        environment=st.sampled_from(["SANDBOX", "SANDBOX", "LIVE"]),
        extra=st.sampled_from(EXTRAS),
        merchant=st.integers(0, 1),
    )
    def initiate(self, amount: int, environment: str, extra: dict[str, Any], merchant: int) -> Any:
        merchant %= len(self.merchants)
        if not self.may_initiate(merchant, environment):
            return multiple()
        return self.initiate_payment(merchant, environment, {"amount": amount, **extra})

    @rule(bad=st.sampled_from(BAD_BODIES))
    @tries("limits.1", "limits.2")
    def initiate_badly(self, bad: tuple[dict[str, Any], str]) -> None:
        body, field = bad
        who, key, code = "the server of business 1 (SANDBOX)", self.merchants[0].keys["SANDBOX"], "VALIDATION_ERROR"
        what, path = "initiates a payment with a bad body", "/payments/initiate"
        self.ask(who, what, "POST", path, 400, bearer=key, body=body, code=code, field=field)

    @rule(reference=st.sampled_from(BAD_REFERENCES), public=st.booleans())
    def read_badly(self, reference: str, public: bool) -> None:
        path = f"/public/payments/{reference}" if public else f"/payments/{reference}"
        bearer = None if public else self.merchants[0].keys["SANDBOX"]
        who = "a payer" if public else "the server of business 1 (SANDBOX)"
        self.ask(who, "reads a malformed reference", "GET", path, 400, bearer=bearer, code="INVALID_REFERENCE")

    @rule(route=st.sampled_from(["", "/gateways", "/process", "/verify"]))
    def ask_of_nobody(self, route: str) -> None:
        """None of the payer's routes knows a payment that there is not."""
        path, what = f"/public/payments/{UNKNOWN}{route}", "asks of a payment that there is not"
        method, body = ("POST", {"gatewaySlug": SIMULATOR}) if route == "/process" else ("GET", None)
        self.ask("a payer", what, method, path, 404, body=body, code="PAYMENT_NOT_FOUND")

    @rule(reference=PAYMENTS)
    def read(self, reference: str) -> None:
        self.agrees(reference)

    @rule(reference=PAYMENTS, outcome=st.sampled_from(FINAL))
    @tries("payments.2")
    def simulate(self, reference: str, outcome: str) -> None:
        if not self.models[reference].is_expired(self.now):
            self.simulate_outcome(reference, outcome)

    @rule(
        reference=PAYMENTS, outcome=st.sampled_from([{}, {"outcome": "PENDING"}, {"outcome": "PAID"}, {"outcome": 1}])
    )
    def simulate_badly(self, reference: str, outcome: dict[str, Any]) -> None:
        model = self.models[reference]
        if model.environment is Environment.SANDBOX:
            path, code = f"/payments/{reference}/simulate", "VALIDATION_ERROR"
            self.ask_as_server(model, "simulates nonsense", "POST", path, 400, body=outcome, code=code)
            self.agrees(reference)

    @rule(reference=PAYMENTS, card=st.sampled_from(KNOWN_AT_ONCE))
    @tries("checkout.3")
    def process(self, reference: str, card: str) -> None:
        """The payer chooses the simulator. On a LIVE payment it is never an option."""
        self.look_at_options(reference)
        self.choose_gateway(reference, f"chooses the simulator with the card {card}", SIMULATOR, card)
        self.agrees(reference)

    @precondition(lambda self: not self.target.words)
    @rule()
    @tries(needs=CLOCK)
    def wait_for_the_card(self) -> None:
        """A card whose end is known half a minute later: only by then does a look at it tell."""
        reference = self.initiate_payment(0, "SANDBOX", {"amount": 5_000})
        self.choose_gateway(reference, f"chooses the simulator with the card {SLOW}", SIMULATOR, SLOW)
        path = f"/public/payments/{reference}/verify"
        for duration, foreseen in ((KNOWN_AFTER - INSTANT, "PENDING"), (2 * INSTANT, "SUCCESS")):
            self.wait(duration)
            status = self.ask("the payer's browser", "verifies", "GET", path, 200).data["status"]
            if status != foreseen and CARD not in self.differs:
                self.fail(f'status is "{status}"', assumption=CARD)

    @rule(reference=PAYMENTS)
    def process_badly(self, reference: str) -> None:
        """A gateway that there is not. A hand-off may be given again all the same."""
        model, path = self.models[reference], f"/public/payments/{reference}/process"
        is_over = model.status in FINAL or self.now >= model.expires
        statuses = (400, 409, 410) if is_over else (400,) if model.hand_off is None else (200, 400)
        what, body = "chooses what there is not", {"gatewaySlug": f"none-{self.nonce}"}
        answer = self.ask("the payer", what, "POST", path, *statuses, body=body)
        if answer.status == 400 and answer.code not in ("VALIDATION_ERROR", "GATEWAY_NOT_AVAILABLE"):
            self.fail(f"the code is {answer.code}")
        self.agrees(reference)

    @rule(more=st.sampled_from(OTHERS))
    @tries("checkout.1")
    def process_with_more(self, more: dict[str, Any]) -> None:
        """Whether such names are refused or ignored, the interface leaves open: the payment stays as it was."""
        body = {"amount": 5_000, "callbackUrl": "https://shop.example/thanks"}
        reference = self.initiate_payment(0, "SANDBOX", body)
        what, path = f"tries to choose {', '.join(more)}, too", f"/public/payments/{reference}/process"
        chosen = {"gatewaySlug": SIMULATOR, "cardNumber": KNOWN_AT_ONCE[0], **more}
        answer = self.ask("the payer", what, "POST", path, 200, 400, body=chosen)
        if answer.status == 200:
            self.models[reference].begin(SIMULATOR, None)
            self.models[reference].hand_over(answer.data["checkoutUrl"], self.now, KNOWN_AT_ONCE[0])
        self.agrees(reference)
        self.verify_payment(reference)

    def look_at_options(self, reference: str) -> None:
        model, path = self.models[reference], f"/public/payments/{reference}/gateways"
        data: dict[str, Any] = {} if model.may_choose(SIMULATOR, True) else {"gateways[*].slug": lacks(SIMULATOR)}
        self.tried.update(["checkout.8"] if model.environment is Environment.LIVE else [])
        if not data and model.status == "INITIATED" and not model.is_expired(self.now):
            data = {f"gateways[slug={SIMULATOR}].available": True}
        self.ask("the payer", "looks at the options", "GET", path, 200, data=data)

    @rule(reference=PAYMENTS)
    def verify(self, reference: str) -> None:
        if not self.models[reference].is_expired(self.now):
            self.verify_payment(reference)

    @rule(late=st.sampled_from([-INSTANT, INSTANT]), is_begun=st.booleans())
    @tries("limits.4", needs=CLOCK)
    def choose_at_the_end(self, late: timedelta, is_begun: bool) -> None:
        """Of the hour in which the payer may choose, and may come back for the hand-off."""
        reference, what = self.initiate_payment(0, "SANDBOX", {"amount": 5_000}), "chooses the simulator"
        if is_begun:
            self.choose_gateway(reference, what, SIMULATOR, NO_ANSWER)
        self.wait(HOUR + late)
        self.choose_gateway(reference, what, SIMULATOR, NO_ANSWER)
        self.agrees(reference)

    @rule(duration=st.sampled_from([timedelta(minutes=30), HOUR - timedelta(seconds=5), HOUR]))
    @tries(needs=CLOCK)
    def time_passes(self, duration: timedelta) -> None:
        self.wait(duration)
        self.target.service.work()
