"""Settlement: charges at providers that the harness plays. Only a genuine report of the right amount moves money's
status, once, and asking brings the same as being told."""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, multiple, precondition, rule

from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from payagg_testing.conformance.base import needs
from payagg_testing.conformance.payments import PaymentsByUrl, UrlPayment
from payagg_testing.conformance.provider import PlayedProvider, arrival_fault, charge_fault, event_request
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.target import ENVIRONMENTS, ConformanceTarget
from payagg_testing.state_machine.gateway_model import OVERLAP, GatewayModel
from payagg_testing.state_machine.system import SILENCE, Said

PAYMENTS: Bundle[str] = Bundle("payments")
TOGETHER = 3
ASK_PAUSE = timedelta(seconds=2.1)
FORGERIES = ("no signature", "wrong signature", "other bytes")


def told_of(model: UrlPayment) -> Said:
    """What the provider says of the charge."""
    if model.kobo is None:
        return SILENCE
    return Said(Outcome.SUCCEEDED, "WHOLE" if model.kobo == model.amount else "MORE")


class SettlementConformance(PaymentsByUrl):
    title = "settlement"

    @classmethod
    def account(cls, target: ConformanceTarget) -> PlayedProvider | None:
        return target.provider

    @classmethod
    def check_needs(cls, target: ConformanceTarget) -> None:
        needs("payer" not in target.without, "payers")
        needs(cls.account(target), "a provider's account that the harness may play")
        needs(target.admin_token, "an administrator's token")
        needs(target.merchants and "SANDBOX" in target.merchants[0].keys, "a sandbox key")

    def __init__(self) -> None:
        super().__init__()
        account = self.account(self.target)
        assert account is not None
        self.provider = account
        self.story.provider = type(account).__name__
        self.story.known[account.fake.base_url] = "provider.fake.base_url"
        self.path = ""
        self.gateway = GatewayModel("ACTIVE")

    @initialize()
    def set_up(self) -> None:
        """The provider's gateway, with the account of this run and ACTIVE."""
        token = self.target.admin_token
        who = "the administrator"
        listed = self.ask(who, "lists the gateways", "GET", "/admin/gateways", 200, bearer=token)
        row = next((row for row in listed.data if row["slug"] == self.provider.slug), None)
        if row is None:
            body = {"slug": self.provider.slug, "name": "Played by the harness"}
            row = self.ask(who, "creates it", "POST", "/admin/gateways", 201, bearer=token, body=body).data
        self.path = f"/admin/gateways/{row['id']}"
        self.store_account("stores its account")
        if row["status"] != "ACTIVE":
            self.administer("enables it", "enable", "ACTIVE")

    def store_account(self, what: str) -> None:
        for environment, secret in self.provider.secrets.items():
            self.story.known[secret] = f"provider.secrets[{environment!r}]"
            self.raw_secrets.add(secret)
        path, body, bearer = (
            f"{self.path}/credentials",
            {"credentials": self.provider.credentials},
            self.target.admin_token,
        )
        self.ask("the administrator", what, "PATCH", path, 200, bearer=bearer, body=body)

    @rule(
        target=PAYMENTS,
        environment=st.sampled_from(ENVIRONMENTS),
        amount=st.sampled_from([5_000, 150_000, 10**11]),
        together=st.booleans(),
    )
    def start(self, environment: str, amount: int, together: bool) -> Any:
        """The payer chooses the provider once, or in several windows at one moment."""
        if environment not in self.merchants[0].keys:
            return multiple()
        body = {"amount": amount, "customerEmail": "ada@example.com", "gateway": self.provider.slug}
        reference = self.initiate_payment(0, environment, body)
        if together:
            path, body = f"/public/payments/{reference}/process", {"gatewaySlug": self.provider.slug}
            calls = [ServiceCall("POST", path, body=body)] * TOGETHER
            answers = self.ask_together("the payer chooses the provider", calls, [200] * TOGETHER, "checkoutUrl")
            self.models[reference].begin(self.provider.slug, None)
            self.models[reference].hand_over(answers[0].data["checkoutUrl"], self.now, None)
        self.process(reference)
        return reference

    @rule(reference=PAYMENTS)
    def process(self, reference: str) -> None:
        """A repeat gives the same hand-off; the provider hears of one charge."""
        model = self.models[reference]
        self.choose_gateway(reference, "chooses the provider", self.provider.slug)
        self.arrive(model)
        amount = model.kobo or model.amount
        line = "expect_charge(provider, {}, {})"
        self.story.noted(f"the provider was asked for {amount} kobo, once", line, reference, amount)
        fault = charge_fault(self.provider, reference, amount)
        if fault is not None:
            self.fail(fault, is_replayed=True)
        self.agrees(reference)

    @rule(reference=PAYMENTS, environment=st.sampled_from(ENVIRONMENTS))
    def drain(self, reference: str, environment: str) -> None:
        """At a gateway that drains no charge begins; what was begun there goes on, and is told of."""
        if environment not in self.merchants[0].keys:
            return
        body = {"amount": 5_000, "gateway": self.provider.slug}
        fresh = self.initiate_payment(0, environment, body)
        self.administer("disables it", "disable", "DRAINING")
        words = "chooses the provider, whose gateway drains"
        self.choose_gateway(fresh, words, self.provider.slug, is_active=False)
        if self.provider.charges(fresh):
            self.fail("the provider was asked for a charge")
        self.agrees(fresh)
        self._pay(reference, 0)
        self.event(reference, 1)
        self.administer("enables it", "enable", "ACTIVE")

    def administer(self, what: str, move: str, status: str) -> None:
        who, token = "the administrator", self.target.admin_token
        self.ask(who, what, "POST", f"{self.path}/{move}", 200, bearer=token, data={"status": status})

    def arrive(self, model: UrlPayment) -> None:
        """The payer's browser goes where it is sent, once."""
        if model.has_arrived or model.hand_off is None:
            return
        model.has_arrived = True
        self.story.noted("the payer's browser goes there", "expect_arrival(provider, {})", model.hand_off)
        fault = arrival_fault(self.provider, model.hand_off)
        if fault is not None:
            self.fail(fault, is_replayed=True)

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
        if model.kobo is None and model.hand_off is not None:
            model.kobo = model.amount + more
            self.provider.pay(self.provider.charges(reference)[0], model.kobo)
            line = "provider.pay(provider.charges({})[0], {})"
            self.story.noted(f"the payer pays {model.kobo} kobo at the provider", line, reference, model.kobo)

    @rule(reference=PAYMENTS, times=st.sampled_from([1, 2]), by_alias=st.booleans())
    def event(self, reference: str, times: int, by_alias: bool = False) -> None:
        """The provider's signed event, perhaps twice; LIVE ones also at the path without an environment."""
        model = self.models[reference]
        if model.kobo is None:
            return
        for _ in range(times):
            self.send_event(reference, "reports the charge", None, by_alias=by_alias)
            model.learn(1, told_of(model), None, self.now)
            self.agrees(reference)

    @rule(reference=PAYMENTS)
    def event_to_the_other_environment(self, reference: str) -> None:
        """Signed with that environment's own secret, as a provider's test mode could."""
        model = self.models[reference]
        if model.kobo is not None:
            other = Environment.LIVE if model.environment is Environment.SANDBOX else Environment.SANDBOX
            self.send_event(reference, f"reports the charge to {other.value}", None, environment=other)
            self.agrees(reference)

    @rule(reference=PAYMENTS, forgery=st.sampled_from(FORGERIES))
    def forged_event(self, reference: str, forgery: str) -> None:
        """Tells of a success that never was."""
        self.send_event(reference, f"reports a success with {forgery}", forgery)
        self.agrees(reference)

    @rule(reference=PAYMENTS, by_alias=st.booleans())
    def malformed_event(self, reference: str, by_alias: bool) -> None:
        """Signed, and no JSON: it moves nothing. For provider_b alone it is acknowledged."""
        self.send_event(reference, "reports what nobody can read", "malformed", by_alias=by_alias)
        self.agrees(reference)

    @rule(reference=PAYMENTS, then_a_day_passes=st.booleans())
    def rotate(self, reference: str, then_a_day_passes: bool) -> None:
        """The provider's signing secrets are replaced: what it sent before with the old ones is still believed."""
        self.provider.rotate()
        self.story.noted("the provider has new signing secrets", "provider.rotate()")
        self.store_account("stores the new secrets")
        self.gateway.move("ROTATE", self.now)
        self._pay(reference, 0)
        self.event_of_before(reference)
        self.event(reference, 1)
        if then_a_day_passes and self.target.service.can_wait:
            self.wait(OVERLAP)
            self.event_of_before(reference)

    @precondition(lambda self: self.gateway.account > 1)
    @rule(reference=PAYMENTS)
    def event_of_before(self, reference: str) -> None:
        """Signed with the secret that was replaced: proof for a day, and no more than a forgery afterwards."""
        model = self.models[reference]
        if model.kobo is None:
            return
        is_proof = self.gateway.proves(self.gateway.account - 1, self.now)
        what = "reports the charge with the replaced secret"
        self.send_event(reference, what, "replaced secret", is_refused=not is_proof)
        if is_proof:
            model.learn(1, told_of(model), None, self.now)
        self.agrees(reference)

    def send_event(
        self,
        reference: str,
        what: str,
        variant: str | None,
        *,
        environment: Environment | None = None,
        by_alias: bool = False,
        is_refused: bool = False,
    ) -> None:
        """To the payment's own environment, unless told otherwise."""
        name = (environment or self.models[reference].environment).value
        event = (reference, name, variant)
        sent = event_request(self.provider, *event)
        segment = "" if by_alias and name == "LIVE" else f"/{name.lower()}"
        status, code = 200, None
        if is_refused or variant in FORGERIES:
            status, code = 400, "INVALID_WEBHOOK_SIGNATURE"
        elif variant == "malformed":
            status = self.provider.malformed_status
        who = "somebody" if variant in FORGERIES else "the provider"
        self.ask(who, what, "POST", f"/webhooks/{self.provider.slug}{segment}", status, code=code, event=event, **sent)

    @rule(reference=PAYMENTS)
    def verify(self, reference: str) -> None:
        """Asking finds what the provider took; another amount than the payment's is an error, and moves nothing. What
        becomes of a payment that was not paid within its hour, the interface leaves open."""
        model = self.models[reference]
        if model.kobo is not None or self.now < model.expires:
            self.pause(ASK_PAUSE)
            self.verify_payment(reference, told_of(model))

    @rule(reference=PAYMENTS, outcome=st.sampled_from(["FAILED", "REVERSED"]))
    def simulate(self, reference: str, outcome: str) -> None:
        """Then the payer pays all the same, and the provider's report comes too late to change anything."""
        model = self.models[reference]
        if model.environment is Environment.SANDBOX and model.status == "PENDING":
            self.simulate_outcome(reference, outcome)
            self._pay(reference, 0)
            self.event(reference, 1)


class SettlementOfProviderB(SettlementConformance):
    """The same rules; only the provider's protocol is another."""

    title = "settlement at provider_b"

    @classmethod
    def account(cls, target: ConformanceTarget) -> PlayedProvider | None:
        return target.provider_b
