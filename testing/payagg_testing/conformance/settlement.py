"""Settlement: charges at providers that the harness plays. Only a genuine report of the right amount moves money's
status, once, and asking brings the same as being told."""

from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, multiple, precondition, rule

from payagg.domain.report import Outcome
from payagg.domain.values import CURRENCY, Environment
from payagg_testing.conformance.assumptions import ASKED, KEPT, UNASKED, UNHEALTHY
from payagg_testing.conformance.expectation import among
from payagg_testing.conformance.payments import KNOWN_AT_ONCE, PaymentsByUrl, UrlPayment
from payagg_testing.conformance.provider import FORGERIES, PlayedProvider, arrival_fault, charge_fault, event_request
from payagg_testing.conformance.replay import ABSENT, look
from payagg_testing.conformance.service import ServiceAnswer, ServiceCall
from payagg_testing.conformance.statements import ADMIN, CLOCK, PAYER, SANDBOX_KEY, Need, tries
from payagg_testing.conformance.target import ENVIRONMENTS, ConformanceTarget
from payagg_testing.state_machine.gateway_model import OVERLAP, GatewayModel
from payagg_testing.state_machine.model import FINAL, HOUR, SIMULATOR
from payagg_testing.state_machine.system import SILENCE, Said

PAYMENTS: Bundle[str] = Bundle("payments")
AMOUNTS = st.sampled_from([5_000, 150_000, 10**11])
TOGETHER = 3
CHECK_PAUSE = timedelta(seconds=2.1)
# What a provider's option that cannot be used is refused with, by its status.
UNAVAILABLE = {400: ("GATEWAY_NOT_AVAILABLE", "GATEWAY_ENVIRONMENT_NOT_CONFIGURED")}
ACCOUNT, ACCOUNT_B = (
    Need("a provider's account that the harness may play", lambda target: target.provider),
    Need("a provider's account that the harness may play", lambda target: target.provider_b),
)
FAULTS_MAX = 5  # in a row, after which payagg shows a provider unavailable
HEALED = timedelta(minutes=11)  # when it is tried again at the latest


def told_of(model: UrlPayment) -> Said:
    """What the provider says of the charge."""
    if model.kobo is None:
        return Said(Outcome.FAILED) if model.has_failed else SILENCE
    is_whole = (model.kobo, model.taken_in) == (model.amount, CURRENCY)
    return Said(Outcome.SUCCEEDED, "WHOLE" if is_whole else "MORE")


class SettlementConformance(PaymentsByUrl):
    title = "settlement"
    in_passing: ClassVar = {"checkout.11": (), "provider-events.6": ()}

    @classmethod
    def account(cls, target: ConformanceTarget) -> PlayedProvider | None:
        return target.provider

    needs = (PAYER, ACCOUNT, ADMIN, SANDBOX_KEY)

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
        self.story.add_note(f"the provider's next answer will be {fault}", "provider.fail({})", fault)
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
        self.story.add_note("the provider declines the card", "provider.decline(provider.charges({})[-1])", reference)
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
        self.story.add_note("the provider has new signing secrets", "provider.rotate()")
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

    @rule(reference=PAYMENTS, times=st.sampled_from([1, 2]), together=st.booleans())
    def verify(self, reference: str, times: int = 1, together: bool = False) -> None:
        """Asking finds what the provider took; another amount than the payment's is an error, and moves nothing. What
        becomes of a payment that was not paid within its hour, the interface leaves open. Who asks again at once hears
        the same, and of several windows at one moment each is answered."""
        model = self.models[reference]
        if model.kobo is not None or self.now < model.expires:
            self.pause(CHECK_PAUSE)
            if together and told_of(model).share == "WHOLE":
                calls = [ServiceCall("GET", f"/public/payments/{reference}/verify")] * TOGETHER
                self.ask_together("the payer's browser verifies", calls, [200] * TOGETHER, "callbackUrl")
            for _ in range(times):
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
    needs = (PAYER, ACCOUNT_B, ADMIN, SANDBOX_KEY)
    in_passing: ClassVar = {**SettlementConformance.in_passing, "checkout.5": ()}

    def arrive(self, model: UrlPayment) -> None:
        super().arrive(model)
        self.tried.add("checkout.5")

    @classmethod
    def account(cls, target: ConformanceTarget) -> PlayedProvider | None:
        return target.provider_b
