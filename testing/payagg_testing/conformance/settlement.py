"""Settlement: charges at providers that the harness plays. Only a genuine report of the right amount moves money's
status, once, and asking brings the same as being told."""

from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import multiple, precondition, rule

from payagg.domain.values import CURRENCY, Environment
from payagg_testing.conformance.assumptions import ASKED, UNASKED, UNHEALTHY
from payagg_testing.conformance.expectation import ABSENT, among, look
from payagg_testing.conformance.payments_by_url import UrlPayment
from payagg_testing.conformance.played_charges import PAYMENTS, PlayedEvents, told_of
from payagg_testing.conformance.provider import PlayedProvider
from payagg_testing.conformance.service import ServiceAnswer
from payagg_testing.conformance.statements import ADMIN, CLOCK, SANDBOX_KEY, Need, tries
from payagg_testing.conformance.target import ENVIRONMENTS, ConformanceTarget
from payagg_testing.state_machine.model import FINAL, HOUR

# What a provider's option that cannot be used is refused with, by its status.
UNAVAILABLE = {400: ("GATEWAY_NOT_AVAILABLE", "GATEWAY_ENVIRONMENT_NOT_CONFIGURED")}
ACCOUNT, ACCOUNT_B = (
    Need("a provider's account that the harness may play", lambda target: target.provider),
    Need("a provider's account that the harness may play", lambda target: target.provider_b),
)
FAULTS_MAX = 5  # in a row, after which payagg shows a provider unavailable
HEALED = timedelta(minutes=11)  # when it is tried again at the latest


class SettlementConformance(PlayedEvents):
    title = "settlement"
    in_passing: ClassVar = {"checkout.11": (), "provider-events.6": ()}

    needs = (ACCOUNT, ADMIN, SANDBOX_KEY)

    @precondition(lambda self: self.provider.starts_by_call)
    @rule(
        target=PAYMENTS,
        environment=st.sampled_from(ENVIRONMENTS),
        fault=st.sampled_from(["SERVER_ERROR", "RESET"]),
        is_paid=st.booleans(),
    )
    def start_fails(self, environment: str, fault: str, is_paid: bool) -> Any:
        """The provider answers with an error, or its answer breaks off. The payer chooses again, and has one charge.
        Where the provider's own mail brought the payer to the first one, asking finds that it is paid."""
        if environment not in self.merchants[0].keys:
            return multiple()
        reference = self._start_badly(environment, fault)
        if is_paid and self.models[reference].hand_off is None and self.provider.charges(reference):
            self._take(reference, self.models[reference].amount, CURRENCY)
            self._try_provider(reference, 200, 409, *UNAVAILABLE)
            if len(self.provider.charges(reference)) > 1 and ASKED not in self.differs:
                self.fail("a charge begins beside one that is paid", assumption=ASKED)
            return multiple()
        self.process(reference)
        return reference

    def _start_badly(self, environment: str, fault: str) -> str:
        reference = self._fresh(environment)
        model = self.models[reference]
        model.lost = int(fault == "RESET")
        self.provider.fail(fault)
        self.story.add_note(f"the provider's next answer will be {fault}")
        if (answer := self._try_provider(reference, 200, *UNAVAILABLE)).status == 200:
            model.begin(self.provider.slug, None)
            model.hand_over(answer.data["checkoutUrl"], self.now, None)
        elif answer.code != "GATEWAY_NOT_AVAILABLE":  # its account is whole
            self.fail(f"the code is {answer.code}")
        return reference

    def _try_provider(self, reference: str, *statuses: int) -> ServiceAnswer:
        """The answer to a payer who chooses it, where that may be refused."""
        path, chosen = f"/public/payments/{reference}/process", {"gatewaySlug": self.provider.slug}
        answer = self.ask("the payer", "chooses the provider", "POST", path, *statuses, body=chosen)
        if answer.status != 200 and answer.code not in UNAVAILABLE.get(answer.status, ("PAYMENT_ALREADY_PROCESSED",)):
            self.fail(f"the code is {answer.code}")
        return answer

    @precondition(lambda self: self.provider.starts_by_call)
    @rule(target=PAYMENTS, environment=st.sampled_from(ENVIRONMENTS))
    @tries("checkout.6", needs=CLOCK)
    def start_fails_often(self, environment: str) -> Any:
        """What is unhealthy is shown unavailable, and what is shown so cannot be selected."""
        if environment not in self.merchants[0].keys:
            return multiple()
        for _ in range(FAULTS_MAX):
            self._start_badly(environment, "SERVER_ERROR")
        reference = self._fresh(environment)
        path, option = f"/public/payments/{reference}/gateways", f"gateways[slug={self.provider.slug}].available"
        for is_sick in (True, False):
            seen = self.ask("the payer", "looks at the options", "GET", path, 200, data={option: among(True, False)})
            if (is_shown := look(seen.data, option)) is is_sick and UNHEALTHY not in self.differs:
                self.fail(f"it is shown {'' if is_shown else 'un'}available", assumption=UNHEALTHY)
            if is_shown:
                self.process(reference)
                return reference
            self._try_provider(reference, *UNAVAILABLE)
            if self.provider.charges(reference):
                self.fail("the provider was asked for a charge")
            self.wait(HEALED)
        return multiple()

    @rule(target=PAYMENTS, everywhere=st.booleans(), is_paid=st.booleans())
    @tries("checkout.6")
    def lose_the_live_account(self, everywhere: bool, is_paid: bool) -> Any:
        """Credentials replace those before in full: without LIVE ones no charge begins there, until they are back.
        Where no option can take LIVE payments they are refused; SANDBOX ones never are."""
        if "LIVE" not in self.merchants[0].keys:
            return multiple()
        begun = self._fresh("LIVE")
        self.process(begun)
        if is_paid:
            self._pay(begun, 0)
            self.event(begun, 1)
            if self.target.service.can_wait:
                self.wait(HOUR)
        reference, played = self._fresh("LIVE"), (self.target.provider, self.target.provider_b)
        accounts = [one for one in played if one and one.slug in self.paths] if everywhere else [self.provider]
        for one in accounts:
            self.store_account("stores an account without LIVE", "LIVE", one)
        path, data = f"/public/payments/{reference}/gateways", {f"gateways[slug={self.provider.slug}].available": False}
        options = self.ask("the payer", "looks at the options", "GET", path, 200, data=data)
        self._try_provider(reference, *UNAVAILABLE)
        self._verify_without_account(begun)
        if True not in look(options.data, "gateways[*].available"):
            who, key, code = "the server of business 1 (LIVE)", self.merchants[0].keys["LIVE"], "NO_GATEWAY_AVAILABLE"
            body = {"amount": 5_000}
            self.ask(who, "initiates another", "POST", "/payments/initiate", 503, bearer=key, body=body, code=code)
            self.initiate_payment(0, "SANDBOX", body)
        for one in accounts:
            self.store_account("stores its whole account", of=one)
        self.process(reference)
        return reference

    def _verify_without_account(self, reference: str) -> None:
        """What cannot be asked about moves nothing."""
        path, is_final = f"/public/payments/{reference}/verify", self.models[reference].status in FINAL
        answer = self.ask("the payer's browser", "verifies", "GET", path, 200, 400)
        if answer.status == 400 and answer.code != "GATEWAY_NOT_AVAILABLE":
            self.fail(f"the code is {answer.code}")
        if (answer.status == 200) is not is_final and UNASKED not in self.differs:
            self.fail(f"the status is {answer.status}", assumption=UNASKED)
        self.agrees(reference)

    @rule(reference=PAYMENTS)
    def opt_out(self, reference: str) -> None:
        """A business switches the provider off: no charge of its payments begins there, and what was begun goes on."""
        if self.merchants[0].token is None:
            return
        fresh, slug = self.initiate_payment(0, "SANDBOX", {"amount": 5_000}), self.provider.slug
        path, owner = f"/public/payments/{fresh}/gateways", f"/gateways/{self.path.rpartition('/')[2]}"
        self.ask_as_owner(0, "switches the provider off", "PATCH", owner, 200, body={"isEnabled": False})
        data = {f"gateways[slug={slug}].available": among(False, ABSENT)}
        self.ask("the payer", "looks at the options", "GET", path, 200, data=data)
        self.choose_gateway(fresh, "chooses the provider, which is off", slug, is_active=False)
        if self.provider.charges(fresh):
            self.fail("the provider was asked for a charge")
        body, key = {"amount": 5_000, "gateway": slug}, self.merchants[0].keys["SANDBOX"]
        who, code = "the server of business 1 (SANDBOX)", "GATEWAY_DISABLED"
        self.ask(who, "asks for it", "POST", "/payments/initiate", 400, bearer=key, body=body, code=code)
        self._pay(reference, 0)
        self.event(reference, 1)
        self.ask_as_owner(0, "switches the provider on", "PATCH", owner, 200, body={"isEnabled": True})
        self.process(fresh)

    @rule(reference=PAYMENTS, environment=st.sampled_from(ENVIRONMENTS))
    def drain(self, reference: str, environment: str) -> None:
        """At a gateway that drains no charge begins; what was begun there goes on, and is told of."""
        if environment not in self.merchants[0].keys:
            return
        fresh = self._fresh(environment)
        self.administer("disables it", "disable", "DRAINING")
        words = "chooses the provider, whose gateway drains"
        self.choose_gateway(fresh, words, self.provider.slug, is_active=False)
        if self.provider.charges(fresh):
            self.fail("the provider was asked for a charge")
        self.agrees(fresh)
        self._pay(reference, 0)
        self.event(reference, 1)
        self.administer("enables it", "enable", "ACTIVE")

    @rule(
        reference=PAYMENTS,
        more=st.sampled_from([0, 0, -1, 100]),
        currency=st.sampled_from([CURRENCY, CURRENCY, CURRENCY, "USD"]),
        then=st.sampled_from(["nothing", "event", "verify", "other environment", "other environment"]),
    )
    def payer_pays(self, reference: str, more: int, currency: str, then: str) -> None:
        """At the provider, which takes `more` beside the amount, or another currency; often it is heard of at once."""
        self._pay(reference, more, currency)
        if then == "event":
            self.event(reference, 1)
        elif then == "verify":
            self.verify(reference)
        elif then == "other environment":
            self.event_to_the_other_environment(reference)

    @rule(reference=PAYMENTS, is_asked=st.booleans(), then_pays=st.booleans())
    def charge_fails(self, reference: str, is_asked: bool, then_pays: bool) -> None:
        """The provider declines the payer's card; with another one the payer may pay all the same."""
        model = self.models[reference]
        if model.kobo is not None or model.hand_off is None:
            return
        model.has_failed = True
        self.story.add_note("the provider declines the card")
        self.provider.decline(self.provider.charges(reference)[-1])
        partial(self.verify if is_asked else self.event, reference)(1)
        if then_pays:
            self._pay(reference, 0)
            self.event(reference, 1)

    @rule(reference=PAYMENTS, wrong=st.sampled_from([(-1, CURRENCY), (0, "USD")]), is_asked=st.booleans())
    def payer_pays_again(self, reference: str, wrong: tuple[int, str], is_asked: bool) -> None:
        """What was wrong at first is the right amount in the end. Until then each look says so, whoever told it."""
        model = self.models[reference]
        self._pay(reference, *wrong)
        if model.kobo is None or told_of(model).share == "WHOLE":
            return
        hears = partial(self.verify if is_asked else self.event, reference)
        hears(2)
        self.verify(reference, 2)
        self._take(reference, model.amount, CURRENCY)
        hears(1)

    @rule(reference=PAYMENTS)
    @tries(needs=CLOCK)
    def payer_pays_late(self, reference: str) -> None:
        """The window is one for beginning: who was sent on within it may pay after it."""
        model = self.models[reference]
        if model.kobo is None and model.status == "PENDING":
            self.wait(HOUR)
            self.target.service.work()
            self.agrees(reference)
            self._pay(reference, 0)
            self.event(reference, 1)

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
    needs = (ACCOUNT_B, ADMIN, SANDBOX_KEY)
    in_passing: ClassVar = {**SettlementConformance.in_passing, "checkout.5": ()}

    def arrive(self, model: UrlPayment) -> None:
        super().arrive(model)
        self.tried.add("checkout.5")

    @classmethod
    def account(cls, target: ConformanceTarget) -> PlayedProvider | None:
        return target.provider_b
