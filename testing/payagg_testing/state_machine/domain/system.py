"""The pure domain as a system that a payment machine can drive."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count

from payagg.domain.attempt import provider_reference
from payagg.domain.business import BusinessStatus
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import SANDBOX_SLUG, simulator_allowed
from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from payagg.domain.webhook import EVENT_FOR
from payagg_testing.state_machine.domain.payments import DomainPayments
from payagg_testing.state_machine.model import GATEWAYS
from payagg_testing.state_machine.system import Facts, GatewayFacts, Said


@dataclass
class DomainSystem(DomainPayments):
    """The rows of one business, driven by calls instead of requests: tokens and keys are no question here."""

    numbers: "count[int]" = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        super().__post_init__()
        for slug in GATEWAYS:
            self.move_gateway(slug, "CREATE")
            self.move_gateway(slug, "ENABLE")

    def wait(self, time: timedelta) -> None:
        self.clock.move(time)

    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        return self.start_payment(environment, amount, key).reference

    def initiate_test(self, amount: int, key: str | None) -> str:
        return self.start_payment(Environment.SANDBOX, amount, key, gateway=SANDBOX_SLUG, is_test=True).reference

    def set_standing(self, is_active: bool) -> None:
        status = BusinessStatus.ACTIVE if is_active else BusinessStatus.SUSPENDED
        self.business = replace(self.business, status=status)

    def move_gateway(self, slug: str, move: str) -> None:
        gateway = self.create_gateway(slug, slug) if move == "CREATE" else self.gateway(self.newest(slug).id)
        if move in ("CREATE", "ROTATE"):
            self.rotate(gateway, f"{gateway.id} {next(self.numbers)}")
        else:
            self.keep_gateway(
                {"ENABLE": gateway.enable, "DISABLE": gateway.disable, "DELETE": gateway.delete}[move](self.now())
            )

    def options(self, reference: str) -> frozenset[tuple[str, bool]]:
        return frozenset(self.choices(self.payments[reference]).items())

    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        return self.start_charge(reference, gateway, card, refused).checkout_url

    def report(self, reference: str, number: int, gateway: str, said: Said, environment: Environment) -> str:
        taken = [a for a in self.attempts[reference] if (a.number, a.gateway) == (number, gateway)]
        signer = self.account(taken[0]) if taken else self.newest(gateway)
        if signer is not None:
            proving = self.proving(signer)
            account = taken[0].account if taken else next(iter(proving), None)
            if account not in proving:
                raise Refusal(ErrorCode.INVALID_WEBHOOK_SIGNATURE)
        report = said.report(provider_reference(reference, number), self.payments[reference].amount)
        if said.outcome is Outcome.REVERSED and said.id is None:
            report = replace(report, details={"eventDigest": str(next(self.numbers))})
        return self.hear(report, gateway, environment)

    def verify(self, reference: str, said: Said) -> str:
        return self.look(reference, said).status.value

    def simulate(self, reference: str, outcome: str) -> None:
        payment = self.payments[reference]
        if not simulator_allowed(payment.environment):
            raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
        self.complete(payment, outcome)

    def sweep(self) -> None:
        self.expire_due()
        self.wipe_secrets()

    def facts(self, reference: str) -> Facts:
        transitions, attempts = tuple(self.log[reference]), self.attempts[reference]
        changes = ((one.sequence, EVENT_FOR[one.to_status].value) for one in transitions)
        events = tuple(sorted((*changes, *self.notices[reference])))
        hand_offs = tuple(a.hand_off.checkout_url for a in attempts if a.hand_off)
        return Facts(
            payment=self.payments[reference].as_of(self.now()),
            transitions=transitions,
            events=events,
            delivered=tuple(number for number, _ in events),
            hand_offs=hand_offs,
            charges=len(hand_offs),
            last_decline=next((a.last_decline for a in attempts if a.last_decline), None),
            anomalies=frozenset(fact.kind.value for fact in self.anomalies[reference]),
        )

    def gateway_facts(self) -> GatewayFacts:
        every = {slug: [one for one in self.gateways.values() if one.slug == slug] for slug in GATEWAYS}
        return GatewayFacts(
            listed=tuple(sorted((one.slug, one.status.value) for one in self.living())),
            offered=tuple(sorted(one.slug for one in self.list_offered())),
            with_credentials=tuple(
                (slug, number)
                for slug, known in every.items()
                for number, gateway in enumerate(known, 1)
                if gateway.has_credentials
            ),
        )

    def close(self) -> None:
        """There is nothing to close."""
