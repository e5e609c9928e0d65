"""Charges at a provider that the harness plays: begun, paid and asked about."""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, multiple, rule

from payagg.domain.report import Outcome
from payagg.domain.values import CURRENCY, Environment
from payagg_testing.conformance.payments import KNOWN_AT_ONCE
from payagg_testing.conformance.payments_by_url import PaymentsByUrl, UrlPayment
from payagg_testing.conformance.provider import PlayedProvider, arrival_fault, charge_fault
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.statements import tries
from payagg_testing.conformance.target import ENVIRONMENTS, ConformanceTarget
from payagg_testing.state_machine.gateway_model import GatewayModel
from payagg_testing.state_machine.model import SIMULATOR
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
        self.story.provider = type(account).__name__
        self.story.known[account.fake.base_url] = "provider.fake.base_url"
        self.path, self.paths = "", dict[str, str]()  # of the provider's gateway; of each, by slug
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
        self.paths = {one["slug"]: f"/admin/gateways/{one['id']}" for one in (row, *listed.data)}
        self.store_account("stores its account")
        if row["status"] != "ACTIVE":
            self.administer("enables it", "enable", "ACTIVE")

    def store_account(self, what: str, without: str | None = None, of: PlayedProvider | None = None) -> None:
        """Perhaps without what an environment takes, or that of another provider."""
        provider = of or self.provider
        self.raw_secrets.update(provider.secrets.values())
        if provider is self.provider:
            self.story.known |= {secret: f"provider.secrets[{name!r}]" for name, secret in provider.secrets.items()}
        path, bearer = f"{self.paths[provider.slug]}/credentials", self.target.admin_token
        body = {"credentials": provider.credentials_without(without) if without else provider.credentials}
        self.ask("the administrator", what, "PATCH", path, 200, bearer=bearer, body=body)

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
        line = "expect_charge(provider, {}, {}, {})"
        self.story.add_note(f"the provider was asked for {amount} kobo, once", line, reference, amount, model.lost)
        fault = charge_fault(self.provider, reference, amount, model.lost)
        if fault is not None:
            self.fail(fault, is_replayed=True)
        self.agrees(reference)

    def administer(self, what: str, move: str, status: str) -> None:
        who, token = "the administrator", self.target.admin_token
        self.ask(who, what, "POST", f"{self.path}/{move}", 200, bearer=token, data={"status": status})

    def arrive(self, model: UrlPayment) -> None:
        """The payer's browser goes where it is sent, once."""
        if model.has_arrived or model.hand_off is None:
            return
        model.has_arrived = True
        self.story.add_note("the payer's browser goes there", "expect_arrival(provider, {})", model.hand_off)
        fault = arrival_fault(self.provider, model.hand_off)
        if fault is not None:
            self.fail(fault, is_replayed=True)

    def _pay(self, reference: str, more: int, currency: str = CURRENCY) -> None:
        model = self.models[reference]
        if model.kobo is None and model.hand_off is not None:
            self._take(reference, model.amount + more, currency)

    def _take(self, reference: str, kobo: int, currency: str) -> None:
        model = self.models[reference]
        model.kobo, model.taken_in = kobo, currency
        self.provider.pay(self.provider.charges(reference)[-1], kobo, currency)
        line, words = "provider.pay(provider.charges({})[-1], {}, {})", f"{kobo} hundredths of 1 {currency}"
        self.story.add_note(f"the payer pays {words} at the provider", line, reference, kobo, currency)

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
