"""Working off anomalies, on the memory store."""

from dataclasses import replace
from datetime import timedelta

import pytest
from payagg_testing.builders import NOW, REFERENCE, a_payment, an_actor
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore

from payagg.application.reports.anomalies import Anomalies, age_of, facts_of, line_of
from payagg.application.reports.explain import timeline
from payagg.domain.anomaly import CLOSE_REASON_MAX, NOTE_MAX, Anomaly, AnomalyKind, Severity, severity_of
from tests.support.audit_trail import trail
from tests.support.refusals import refusal_of, refused_with

ADA, BEN = an_actor(subject="ada"), an_actor(subject="ben")
ONE = Anomaly("anm_1", REFERENCE, AnomalyKind.LATE_SUCCESS, "verify", {}, NOW)


@pytest.fixture
async def anomalies() -> Anomalies:
    """With one that is OPEN."""
    store = MemoryStore()
    await store.transaction.anomalies.add(ONE)
    return Anomalies(store, ManualClock(), SeededEntropy())


async def test_the_facts_of_an_anomaly_are_in_the_unit_of_the_rest_of_the_timeline(anomalies: Anomalies) -> None:
    await anomalies.store.add_payment(a_payment(amount=150_000))
    details = {"amounts": [123_450, 125_950], "currency": "NGN", "expected": 150_000, "received": 123_450}
    short = replace(ONE, id="anm_2", kind=AnomalyKind.MISMATCH, details=details)
    async with anomalies.store.begin() as tx:
        await tx.anomalies.add(short)
    told = "amounts NGN 1,234.50, NGN 1,259.50, currency NGN, expected NGN 1,500.00, received NGN 1,234.50"
    _, first, *others = await timeline(anomalies.store, REFERENCE)
    assert "NGN 1,500.00" in first
    assert any(told in line for line in others)
    assert told in line_of(short, NOW)
    assert dict(facts_of({"amount": 777, "currency": "USD"}))["amount"] == "777"


async def test_a_reason_with_line_breaks_is_one_line_of_the_timeline(anomalies: Anomalies) -> None:
    await anomalies.store.add_payment(a_payment())
    forged = "Done.\n2025-01-31 12:00:00.000Z  transition  9: PENDING -> SUCCESS by provider_a"
    await anomalies.close("anm_1", forged, by=BEN)
    lines = await timeline(anomalies.store, REFERENCE)
    assert [line for line in lines if not line.isprintable()] == []
    assert "Done." in lines[-1]


@pytest.mark.rule("description.11")
def test_every_kind_has_the_severity_that_was_decided() -> None:
    gone, informs = {"LATE_REVERSAL", "PARTIAL_REFUND", "DISPUTE"}, {"LATE_FAILURE", "NO_EVIDENCE", "UNKNOWN_STATUS"}
    misplaced = {"MISMATCH", "WRONG_PROVIDER", "WRONG_ENVIRONMENT", "UNKNOWN_REFERENCE"}
    decided = dict.fromkeys({"LATE_SUCCESS", "SECOND_CHARGE"} | misplaced, Severity.MONEY_TO_GIVE_BACK)
    decided |= dict.fromkeys(gone, Severity.MONEY_GONE) | dict.fromkeys(informs, Severity.INFORMATION)
    assert {kind.value: severity_of(kind) for kind in AnomalyKind} == decided


def test_an_anomaly_ages_until_it_is_closed() -> None:
    hour = timedelta(hours=1)
    assert (ONE.age(NOW - hour), ONE.age(NOW), ONE.age(NOW + hour)) == (timedelta(0), timedelta(0), hour)
    assert ONE.close("admin:ada", "Refunded.", NOW + hour).age(NOW + 5 * hour) == hour


def test_an_age_is_said_in_its_largest_two_units() -> None:
    said = {0: "0 m", 59: "59 m", 60: "1 h 0 m", 1439: "23 h 59 m", 1440: "1 d 0 h", 3000: "2 d 2 h"}
    assert {minutes: age_of(timedelta(minutes=minutes)) for minutes in said} == said


async def test_who_works_on_it_and_what_was_found_out_are_kept_and_audited(anomalies: Anomalies) -> None:
    assert (await anomalies.assign("anm_1", "ben", by=ADA)).assignee == "ben"
    assert (await anomalies.assign("anm_1", "ben", by=ADA)).assignee == "ben"
    noted = await anomalies.note("anm_1", "Asked the provider.", by=ADA)
    assert [(note["by"], note["text"]) for note in noted.notes] == [("admin:ada", "Asked the provider.")]
    assert (await anomalies.assign("anm_1", None, by=ADA)).notes == noted.notes
    await anomalies.acknowledge("anm_1", by=ADA)
    for nothing in ("", "   ", "x" * (CLOSE_REASON_MAX + 1)):
        assert (await refused_with(anomalies.close("anm_1", nothing, by=BEN)))[1] == "reason"
    await anomalies.close("anm_1", "By hand.", by=BEN)
    assert trail(anomalies.store) == [
        ("anomaly.assign", "anm_1", {"assignee": (None, "ben")}),
        ("anomaly.note", "anm_1", {"note": (None, "Asked the provider.")}),
        ("anomaly.assign", "anm_1", {"assignee": ("ben", None)}),
        ("anomaly.acknowledge", "anm_1", {"status": ("OPEN", "ACKNOWLEDGED")}),
        ("anomaly.close", "anm_1", {"status": ("ACKNOWLEDGED", "CLOSED"), "closeReason": (None, "By hand.")}),
    ]


def test_a_note_says_something_of_at_most_two_thousand_characters() -> None:
    for text in ("", " \n", "x" * (NOTE_MAX + 1), "a\x00"):
        assert refusal_of(ONE.note, text, "admin:ada", NOW).field == "text"
    assert len(ONE.note("x" * NOTE_MAX, "admin:ada", NOW).notes) == 1
