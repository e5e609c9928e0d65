"""What a provider that the harness plays sends, genuine and not."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from payagg.domain.values import Environment
from payagg_testing.conformance.assumptions import KEPT
from payagg_testing.conformance.expectation import among
from payagg_testing.conformance.played_charges import PAYMENTS, PlayedCharges, told_of
from payagg_testing.conformance.provider import FORGERIES, event_request
from payagg_testing.conformance.statements import tries
from payagg_testing.state_machine.gateway_model import OVERLAP
from payagg_testing.state_machine.model import FINAL


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
