"""Drives payments with requests beside a model, for the machines that judge them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from payagg.domain.report import Outcome
from payagg.domain.values import CURRENCY, Environment
from payagg_testing.conformance.assumptions import FAILURE
from payagg_testing.conformance.base import ConformanceMachine
from payagg_testing.conformance.expectation import ABSENT, among, lacks, matches
from payagg_testing.state_machine.model import FINAL, HOUR, SIMULATOR, Model
from payagg_testing.state_machine.system import SILENCE, Said

REFERENCE = r"[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}"
START = datetime(2025, 1, 31, 9, tzinfo=UTC)  # of every history: the service's own time is not looked at
STATUS_OF = {"PAYMENT_EXPIRED": 410, "PAYMENT_ALREADY_PROCESSED": 409, "GATEWAY_NOT_AVAILABLE": 400}
CUSTOMER = ("customerEmail", "customerName", "customerPhone")


@dataclass
class UrlPayment(Model):
    """The payment machine's model, and what only those who ask by URL know."""

    merchant: int = 0
    callback_url: str | None = None
    metadata: dict[str, Any] | None = None
    has_arrived: bool = False  # the payer, at the provider
    kobo: int | None = None  # as the provider took them
    taken_in: str = CURRENCY
    has_failed: bool = False  # at the provider, and was not paid since
    lost: int = 0  # charges that the provider began in an answer that broke off


class PaymentsByUrl(ConformanceMachine):
    """Drives payments with requests, beside the model that also judges the domain and the use cases. What the interface
    leaves open stays open: the status of what was never begun in its hour, and which of two true refusals is told."""

    def __init__(self) -> None:
        super().__init__()
        self.models: dict[str, UrlPayment] = {}
        self.now = START

    def wait(self, duration: timedelta) -> None:
        super().wait(duration)
        self.now += duration

    def server(self, model: UrlPayment) -> str:
        return f"the server of business {model.merchant + 1} ({model.environment.value})"

    def key(self, model: UrlPayment) -> str:
        return self.merchants[model.merchant].keys[model.environment.value]

    def ask_as_server(self, model: UrlPayment, what: str, method: str, path: str, *statuses: int, **more: Any) -> Any:
        return self.ask(self.server(model), what, method, path, *statuses, bearer=self.key(model), **more)

    def may_initiate(self, merchant: int, environment: str) -> bool:
        held = self.merchants[merchant].keys
        return environment in held and (environment == "SANDBOX" or self.target.takes_live(self.merchants[merchant]))

    def initiate_payment(self, merchant: int, environment: str, body: dict[str, Any]) -> str:
        given: dict[str, Any] = {"callback_url": body.get("callbackUrl"), "metadata": body.get("metadata")}
        model = UrlPayment(body["amount"], Environment(environment), self.now + HOUR, merchant=merchant, **given)
        data = {"reference": matches(REFERENCE), "amount": model.amount, "currency": "NGN", "environment": environment}
        data |= {
            "status": "INITIATED",
            "checkoutUrl": matches(r"https?://.+"),
            "expiresAt": matches(r"\d{4}-\d\d-\d\dT.+"),
        }
        what = f"initiates a payment of {model.amount} kobo"
        answer = self.ask_as_server(model, what, "POST", "/payments/initiate", 201, body=body, data=data)
        reference: str = answer.data["reference"]
        self.know(reference, model)
        return reference

    def know(self, reference: str, model: UrlPayment) -> None:
        if reference in self.models:
            self.fail("a reference was given out twice")
        self.models[reference] = model

    def choose_gateway(
        self, reference: str, what: str, gateway: str, card: str | None = None, *, is_active: bool = True
    ) -> None:
        """The payer, by process."""
        model, body = self.models[reference], {"gatewaySlug": gateway} | ({"cardNumber": card} if card else {})
        code = model.refusal_of_process(self.now, gateway, is_active=is_active, refused=False, takes_money=True)
        statuses, data = [200 if code is None else STATUS_OF[code]], None
        if code is None:
            data = {"checkoutUrl": model.hand_off or matches(r".+")}
        elif model.status in FINAL and self.now >= model.expires:
            statuses, code = [409, 410], None
        path = f"/public/payments/{reference}/process"
        answer = self.ask("the payer", what, "POST", path, *statuses, body=body, code=code, data=data)
        self.tried.update(["checkout.7"] if gateway == SIMULATOR and model.environment is Environment.LIVE else [])
        if answer.status == 200 and model.hand_off is None:
            model.begin(gateway, None)
            model.hand_over(answer.data["checkoutUrl"], self.now, card)

    def verify_payment(self, reference: str, said: Said = SILENCE) -> None:
        """`said` is what the provider will say, should it be asked."""
        model, status, code = self.models[reference], 200, None
        may_fail = model.status == "PENDING" and said.outcome is Outcome.FAILED
        if model.status == "PENDING" and model.ask(said, self.now)[0] == "MISMATCH":
            status, code = 502, "PAYMENT_AMOUNT_MISMATCH"
            self.tried.add("checkout.11")
        data: dict[str, Any] = {"status": among("PENDING", "FAILED") if may_fail else model.status}
        data |= {"callbackUrl": model.callback_url} if model.callback_url else {}
        path, data = f"/public/payments/{reference}/verify", data if code is None else {}
        answer = self.ask("the payer's browser", "verifies", "GET", path, status, code=code, data=data)
        if may_fail:
            self.learn_end(model, answer.data["status"])
        self.agrees(reference)

    def learn_end(self, model: UrlPayment, status: str) -> None:
        """Of a payment whose charge failed: what that makes of it, the interface leaves open."""
        if status != model.status and FAILURE not in self.differs:
            self.fail(f'status is "{status}"', assumption=FAILURE)
        model.status = status

    def simulate_outcome(self, reference: str, outcome: str) -> None:
        model = self.models[reference]
        status, code, data = 200, None, {"reference": reference, "status": outcome, "amount": model.amount}
        if model.environment is Environment.LIVE:
            status, code, data = 403, "SANDBOX_ONLY", {}
        elif model.status in FINAL:
            status, code, data = 409, "PAYMENT_ALREADY_FINAL", {}
        else:
            model.move(outcome, self.now, "SIMULATED")
        path, body, what = f"/payments/{reference}/simulate", {"outcome": outcome}, f"simulates {outcome}"
        self.ask_as_server(model, what, "POST", path, status, body=body, code=code, data=data)
        self.agrees(reference)

    def agrees(self, reference: str) -> dict[str, Any]:
        """The merchant and the payer see what the model says; neither sees more than is theirs. What the merchant sees,
        but for instants."""
        model, path = self.models[reference], f"/payments/{reference}"
        status = matches("INITIATED|FAILED") if model.is_expired(self.now) else model.status
        facts = {"reference": reference, "amount": model.amount, "currency": "NGN", "status": status}
        own = facts | ({"gateway": model.gateway} if model.gateway else {}) | {"": lacks("businessId")}
        # Whether a merchant is shown these, the interface leaves open.
        own |= {"metadata": among(model.metadata, ABSENT)} if model.metadata else {}
        own |= {"callbackUrl": among(model.callback_url, ABSENT)} if model.callback_url else {}
        hidden = lacks("businessId", "id", "metadata", *CUSTOMER)
        seen = self.ask_as_server(model, "reads", "GET", path, 200, data=own).data
        self.ask("the payer", "looks at the payment", "GET", f"/public{path}", 200, data=facts | {"": hidden})
        return {name: value for name, value in seen.items() if not name.endswith("At")}
