"""What all rules share: the system, the models beside it, and how a refusal is checked."""

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from hypothesis.stateful import Bundle, RuleBasedStateMachine

from payagg.domain.errors import Refusal
from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from payagg_testing.state_machine.gateway_model import GatewayModel
from payagg_testing.state_machine.model import GATEWAYS, Model
from payagg_testing.state_machine.system import PaymentSystem

R = TypeVar("R")
REFERENCES: Bundle[str] = Bundle("references")


class Harness(RuleBasedStateMachine):
    make_system: ClassVar[Callable[[], PaymentSystem]]
    seen: ClassVar[Counter[str]]  # refusals, moves and anomalies met over all runs: what was never met was not tested

    def __init__(self) -> None:
        super().__init__()
        self.system = type(self).make_system()
        self.models: dict[str, Model] = {}
        self.keys: dict[tuple[Environment, str | None], str] = {}
        self.first: dict[str, tuple[Any, ...]] = {}
        self.ended: dict[str, Payment] = {}
        self.takes_money = True
        self.unnamed = 0  # events of refunds without an id
        # By slug, in the order of their creation: all but the last are deleted.
        self.gateways = {slug: [GatewayModel("ACTIVE")] for slug in GATEWAYS}

    def teardown(self) -> None:
        self.system.close()

    def expect(self, refusal: str | None, call: Callable[[], R]) -> R | None:
        """The call's answer; asserts that it is refused exactly as foreseen, and that a refusal changes nothing; but
        one for facts that differ is told to the merchant."""
        # Where none is foreseen, any is wrong, and nothing need be looked at twice.
        before = {reference: self.system.facts(reference) for reference in self.models} if refusal else {}
        answer, code = None, None
        try:
            answer = call()
        except Refusal as raised:
            code = raised.code.name
        assert code == refusal, f"refused with {code}, foreseen {refusal}"
        if refusal is not None:
            self.seen[refusal] += 1
            after = {reference: self.system.facts(reference) for reference in self.models}
            assert after == before or code == "PAYMENT_AMOUNT_MISMATCH", "a refusal changed something"
        return answer

    def is_active(self, slug: str) -> bool:
        """Whether there is a gateway of the slug that takes new charges now."""
        return self.gateways[slug][-1].visible_status(self.system.now()) == "ACTIVE" if slug in self.gateways else False
