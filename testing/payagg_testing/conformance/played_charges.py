"""Charges at a provider that the harness plays: begun, paid and asked about; and what the provider sends, genuine and
not."""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, multiple, precondition, rule

from payagg.domain.report import Outcome
from payagg.domain.values import CURRENCY, Environment
from payagg_testing.conformance.assumptions import KEPT
from payagg_testing.conformance.expectation import among
from payagg_testing.conformance.payments import KNOWN_AT_ONCE
from payagg_testing.conformance.payments_by_url import PaymentsByUrl, UrlPayment
from payagg_testing.conformance.provider import FORGERIES, PlayedProvider, charge_fault, event_request
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.statements import tries
from payagg_testing.conformance.target import ENVIRONMENTS, ConformanceTarget
from payagg_testing.state_machine.gateway_model import OVERLAP, GatewayModel
from payagg_testing.state_machine.model import FINAL, SIMULATOR
from payagg_testing.state_machine.system import SILENCE, Said

PAYMENTS: Bundle[str] = Bundle("payments")
AMOUNTS = st.sampled_from([5_000, 150_000, 10**11])
TOGETHER = 3
CHECK_PAUSE = timedelta(seconds=2.1)


def told_of(model: UrlPayment) -> Said:
    """What the provider says of the charge."""
    if model.kobo is None:
        return Said(Outcome.FAILED) if model.has_failed else SILENCE
    is_whole = (model.kobo, model.taken_in) == (model.amount, CURRENCY)
    return Said(Outcome.SUCCEEDED, "WHOLE" if is_whole else "MORE")


class PlayedCharges(PaymentsByUrl):
    @classmethod
    def account(cls, target: ConformanceTarget) -> PlayedProvider | None:
        return target.provider

    def __init__(self) -> None:
        super().__init__()
        account = self.account(self.target)
        assert account is not None
        self.provider = account
        self.path, self.paths = "", dict[str, str]()  # of the provider's gateway; of each, by slug
        self.gateway = GatewayModel("ACTIVE")

    @initialize()
    def set_up(self) -> None:
        """The provider's gateway, with the account of this run and ACTIVE."""
        listed = self.admin("lists the gateways", "GET", "", 200)
        row = next((row for row in listed.data if row["slug"] == self.provider.slug), None)
        if row is None:
            body = {"slug": self.provider.slug, "name": "Played by the harness"}
            row = self.admin("creates it", "POST", "", 201, body=body).data
        self.path = f"/{row['id']}"
        self.paths = {one["slug"]: f"/{one['id']}" for one in (row, *listed.data)}
        self.store_account("stores its account")
        if row["status"] != "ACTIVE":
            self.administer("enables it", "enable", "ACTIVE")

    def store_account(self, what: str, without: str | None = None, of: PlayedProvider | None = None) -> None:
        """Perhaps without what an environment takes, or that of another provider."""
        provider = of or self.provider
        self.raw_secrets.update(provider.secrets.values())
        body = {"credentials": provider.credentials_without(without) if without else provider.credentials}
        self.admin(what, "PATCH", f"{self.paths[provider.slug]}/credentials", 200, body=body)

    def _fresh(self, environment: str, amount: int = 5_000) -> str:
        """A payment that prefers the provider."""
        body = {"amount": amount, "customerEmail": "ada@example.com", "gateway": self.provider.slug}
        return self.initiate_payment(0, environment, body)

    @rule(target=PAYMENTS, environment=st.sampled_from(ENVIRONMENTS), amount=AMOUNTS, together=st.booleans())
    def start(self, environment: str, amount: int, together: bool) -> Any:
        """The payer chooses the provider once, or in several windows at one moment."""
        if environment not in self.merchants[0].keys:
            return multiple()
        reference = self._fresh(environment, amount)
        if together:
            path, body = f"/public/payments/{reference}/process", {"gatewaySlug": self.provider.slug}
            calls = [ServiceCall("POST", path, body=body)] * TOGETHER
            answers = self.ask_together("the payer chooses the provider", calls, [200] * TOGETHER, "checkoutUrl")
            self.models[reference].begin(self.provider.slug, None)
            self.models[reference].hand_over(answers[0].data["checkoutUrl"], self.now, None)
        self.process(reference)
        return reference

    @rule(reference=PAYMENTS)
    @tries("checkout.4")
    def process(self, reference: str) -> None:
        """A repeat gives the same hand-off, even one that asks for the simulator; the provider hears of one charge."""
        model = self.models[reference]
        if model.hand_off is not None and model.environment is Environment.SANDBOX:
            self.choose_gateway(reference, "chooses the simulator instead", SIMULATOR, KNOWN_AT_ONCE[0])
        self.choose_gateway(reference, "chooses the provider", self.provider.slug)
        self.arrive(model)
        amount = model.kobo or model.amount
        self.story.add_note(f"the provider was asked for {amount} kobo, once")
        fault = charge_fault(self.provider, reference, amount, model.lost)
        if fault is not None:
            self.fail(fault)
        self.agrees(reference)

    def administer(self, what: str, move: str, status: str) -> None:
        self.admin(what, "POST", f"{self.path}/{move}", 200, data={"status": status})

    def arrive(self, model: UrlPayment) -> None:
        """The payer's browser goes where it is sent, once."""
        if model.has_arrived or model.hand_off is None:
            return
        model.has_arrived = True
        self.story.add_note("the payer's browser goes there")
        fault = self.provider.hand_off_fault(model.hand_off) or self.provider.arrive(model.hand_off)
        if fault is not None:
            self.fail(fault)

    def _pay(self, reference: str, more: int, currency: str = CURRENCY) -> None:
        model = self.models[reference]
        if model.kobo is None and model.hand_off is not None:
            self._take(reference, model.amount + more, currency)

    def _take(self, reference: str, kobo: int, currency: str) -> None:
        model = self.models[reference]
        model.kobo, model.taken_in = kobo, currency
        self.provider.pay(self.provider.charges(reference)[-1], kobo, currency)
        self.story.add_note(f"the payer pays {kobo} hundredths of 1 {currency} at the provider")

    @rule(reference=PAYMENTS, times=st.sampled_from([1, 2]), together=st.booleans())
    def verify(self, reference: str, times: int = 1, together: bool = False) -> None:
        """Asking finds what the provider took; another amount than the payment's is an error, and moves nothing. What
        becomes of a payment that was not paid within its hour, the interface leaves open. Who asks again at once hears
        the same, and of several windows at one moment each is answered."""
        model = self.models[reference]
        if model.kobo is not None or self.now < model.expires:
            self.pause(max(CHECK_PAUSE, model.look_pause(self.now)))
            if together and told_of(model).share == "WHOLE":
                calls = [ServiceCall("GET", f"/public/payments/{reference}/verify")] * TOGETHER
                self.ask_together("the payer's browser verifies", calls, [200] * TOGETHER, "callbackUrl")
            for _ in range(times):
                self.verify_payment(reference, told_of(model))


class PlayedEvents(PlayedCharges):
    @rule(reference=PAYMENTS, times=st.sampled_from([1, 2]), by_alias=st.booleans())
    @tries("provider-events.3")
    def event(self, reference: str, times: int, by_alias: bool = False) -> None:
        """The provider's signed event, perhaps twice; LIVE ones also at the path without an environment."""
        model = self.models[reference]
        if model.kobo is None and not model.has_failed:
            return
        seen: dict[str, Any] | None = None
        for _ in range(times):
            self.send_event(reference, "reports the charge", "again" if seen else None, by_alias=by_alias)
            may_fail = model.status not in FINAL and model.kobo is None
            model.learn(1, told_of(model), None, self.now)
            if may_fail:
                self._look_for_end(reference)
            before, seen = seen, self.agrees(reference)
            if before not in (None, seen):
                self.fail("a repeated event changed the payment")
            self.tried.update(["provider-events.6"] if told_of(model).share != "WHOLE" else [])

    def _look_for_end(self, reference: str) -> None:
        model, data = self.models[reference], {"status": among("PENDING", "FAILED")}
        seen = self.ask_as_server(model, "reads", "GET", f"/payments/{reference}", 200, data=data)
        self.learn_end(model, seen.data["status"])

    @rule(reference=PAYMENTS)
    @tries("provider-events.2")
    def event_to_the_other_environment(self, reference: str) -> None:
        """Signed with that environment's own secret, as a provider's test mode could."""
        model = self.models[reference]
        if model.kobo is not None:
            other = Environment.LIVE if model.environment is Environment.SANDBOX else Environment.SANDBOX
            self.send_event(reference, f"reports the charge to {other.value}", None, environment=other)
            self.agrees(reference)

    @rule(reference=PAYMENTS, forgery=st.sampled_from(FORGERIES), by_alias=st.booleans())
    @tries("provider-events.1")
    def forged_event(self, reference: str, forgery: str, by_alias: bool) -> None:
        """Tells of a success that never was."""
        self.send_event(reference, f"reports a success with {forgery}", forgery, by_alias=by_alias)
        self.agrees(reference)

    @rule(reference=PAYMENTS, by_alias=st.booleans())
    @tries("provider-events.4")
    def malformed_event(self, reference: str, by_alias: bool) -> None:
        """Signed, and no JSON: it moves nothing. For provider_b alone it is acknowledged."""
        self.send_event(reference, "reports what nobody can read", "malformed", by_alias=by_alias)
        self.agrees(reference)

    @rule(reference=PAYMENTS, then_a_day_passes=st.booleans())
    def rotate(self, reference: str, then_a_day_passes: bool) -> None:
        """The provider's signing secrets are replaced: what it sent before with the old ones is still believed."""
        self.provider.rotate()
        self.story.add_note("the provider has new signing secrets")
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
        if is_proof and KEPT in self.differs:
            return
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
        sent = event_request(self.provider, reference, name, variant)
        segment = "" if by_alias and name == "LIVE" else f"/{name.lower()}"
        status, code = 200, None
        if is_refused or variant in FORGERIES:
            status, code = 400, "INVALID_WEBHOOK_SIGNATURE"
        elif variant == "malformed":
            status = self.provider.malformed_status
        who = "somebody" if variant in FORGERIES else "the provider"
        path, event = f"/webhooks/{self.provider.slug}{segment}", variant or "genuine"
        self.ask(who, what, "POST", path, status, code=code, event=event, **sent)
