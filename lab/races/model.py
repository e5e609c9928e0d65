"""The rules of a race, written from the interface and the decisions and not from the code.

Every call is a few steps, each atomic. What a race leaves is legal when some order of its calls' steps explains both
the answers and what is stored, and none begins before a call that it was later than; `outcomes` finds what every such
order explains.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from payagg.domain.anomaly import AnomalyKind
from payagg.domain.gateway import GatewayStatus
from payagg.domain.payment import Status

A, B = "provider_a", "provider_b"
INITIATED, PENDING, SUCCESS, FAILED = Status.INITIATED, Status.PENDING, Status.SUCCESS, Status.FAILED
FINAL = {SUCCESS, FAILED, Status.REVERSED}
ACTIVE, DRAINING, DISABLED = GatewayStatus.ACTIVE, GatewayStatus.DRAINING, GatewayStatus.DISABLED
LATE = {SUCCESS: AnomalyKind.LATE_SUCCESS, FAILED: AnomalyKind.LATE_FAILURE}


@dataclass(frozen=True)
class RaceState:
    """One payment, the gateway of provider_a, and what one business chose for its two gateways."""

    status: Status = INITIATED
    history: tuple[Status, ...] = ()
    is_expired: bool = False  # it FAILED because its hour was over
    claim: str | None = None  # the gateway whose provider is called, or was
    is_handed: bool = False
    anomalies: frozenset[AnomalyKind] = frozenset()
    truth: Status | None = None  # what the provider says when asked: SUCCESS, FAILED for a decline, None for neither
    is_asked: bool = False
    kept: frozenset[Status] = frozenset()  # events
    is_late: bool = False  # the hour is over
    gateway: GatewayStatus = ACTIVE
    began_draining: bool = False
    is_drained: bool = False  # the drain window is over
    is_opted_out: bool = False
    default: str | None = None
    order: tuple[int | None, int | None] = (None, None)

    @property
    def seen(self) -> "RaceState":
        """As every reader sees it: expiry and the end of a drain need no sweep."""
        state = self
        if state.status is INITIATED and state.is_late:
            state = replace(state.moved(FAILED), is_expired=True)
        if state.gateway is DRAINING and state.is_drained:
            state = replace(state, gateway=DISABLED)
        return state

    @property
    def stored(self) -> tuple[Any, ...]:
        """What of it can be read at the end."""
        handed = self.claim if self.is_handed else None
        return self.history, self.anomalies, handed, self.gateway, self.is_opted_out, self.default, self.order

    def moved(self, status: Status) -> "RaceState":
        return replace(self, status=status, history=(*self.history, status))

    @property
    def unprocessable(self) -> str | None:
        seen = self.seen
        if seen.status in FINAL and not seen.is_expired:
            return "PAYMENT_ALREADY_PROCESSED"
        return "PAYMENT_EXPIRED" if seen.status in FINAL or self.is_late else None

    def offers(self, slug: str) -> bool:
        return slug == B or (self.seen.gateway is ACTIVE and not self.is_opted_out)

    def reported(self, outcome: Status, *, asked: bool) -> "RaceState":
        """After provider_a's word about its charge: by an event, or as an answer to asking."""
        if self.claim != A:
            return replace(self, anomalies=self.anomalies | {AnomalyKind.WRONG_PROVIDER})
        if outcome is FAILED and not self.is_handed:
            return self  # nobody was sent there
        if outcome is FAILED and asked and self.status not in FINAL and not self.is_late:
            return self  # a decline: the page may take another card
        state = self if self.status is not INITIATED else replace(self.seen, gateway=self.gateway)
        if state.status not in FINAL:
            return state.moved(outcome)
        # A final state stays, and money that came for it all the same is kept as a fact. What the merchant reversed in the
        # sandbox counts as paid before.
        is_known = state.status is outcome or (state.status, outcome) == (Status.REVERSED, SUCCESS)
        return state if is_known else replace(state, anomalies=state.anomalies | {LATE[outcome]})


# A step gives what may come of it: the state, what the call remembers, and its answer when it is over. None at all:
# it waits for another call.
Steps = Iterator[tuple[RaceState, Any, str | None]]
Step = Callable[[RaceState, Any], Steps]
Program = tuple[Step, ...]
DONE = "done"


def alone(step: Callable[..., Steps], *given: Any) -> Program:
    """A call of one step."""
    return (partial(step, *given),)


def process(slug: str) -> Program:
    def claim(state: RaceState, _: Any) -> Steps:
        if state.unprocessable:
            yield state, None, state.unprocessable
        elif state.is_handed:
            yield state, None, state.claim
        elif state.claim is None and not state.offers(slug):
            yield state, None, "GATEWAY_NOT_AVAILABLE"
        elif state.claim is None:
            yield replace(state, claim=slug), None, None

    def record(state: RaceState, _: Any) -> Steps:
        if state.unprocessable:
            yield state, None, state.unprocessable
        else:
            yield replace(state.moved(PENDING), is_handed=True), None, slug

    return claim, record


def simulate(outcome: Status, state: RaceState, _: Any) -> Steps:
    if state.seen.status in FINAL:
        yield state, None, "PAYMENT_ALREADY_FINAL"
    else:
        yield state.moved(outcome), None, outcome.value


def event(outcome: Status) -> Program:
    def keep(state: RaceState, _: Any) -> Steps:
        is_known = outcome in state.kept
        yield replace(state, kept=state.kept | {outcome}), None, DONE if is_known else None

    def handle(state: RaceState, _: Any) -> Steps:
        yield state.reported(outcome, asked=False), None, DONE

    return keep, handle


def verify() -> Program:
    def look(state: RaceState, _: Any) -> Steps:
        seen = state.seen
        is_asking = state.is_handed and seen.status not in FINAL
        yield state, seen.status.value, None if is_asking else seen.status.value
        if state.is_handed and seen.status in FINAL and state.is_late:
            yield state, seen.status.value, None  # of a final payment the provider is asked once an hour

    def ask(state: RaceState, looked: Any) -> Steps:
        if state.is_asked:  # a moment ago: the finding stands until the next call
            yield state, None, looked
        if not state.is_asked or state.is_late:
            yield replace(state, is_asked=True), None, None

    def settle(state: RaceState, _: Any) -> Steps:
        told = state.reported(state.truth, asked=True) if state.truth else state
        yield told, None, told.seen.status.value

    return look, ask, settle


def hour_ends(is_swept: bool) -> Program:
    def jump(state: RaceState, _: Any) -> Steps:
        late = replace(state, is_late=True, is_drained=state.is_drained or state.began_draining)
        yield late, None, None if is_swept else DONE

    def sweep(state: RaceState, _: Any) -> Steps:
        yield replace(state.seen, gateway=state.gateway), None, DONE
        yield state, None, DONE  # it passes by what is locked

    return jump, sweep


def drain_ends(is_swept: bool) -> Program:
    def jump(state: RaceState, _: Any) -> Steps:
        yield replace(state, is_drained=True), None, None if is_swept else "0"

    def sweep(state: RaceState, _: Any) -> Steps:
        if state.gateway is DRAINING:
            yield replace(state, gateway=DISABLED), None, "1"
        yield state, None, "0"

    return jump, sweep


def disable(state: RaceState, _: Any) -> Steps:
    if state.seen.gateway is ACTIVE:
        yield replace(state, gateway=DRAINING, is_drained=False), None, DONE
    else:
        yield state, None, "GATEWAY_NOT_ACTIVE"


def enable(state: RaceState, _: Any) -> Steps:
    is_on = state.seen.gateway is ACTIVE
    yield replace(state, gateway=ACTIVE), None, "GATEWAY_ALREADY_ENABLED" if is_on else DONE


def initiate_again(state: RaceState, _: Any) -> Steps:
    yield state, None, "DUPLICATE_PAYMENT" if state.seen.status in FINAL else "the original"


def opt_out(state: RaceState, _: Any) -> Steps:
    if state.seen.gateway is ACTIVE:
        yield replace(state, is_opted_out=True, default=None if state.default == A else state.default), None, DONE
    else:
        yield state, None, "NOT_FOUND"


def make_default(slug: str, state: RaceState, _: Any) -> Steps:
    if slug == A and state.seen.gateway is not ACTIVE:
        yield state, None, "NOT_FOUND"
    elif slug == A and state.is_opted_out:
        yield state, None, "VALIDATION_ERROR"
    else:
        yield replace(state, default=slug), None, DONE


def reorder(order: tuple[int, int], state: RaceState, _: Any) -> Steps:
    if state.seen.gateway is ACTIVE:
        yield replace(state, order=order), None, DONE
    else:
        yield state, None, "VALIDATION_ERROR"


def outcomes(
    start: RaceState, programs: Sequence[Program], before: Sequence[frozenset[int]]
) -> set[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """The answers, in the order of `programs`, and what is stored once sweeps have run, of every order of the steps.

    `before` names for each call those that had been answered when it began.
    """
    # A call under way is the number of its next step with what it remembers; one that is over is its answer.
    begun = (start, tuple((0, None) for _ in programs))
    known, left, found = {begun}, [begun], set()
    while left:
        state, calls = left.pop()
        if all(isinstance(call, str) for call in calls):
            found.add((tuple(map(str, calls)), state.seen.stored))
            continue
        for place, call in enumerate(calls):
            if isinstance(call, str) or not all(isinstance(calls[other], str) for other in before[place]):
                continue
            number, memory = call
            for after, cached, answer in programs[place][number](state, memory):
                mine: Any = answer if answer is not None else (number + 1, cached)
                following = (after, (*calls[:place], mine, *calls[place + 1 :]))
                if following not in known:
                    known.add(following)
                    left.append(following)
    return found
