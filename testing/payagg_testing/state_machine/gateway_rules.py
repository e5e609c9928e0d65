"""Rules for gateways: drained, deleted while attempts are open, created anew; and what each payer may choose."""

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from payagg_testing.state_machine.base import Harness
from payagg_testing.state_machine.gateway_model import DRAIN, PROVES, SETTLING, GatewayModel
from payagg_testing.state_machine.model import GATEWAYS, SIMULATOR

RETIRED = ("DISABLE", "WAIT", "DELETE", "SWEEP")
RENEWED = (*RETIRED, "CREATE", "ENABLE")
# Whole stories beside single moves: a run is too short to stumble through five moves in their order.
STORIES = st.sampled_from(
    [
        ("ENABLE",),
        ("DISABLE",),
        ("DELETE",),
        ("DISABLE", "DELETE"),
        ("CREATE",),
        ("CREATE", "ENABLE"),
        ("ROTATE",),
        ("ROTATE", "ROTATE"),
        RETIRED,
        RETIRED,
        *[RENEWED] * 4,
    ]
)
STORIES_MAX = 3


class GatewayRules(Harness):
    stories = 0

    # Few stories, as each takes time from the payments; but without any gateway nothing more would happen to them.
    @precondition(lambda self: self.stories < STORIES_MAX or not any(map(self.is_active, GATEWAYS)))
    @rule(slug=st.sampled_from(GATEWAYS), story=STORIES)
    def move_gateway(self, slug: str, story: tuple[str, ...]) -> None:
        """Any move may be refused, alone or within a story; the next one follows all the same."""
        self.stories += 1
        for move in story:
            if move == "WAIT":
                self.system.wait(DRAIN)
            elif move == "SWEEP":
                self.sweep(timedelta(0))
            else:
                self._move(slug, move)
            self.gateways_agree_with_the_model()

    def _move(self, slug: str, move: str) -> None:
        newest, now = self.gateways[slug][-1], self.system.now()
        refusal = newest.refusal_of(move, now)
        self.expect(refusal, lambda: self.system.move_gateway(slug, move))
        if refusal is None and move == "CREATE":
            self.gateways[slug].append(GatewayModel())
        elif refusal is None:
            newest.move(move, now)

    @rule(time=st.sampled_from([timedelta(0), timedelta(0), SETTLING, PROVES - SETTLING]))
    def sweep(self, time: timedelta) -> None:
        """After a wait of its own: by chance, secrets would rarely be let go while an attempt is open."""
        self.system.wait(time)
        now, models = self.system.now(), self.models.values()
        for model in models:
            model.expire(now)
        for gateway in (gateway for known in self.gateways.values() for gateway in known):
            gateway.sweep(now, any(m.is_open_at(gateway) for m in models))
        self.system.sweep()

    def look_at_options(self, reference: str) -> None:
        """No rule of its own, as it moves nothing: `process` looks first, as payers do."""
        model = self.models[reference]
        foreseen = {
            (slug, self.takes_money) for slug in (*GATEWAYS, SIMULATOR) if model.may_choose(slug, self.is_active(slug))
        }
        options = self.system.options(reference)
        assert options == foreseen, f"{sorted(options)} are offered, foreseen {sorted(foreseen)}"

    @invariant()
    def gateways_agree_with_the_model(self) -> None:
        facts, now = self.system.gateway_facts(), self.system.now()
        seen = [(slug, known[-1].visible_status(now)) for slug, known in self.gateways.items()]
        living = tuple(pair for pair in seen if pair[1] is not None)
        assert facts.listed == living, f"{facts.listed} are listed, foreseen {living}"
        assert facts.offered == tuple(slug for slug, status in living if status == "ACTIVE"), "the business sees others"
        kept = tuple(
            (slug, number)
            for slug, known in self.gateways.items()
            for number, gateway in enumerate(known, 1)
            if gateway.has_credentials
        )
        assert facts.with_credentials == kept, f"{facts.with_credentials} have credentials, foreseen {kept}"
