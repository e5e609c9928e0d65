"""Attempts of payments, by `reference` and number."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from payagg.application.ports.outside import Conflict
from payagg.domain.attempt import FIRST_CHECK_MAX, HASTEN_PAID, Attempt, AttemptState
from payagg.domain.checks import with_changes
from payagg.domain.rate_limit import EPOCH
from payagg.domain.values import CLOCK_SLACK, Environment
from payagg_testing.memory.state import BrokenRule, MemoryRepository, State

R = TypeVar("R")
ALONE = (AttemptState.CLAIMED, AttemptState.HANDED_OFF)  # at most one attempt of a payment is in each of these


def rows_of_payment(rows: Mapping[tuple[str, int], R], reference: str) -> list[R]:
    """A payment's rows in order: they are numbered from 1 without gaps."""
    found: list[R] = []
    while (row := rows.get((reference, len(found) + 1))) is not None:
        found.append(row)
    return found


def write_attempt(state: State, attempt: Attempt) -> None:
    """Raises BrokenRule where a constraint of the database would refuse."""
    if (attempt.state is AttemptState.HANDED_OFF) != (attempt.hand_off is not None):
        raise BrokenRule("a hand-off belongs to HANDED_OFF alone")
    siblings = rows_of_payment(state.attempts, attempt.reference)
    if attempt.state in ALONE and any(a.state is attempt.state and a.number != attempt.number for a in siblings):
        raise BrokenRule(f"{attempt.reference} already has an attempt that is {attempt.state.value}")
    state.attempts[attempt.reference, attempt.number] = attempt


class MemoryAttempts(MemoryRepository):
    async def of_payment(self, reference: str) -> list[Attempt]:
        return rows_of_payment(self.state.attempts, reference)

    async def add(self, attempt: Attempt) -> None:
        if (attempt.reference, attempt.number) in self.state.attempts:
            raise BrokenRule(f"attempt {attempt.number} of {attempt.reference} exists")
        write_attempt(self.state, attempt)

    async def save(self, attempt: Attempt, token: str) -> None:
        stored = self.state.attempts.get((attempt.reference, attempt.number))
        if stored is None or stored.token != token:
            raise Conflict("the attempt was taken over by another transaction")
        write_attempt(self.state, attempt)
        self.state.holds.pop((attempt.reference, attempt.number), None)

    async def due_checks(
        self,
        gateway: str,
        environment: Environment,
        now: datetime,
        limit: int,
        hold: timedelta,
        since: datetime = EPOCH,
    ) -> list[Attempt]:
        holds, turns = self.state.holds, Counter[str]()
        free = []
        for at, attempt in self._asked_by(max(now, since + FIRST_CHECK_MAX)):
            payment = self.state.payments.get(attempt.reference)
            if payment is None or (attempt.gateway, payment.environment) != (gateway, environment):
                continue
            held_until = holds.get((attempt.reference, attempt.number), EPOCH)
            held_until = held_until if held_until <= now + hold + CLOCK_SLACK else EPOCH
            is_due = at <= now and held_until <= now
            is_unasked = now < since + FIRST_CHECK_MAX and (attempt.last_ask_at or EPOCH) < since
            is_unasked = is_unasked and held_until < since + hold
            was_in_the_air = attempt.created_at < since and attempt.state is not AttemptState.CLAIMED
            if is_due or (is_unasked and was_in_the_air):
                turns[payment.business_id] += 1
                free.append((turns[payment.business_id], at, attempt.reference, attempt))
        chosen = sorted(free, key=lambda due: due[:3])[:limit]
        holds.update({(attempt.reference, attempt.number): now + hold for *_, attempt in chosen})
        return [attempt for *_, attempt in sorted(chosen, key=lambda due: due[1:3])]

    async def hasten_checks(self, gateway: str, environment: Environment, now: datetime) -> int:
        own = [a for a in self.state.attempts.values() if a.gateway == gateway and (a.next_ask_at or now) > now]
        own = [a for a in own if (a.confirmed_at or now) > now - HASTEN_PAID]
        chosen = [a for a in own if self.state.payments[a.reference].environment is environment]
        for attempt in chosen:
            write_attempt(self.state, with_changes(attempt, next_ask_at=now))
        return len(chosen)

    async def oldest_check(self, now: datetime) -> datetime | None:
        return next((at for at, _ in self._asked_by(now)), None)

    async def count_open(self, gateway_id: str, most: int, other_than: Collection[str] = ()) -> int:
        own = [a for a in self.state.attempts.values() if a.gateway_id == gateway_id and a.next_ask_at is not None]
        is_open = [a for a in own if a.confirmed_at is None]
        return min(most, sum(not other_than or a.account not in (None, *other_than) for a in is_open))

    def _asked_by(self, now: datetime) -> list[tuple[datetime, Attempt]]:
        """Attempts whose check was due by `now`, the earliest first."""
        due = [(a.next_ask_at, a) for a in self.state.attempts.values() if a.next_ask_at and a.next_ask_at <= now]
        return sorted(due, key=lambda pair: (pair[0], pair[1].reference))
