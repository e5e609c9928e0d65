"""The states of one dispute, in whatever order their events come."""

from dataclasses import replace
from itertools import permutations

import pytest
from payagg_testing.builders import NOW, REFERENCE

from payagg.domain.adjustment import adjustments_of, money_back
from payagg.domain.anomaly import Anomaly, AnomalyKind

AMOUNT = 150_000


def a_fact(number: int, state: str) -> Anomaly:
    details = {"disputeId": "d1", "state": state, "amounts": [50_000]}
    return Anomaly(f"anm_{number}", REFERENCE, AnomalyKind.DISPUTE, "event:provider_a", details, NOW)


@pytest.mark.parametrize(("end", "back"), [("won", 0), ("lost", 50_000), ("accepted", 50_000)])
@pytest.mark.parametrize("order", list(permutations(["opened", "the end"])))
def test_that_a_dispute_was_opened_takes_back_nothing_of_its_end(end: str, back: int, order: tuple[str, ...]) -> None:
    facts = [a_fact(place, end if what == "the end" else what) for place, what in enumerate(order)]
    assert money_back(facts, AMOUNT).kobo == back
    assert [one.state for one in adjustments_of(facts, AMOUNT)] == [end]
    opened = [replace(fact, details={**fact.details, "state": "opened"}) for fact in facts]
    assert money_back(opened, AMOUNT).kobo == 0
