"""Settlement: charges at provider_a, which the harness plays. Only a genuine report of the right amount moves money's
status, once, and asking brings the same as being told."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, multiple, rule

from payagg.testing.conformance.base import ConformanceMachine, needs
from payagg.testing.conformance.expectation import matches
from payagg.testing.conformance.provider import event_request
from payagg.testing.conformance.service import ServiceCall
from payagg.testing.conformance.target import ENVIRONMENTS, ConformanceTarget

PAYMENTS: Bundle[str] = Bundle("payments")
TOGETHER = 3
ASK_PAUSE = timedelta(seconds=2.1)
FORGERIES = ("no signature", "wrong signature", "other bytes")


@dataclass
class ModelCharge:
    """One payment and what became of its charge."""

    environment: str
    amount: int
    status: str = "INITIATED"
    hand_off: str | None = None
    paid: int | None = None  # kobo, as the provider took them
    seen: list[str] = field(default_factory=list)


class SettlementConformance(ConformanceMachine):
    title = "settlement"

    @classmethod
    def check_needs(cls, target: ConformanceTarget) -> None:
        needs(target.provider, "a provider's account that the harness may play")
        needs(target.admin_token, "an administrator's token")
        needs(target.merchants and "SANDBOX" in target.merchants[0].keys, "a sandbox key")

    def __init__(self) -> None:
        super().__init__()
        assert self.target.provider is not None
        self.provider = self.target.provider
        self.story.known[self.provider.fake.base_url] = "provider.fake.base_url"
        self.models: dict[str, ModelCharge] = {}

    @initialize()
    def set_up(self) -> None:
        """The provider's gateway, with the account of this run and ACTIVE."""
        token = self.target.admin_token
        who = "the administrator"
        listed = self.ask(who, "lists the gateways", "GET", "/admin/gateways", 200, bearer=token)
        row = next((row for row in listed.data if row["slug"] == self.provider.slug), None)
        if row is None:
            body = {"slug": self.provider.slug, "name": "Provider A"}
            row = self.ask(who, "creates it", "POST", "/admin/gateways", 201, bearer=token, body=body).data
        path, account = f"/admin/gateways/{row['id']}", {"credentials": self.provider.credentials}
        if not row["hasCredentials"] or not self.target.has_provider_account:
            self.ask(who, "stores its account", "PATCH", f"{path}/credentials", 200, bearer=token, body=account)
            self.target.has_provider_account = True
        if row["status"] != "ACTIVE":
            self.ask(who, "enables it", "POST", f"{path}/enable", 200, bearer=token, data={"status": "ACTIVE"})

    @rule(
        target=PAYMENTS,
        environment=st.sampled_from(ENVIRONMENTS),
        amount=st.sampled_from([5_000, 150_000, 10**11]),
        together=st.booleans(),
    )
    def start(self, environment: str, amount: int, together: bool) -> Any:
        """The payer chooses the provider once, or in several windows at one moment."""
        key = self.merchants[0].keys.get(environment)
        if key is None:
            return multiple()
        body = {"amount": amount, "customerEmail": "ada@example.com", "gateway": self.provider.slug}
        who, path, what = self.server(environment), "/payments/initiate", f"initiates a payment of {amount} kobo"
        reference: str = self.ask(who, what, "POST", path, 201, bearer=key, body=body).data["reference"]
        self.models[reference] = ModelCharge(environment, amount)
        if together:
            path, body = f"/public/payments/{reference}/process", {"gatewaySlug": self.provider.slug}
            calls = [ServiceCall("POST", path, body=body)] * TOGETHER
            answers = self.ask_together("the payer chooses the provider", calls, [200] * TOGETHER, "checkoutUrl")
            self.models[reference].hand_off, self.models[reference].status = answers[0].data["checkoutUrl"], "PENDING"
        self.process(reference)
        return reference

    def server(self, environment: str) -> str:
        return f"the server of business 1 ({environment})"

    @rule(reference=PAYMENTS)
    def process(self, reference: str) -> None:
        """A repeat gives the same hand-off; the provider hears of one charge."""
        model, path = self.models[reference], f"/public/payments/{reference}/process"
        is_final = model.status not in ("INITIATED", "PENDING")
        code = "PAYMENT_ALREADY_PROCESSED" if is_final else None
        data = None if is_final else {"checkoutUrl": model.hand_off or matches("https?://.+")}
        body = {"gatewaySlug": self.provider.slug}
        answer = self.ask(
            "the payer", "chooses the provider", "POST", path, 409 if is_final else 200, body=body, code=code, data=data
        )
        if not is_final:
            model.status, model.hand_off = "PENDING", answer.data["checkoutUrl"]
        charges = self.provider.charges(reference)
        if len(charges) != 1 or charges[0].opened != 1:
            self.fail(f"the provider has {len(charges)} charges, begun {[charge.opened for charge in charges]} times")
        if charges[0].amount != (model.paid or model.amount):
            self.fail(f"the provider was asked for {charges[0].amount} kobo, the payment is of {model.amount}")
        self.agrees(reference)

    @rule(
        reference=PAYMENTS,
        more=st.sampled_from([0, 0, -1, 100]),
        then=st.sampled_from(["nothing", "event", "verify", "other environment", "other environment"]),
    )
    def payer_pays(self, reference: str, more: int, then: str) -> None:
        """At the provider, which takes `more` beside the amount; often it is heard of at once."""
        self._pay(reference, more)
        if then == "event":
            self.event(reference, 1)
        elif then == "verify":
            self.verify(reference)
        elif then == "other environment":
            self.event_to_the_other_environment(reference)

    def _pay(self, reference: str, more: int) -> None:
        model = self.models[reference]
        if model.paid is None and model.hand_off is not None:
            model.paid = model.amount + more
            self.provider.pay(self.provider.charges(reference)[0], model.paid)
            line = "provider.pay(provider.charges({})[0], {})"
            self.story.noted(f"the payer pays {model.paid} kobo at the provider", line, reference, model.paid)

    @rule(reference=PAYMENTS, times=st.sampled_from([1, 2]))
    def event(self, reference: str, times: int) -> None:
        """The provider's signed event, perhaps twice."""
        model = self.models[reference]
        if model.paid is None:
            return
        for _ in range(times):
            self.send_event(reference, model.environment, "reports the charge", None)
            if model.paid == model.amount and model.status == "PENDING":
                model.status = "SUCCESS"
            self.agrees(reference)

    @rule(reference=PAYMENTS)
    def event_to_the_other_environment(self, reference: str) -> None:
        """Signed with that environment's own secret, as a provider's test mode could."""
        model = self.models[reference]
        if model.paid is not None:
            other = "LIVE" if model.environment == "SANDBOX" else "SANDBOX"
            self.send_event(reference, other, f"reports the charge to {other}", None)
            self.agrees(reference)

    @rule(reference=PAYMENTS, forgery=st.sampled_from(FORGERIES))
    def forged_event(self, reference: str, forgery: str) -> None:
        """Tells of a success that never was."""
        model = self.models[reference]
        self.send_event(reference, model.environment, f"reports a success with {forgery}", forgery)
        self.agrees(reference)

    def send_event(self, reference: str, environment: str, what: str, forgery: str | None) -> None:
        event = (reference, environment, forgery)
        sent = event_request(self.provider, *event)
        path = f"/webhooks/{self.provider.slug}/{environment.lower()}"
        status, code = (400, "INVALID_WEBHOOK_SIGNATURE") if forgery else (200, None)
        who = "the provider" if forgery is None else "somebody"
        self.ask(who, what, "POST", path, status, code=code, event=event, **sent)

    @rule(reference=PAYMENTS)
    def verify(self, reference: str) -> None:
        """Asking finds what the provider took; another amount than the payment's is an error, and moves nothing."""
        model = self.models[reference]
        self.pause(ASK_PAUSE)
        status, code = 200, None
        if model.paid is not None and model.status == "PENDING":
            if model.paid == model.amount:
                model.status = "SUCCESS"
            else:
                status, code = 502, "PAYMENT_AMOUNT_MISMATCH"
        data = {"status": model.status} if status == 200 else None
        path = f"/public/payments/{reference}/verify"
        self.ask("the payer's browser", "verifies", "GET", path, status, code=code, data=data)
        self.agrees(reference)

    @rule(reference=PAYMENTS, outcome=st.sampled_from(["FAILED", "REVERSED"]))
    def simulate(self, reference: str, outcome: str) -> None:
        """Then the payer pays all the same, and the provider's report comes too late to change anything."""
        model = self.models[reference]
        if model.environment == "SANDBOX" and model.status == "PENDING":
            path, key = f"/payments/{reference}/simulate", self.merchants[0].keys["SANDBOX"]
            who, body = self.server("SANDBOX"), {"outcome": outcome}
            self.ask(who, f"simulates {outcome}", "POST", path, 200, bearer=key, body=body, data={"status": outcome})
            model.status = outcome
            self._pay(reference, 0)
            self.event(reference, 1)

    def agrees(self, reference: str) -> None:
        model = self.models[reference]
        key, who, path = (
            self.merchants[0].keys[model.environment],
            self.server(model.environment),
            f"/payments/{reference}",
        )
        data = {"status": model.status, "amount": model.amount, "gateway": self.provider.slug}
        self.ask(who, "reads", "GET", path, 200, bearer=key, data=data)
