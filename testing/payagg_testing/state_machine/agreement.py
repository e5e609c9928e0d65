"""What is compared of each payment after every step: a system beside the model."""

from dataclasses import replace

from hypothesis.stateful import invariant

from payagg.domain.payment import Payment
from payagg_testing.state_machine.gateway_rules import GatewayRules
from payagg_testing.state_machine.model import (
    FINAL,
    Model,
)
from payagg_testing.state_machine.system import Facts


class PaymentAgreement(GatewayRules):
    @invariant()
    def agrees_with_the_model(self) -> None:
        now = self.system.now()
        for reference, model in self.models.items():
            facts = self.system.facts(reference)
            self._check_identity(reference, model, facts.payment)
            seen = (facts.payment.status.value, facts.payment.failure_reason)
            assert seen == model.visible_state(now), f"{seen} is seen, foreseen {model.visible_state(now)}"
            assert facts.payment.gateway == model.gateway
            assert facts.last_decline == model.declined, "a decline was lost or invented"
            assert facts.anomalies == model.anomalies, "an anomaly was lost or invented"
            assert len(facts.hand_offs) <= 1, "two hand-offs were given out"
            assert facts.hand_offs == ((model.hand_off,) if model.hand_off else ())
            assert facts.charges <= 1, "two charges were started"
            self.seen.update(facts.anomalies)
            self.seen.update(f"{t.from_status.value} {t.trigger.value}" for t in facts.transitions)
            self._check_history(model, facts)

    def _check_identity(self, reference: str, model: Model, payment: Payment) -> None:
        identity = (
            payment.reference,
            payment.business_id,
            payment.environment,
            payment.amount,
            payment.currency,
            payment.created_at,
            payment.expires_at,
            payment.idempotency_key,
        )
        assert self.first.setdefault(reference, identity) == identity, "an immutable fact changed"
        assert identity[:1] + identity[2:5] == (reference, model.environment, model.amount, "NGN")
        assert payment.expires_at == model.expires
        if payment.status.value in FINAL:
            assert payment.settled_at is not None
            # What becomes of the money is added; an expiry has its place among the events once it is stored.
            fixed = replace(payment, has_adjustments=False, sequence=0)
            assert self.ended.setdefault(reference, fixed) == fixed, "a final payment changed"

    def _check_history(self, model: Model, facts: Facts) -> None:
        durable = [transition.to_status.value for transition in facts.transitions]
        if durable != model.path:
            model.expire(self.system.now())  # whoever was told that the window has closed made it durable
        assert durable == model.path, f"the history is {durable}, foreseen {model.path}"
        numbers = [transition.sequence for transition in facts.transitions]
        assert numbers == model.moved, f"the changes of status are numbered {numbers}, foreseen {model.moved}"
        before = ["INITIATED", *durable]
        assert [transition.from_status.value for transition in facts.transitions] == before[:-1]
        foreseen = tuple(enumerate(model.told, 1))
        assert facts.events == foreseen, f"the events are {facts.events}, foreseen {foreseen}"
        assert facts.delivered == tuple(number for number, _ in foreseen), "an event has not exactly one delivery"
        if model.status in FINAL:
            assert facts.payment.sequence == model.moved[-1], "a final payment has another number"
        is_adjusted = any(fact.is_told for fact in model.facts)
        assert facts.payment.has_adjustments is is_adjusted, "a payment does not say whether its money was adjusted"
        self.seen.update(name for number, name in foreseen if number not in model.moved)
        if model.told and any(model.status == "PENDING" and fact.is_told for fact in model.facts):
            self.seen["told while it is open"] += 1
