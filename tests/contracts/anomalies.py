"""What any Store promises of anomalies, and of requests to end a payment by hand."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from payagg_testing.builders import DAY, MINUTE, NOW, REFERENCE, SANDBOX, a_payment, a_report, an_id
from payagg_testing.clocks import ManualClock, SeededEntropy

from payagg.application.payments.settlement import Settlement
from payagg.application.ports.reports import AdjustmentFilter, AnomalyFilter
from payagg.domain.adjustment import Adjustment, AdjustmentKind, AdjustmentTotal, adjustments_of
from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus, Severity
from payagg.domain.payment import Trigger
from payagg.domain.payment_search import PaymentFilter
from payagg.domain.resolution import Resolution
from payagg.domain.values import Environment
from tests.contracts.database import Database, breaks_a_rule, put
from tests.contracts.payment_search import a_reference, added

FIRST = Anomaly("anm_1", REFERENCE, AnomalyKind.LATE_SUCCESS, "verify", {"amounts": [1], "word": "success"}, NOW, 3)
SECOND = Anomaly("anm_2", None, AnomalyKind.UNKNOWN_REFERENCE, "event:provider_a", {}, NOW + timedelta(minutes=1))
ACKNOWLEDGED = FIRST.acknowledge("ada", NOW)
CLOSED = ACKNOWLEDGED.close("ada", "Refunded by hand.", NOW)

ASKED = Resolution("res_1", REFERENCE, "Account closed.", "Case 4711.", "admin:ada", NOW)
AGAIN = replace(ASKED, id="res_2", evidence="Case 4712.", requested_at=NOW + timedelta(days=2))
CONFIRMED = replace(AGAIN, confirmed_by="admin:ben", confirmed_at=AGAIN.requested_at)


def a_fact(
    number: int,
    kind: AnomalyKind,
    at: datetime = NOW,
    *,
    told: bool = True,
    business_id: str = "biz_1",
    environment: Environment = SANDBOX,
    **details: Any,
) -> Anomaly:
    """A fact about the payment `number` % 10."""
    return Anomaly(
        id=an_id("anm", number, at),
        reference=a_reference(number % 10),
        kind=kind,
        source="event:provider_a",
        details=details,
        at=at,
        event_sequence=number if told else None,
        business_id=business_id,
        environment=environment,
    )


async def kept(db: Database, *facts: Anomaly) -> None:
    """The facts, each with its payment."""
    for fact in facts:
        assert fact.reference is not None
        payment = a_payment(
            reference=fact.reference, business_id=fact.business_id or "biz_1", environment=fact.environment or SANDBOX
        )
        if await db.payments.get(fact.reference) is None:
            await db.payments.add(payment)
        await db.anomalies.add(replace(fact, status=AnomalyStatus.OPEN, closed_at=None, closed_by=None))
        if fact.status is AnomalyStatus.CLOSED:
            await db.anomalies.save(fact)


async def adjusted(db: Database, limit: int = 100, **wanted: Any) -> list[int]:
    """The numbers of the facts that a business's adjustments are."""
    found = await db.adjustments.page(AdjustmentFilter("biz_1", SANDBOX, **wanted), limit)
    return [int(one.id[-20:], 16) for one in found]


class AnomalyContract:
    async def test_closed_anomalies_of_sandbox_that_nobody_was_told_end_and_no_others(self, db: Database) -> None:
        live = Environment.LIVE
        facts = [a_fact(number, AnomalyKind.MISMATCH, told=False) for number in range(4)]
        facts += [a_fact(4, AnomalyKind.MISMATCH), a_fact(5, AnomalyKind.MISMATCH, told=False, environment=live)]
        await kept(db, *facts)
        for number, fact in enumerate(facts[1:]):
            await db.anomalies.save(fact.close("ada", "Done.", NOW + number * DAY))
        await put(db, SECOND)
        await db.anomalies.save(SECOND.close("ada", "Done.", NOW))
        assert [await db.anomalies.forget(NOW + 2 * DAY, 1) for _ in range(3)] == [1, 1, 0]
        left = {anomaly.id for anomaly in await db.anomalies.page(AnomalyFilter(), 9)}
        assert left == {fact.id for fact in (facts[0], *facts[3:])} | {SECOND.id}

    async def test_anomalies_are_paged_newest_first_and_found_by_what_they_are_and_who_works_on_them(
        self, db: Database
    ) -> None:
        gone = replace(SECOND, id="anm_3", kind=AnomalyKind.DISPUTE).assign("ada")
        await put(db, FIRST, SECOND, gone)
        for wanted, found in (
            (AnomalyFilter(), [gone, SECOND, FIRST]),
            (AnomalyFilter(after="anm_2"), [FIRST]),
            (AnomalyFilter(kind=AnomalyKind.LATE_SUCCESS), [FIRST]),
            (AnomalyFilter(reference=REFERENCE), [FIRST]),
            (AnomalyFilter(status=AnomalyStatus.CLOSED), []),
            (AnomalyFilter(severity=Severity.MONEY_GONE), [gone]),
            (AnomalyFilter(severity=Severity.MONEY_TO_GIVE_BACK), [SECOND, FIRST]),
            (AnomalyFilter(severity=Severity.MONEY_TO_GIVE_BACK, kind=AnomalyKind.LATE_SUCCESS), [FIRST]),
            (AnomalyFilter(severity=Severity.MONEY_GONE, kind=AnomalyKind.LATE_SUCCESS), []),
            (AnomalyFilter(assignee="ada"), [gone]),
            (AnomalyFilter(assignee="ada", status=AnomalyStatus.OPEN), [gone]),
            (AnomalyFilter(assignee="ada", severity=Severity.INFORMATION), []),
        ):
            assert await db.anomalies.page(wanted, 10) == found, wanted
        assert await db.anomalies.page(AnomalyFilter(), 1) == [gone]
        assert await db.anomalies.of_payment(REFERENCE) == [FIRST]

    async def test_after_the_clock_went_back_an_anomaly_is_listed_as_the_newest(self, db: Database) -> None:
        clock = ManualClock()
        settlement, ids = Settlement(db, clock, SeededEntropy()), list[str]()
        for number, hours in enumerate((0, -1, 0)):
            clock.move(timedelta(hours=hours))
            unknown = a_report(provider_reference=f"PAY-20250131-00000{number}")
            await settlement.report(unknown, "provider_a", Environment.SANDBOX, "test")
            newest, *older = [anomaly.id for anomaly in await db.anomalies.page(AnomalyFilter(), 10)]
            assert older == ids
            ids.insert(0, newest)

    async def test_an_anomaly_is_told_of_worked_off_and_counted_until_it_is_closed(self, db: Database) -> None:
        untold = replace(FIRST, event_sequence=None)
        await db.anomalies.add(untold)
        await db.anomalies.notify(untold.id, 3)
        for moved, unclosed, forbidden in (
            (ACKNOWLEDGED, {(AnomalyKind.LATE_SUCCESS, None): 1}, [replace(FIRST, status=AnomalyStatus.OPEN)]),
            (CLOSED, {}, [replace(CLOSED, assignee="ben"), ACKNOWLEDGED]),
        ):
            assert await db.anomalies.lock("anm_0") is None
            await db.anomalies.save(moved)
            assert await db.anomalies.count_open() == unclosed
            for written in forbidden:
                await breaks_a_rule(db.anomalies.save(written))
            assert [await db.anomalies.lock("anm_1")] == await db.anomalies.of_payment(REFERENCE) == [moved]
        await kept(db, a_fact(1, AnomalyKind.DISPUTE, environment=SANDBOX), a_fact(2, AnomalyKind.DISPUTE))
        assert await db.anomalies.count_open() == {(AnomalyKind.DISPUTE, SANDBOX): 2}

    async def test_adjustments_are_one_business_s_and_environment_s_told_ones_newest_first(self, db: Database) -> None:
        await kept(
            db,
            a_fact(11, AnomalyKind.PARTIAL_REFUND, NOW + MINUTE, amounts=[5]),
            a_fact(12, AnomalyKind.SECOND_CHARGE, amounts=[5]),
            a_fact(13, AnomalyKind.LATE_REVERSAL, told=False),
            a_fact(14, AnomalyKind.MISMATCH),  # without a reason
            a_fact(15, AnomalyKind.LATE_FAILURE),
            a_fact(16, AnomalyKind.LATE_SUCCESS, business_id="biz_2"),
            a_fact(17, AnomalyKind.LATE_SUCCESS, environment=Environment.LIVE),
            a_fact(18, AnomalyKind.NO_EVIDENCE, reason="NO_EVIDENCE", expected=150000),
        )
        many = await db.anomalies.of_payments([a_reference(1), a_reference(3), a_reference(9)])
        assert sorted(int(one.id[-20:], 16) for one in many) == [11, 13]
        assert await adjusted(db) == [11, 18, 12]
        assert await adjusted(db, limit=2) == [11, 18]
        assert await adjusted(db, after=an_id("anm", 18)) == [12]

    async def test_a_dispute_is_one_adjustment_as_its_latest_fact_says(self, db: Database) -> None:
        opened = a_fact(11, AnomalyKind.DISPUTE, disputeId="1", state="opened", amounts=[70])
        won = a_fact(21, AnomalyKind.DISPUTE, NOW + MINUTE, disputeId="1", state="won", amounts=[])
        other = a_fact(31, AnomalyKind.DISPUTE, disputeId="2", state="opened", amounts=[])
        unnamed = [a_fact(number, AnomalyKind.DISPUTE, state="opened", disputeId="") for number in (41, 51)]
        untold = a_fact(61, AnomalyKind.DISPUTE, NOW + DAY, told=False, disputeId="2", state="lost")
        await kept(db, opened, won, other, *unnamed, untold)
        assert await adjusted(db) == [21, 51, 41, 31]
        assert await adjusted(db, needs_attention=True) == [51, 41, 31]
        found = await db.adjustments.page(AdjustmentFilter("biz_1", SANDBOX), 1)
        assert found == [Adjustment(won.id, a_reference(1), AdjustmentKind.DISPUTE, 150000, "won", NOW + MINUTE)]

    async def test_a_dispute_whose_opening_arrives_late_stays_as_it_ended(self, db: Database) -> None:
        lost = a_fact(11, AnomalyKind.DISPUTE, disputeId="1", state="lost", amounts=[70])
        late = a_fact(21, AnomalyKind.DISPUTE, NOW + MINUTE, disputeId="1", state="opened", amounts=[70])
        reminded = [a_fact(number, AnomalyKind.DISPUTE, disputeId="2", state="opened") for number in (12, 22)]
        await kept(db, lost, late, *reminded)
        assert await adjusted(db) == [12, 11]
        assert await adjusted(db, needs_attention=True) == [12]
        (total,) = await db.adjustments.totals(PaymentFilter("biz_1", SANDBOX))
        assert (total.count, total.effect) == (2, -70)

    async def test_a_dispute_is_as_its_last_fact_says_after_the_clock_was_ahead(self, db: Database) -> None:
        """Ids go on from the last one, and instants from the clock that was set right."""
        won = a_fact(11, AnomalyKind.DISPUTE, NOW + DAY, disputeId="1", state="won", amounts=[70])
        lost = a_fact(21, AnomalyKind.DISPUTE, NOW + DAY, disputeId="1", state="lost", amounts=[70])
        lost = replace(lost, at=NOW)
        await kept(db, won, lost)
        (found,) = await db.adjustments.page(AdjustmentFilter("biz_1", SANDBOX), 9)
        assert adjustments_of([won, lost], 150000) == [found]
        assert (found.id, found.state) == (lost.id, "lost")
        (total,) = await db.adjustments.totals(PaymentFilter("biz_1", SANDBOX))
        assert (total.day, total.effect) == (NOW.date(), -70)

    async def test_what_needs_attention_does_until_it_is_worked_off(self, db: Database) -> None:
        kinds = (AnomalyKind.LATE_SUCCESS, AnomalyKind.SECOND_CHARGE, AnomalyKind.NO_EVIDENCE, AnomalyKind.MISMATCH)
        facts = [a_fact(10 + number, kind, reason="R") for number, kind in enumerate(kinds, 1)]
        refund, dispute = a_fact(15, AnomalyKind.LATE_REVERSAL), a_fact(16, AnomalyKind.DISPUTE, state="opened")
        closed = [a_fact(20 + number, kind, reason="R") for number, kind in enumerate(kinds, 1)]
        closed = [one.close("ada", "Done.", NOW) for one in (*closed, a_fact(26, AnomalyKind.DISPUTE, state="opened"))]
        await kept(db, *facts, refund, dispute, *closed)
        assert await adjusted(db, needs_attention=True) == [26, 16, 14, 13, 12, 11]

    async def test_what_came_and_went_back_of_a_reversed_payment_adds_nothing(self, db: Database) -> None:
        """What was known of its charge before the reversal is in the status; another charge's money counts."""
        await added(db, 1, Trigger.REVERSE)
        await added(db, 2, Trigger.FAIL)
        for number in (1, 2):
            late = a_fact(number, AnomalyKind.LATE_SUCCESS, amounts=[150000])
            part = a_fact(10 + number, AnomalyKind.PARTIAL_REFUND, amounts=[5000])
            lost = a_fact(30 + number, AnomalyKind.DISPUTE, disputeId="1", state="lost", amounts=[3000])
            await kept(db, late, part, lost)
        await kept(
            db,
            a_fact(21, AnomalyKind.SECOND_CHARGE, amounts=[150000], providerReference="R.2"),
            a_fact(41, AnomalyKind.PARTIAL_REFUND, amounts=[7000], providerReference="R.2"),
            a_fact(51, AnomalyKind.PARTIAL_REFUND, amounts=[900], providerReference="R"),
        )
        found = await db.adjustments.totals(PaymentFilter("biz_1", SANDBOX))
        assert {(total.kind, total.count, total.amount, total.effect) for total in found} == {
            (AdjustmentKind.LATE_SUCCESS, 2, 300000, 150000),
            (AdjustmentKind.REFUND, 4, 17900, -12000),
            (AdjustmentKind.DISPUTE, 2, 6000, -3000),
            (AdjustmentKind.SECOND_CHARGE, 1, 150000, 150000),
        }

    async def test_adjustments_add_up_by_their_own_day_and_kind_as_the_domain_counts_them(self, db: Database) -> None:
        midnight = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
        yesterday = midnight - timedelta(microseconds=1)
        facts = [
            a_fact(1, AnomalyKind.PARTIAL_REFUND, yesterday, amounts=[5000]),
            a_fact(2, AnomalyKind.PARTIAL_REFUND, midnight, amounts=[7000, 150000]),
            a_fact(3, AnomalyKind.LATE_REVERSAL, midnight, amount=300, amounts=[150000]),
            a_fact(4, AnomalyKind.LATE_REVERSAL, midnight, amounts=[]),
            a_fact(5, AnomalyKind.DISPUTE, midnight, disputeId="1", state="opened", amounts=[40]),
            a_fact(15, AnomalyKind.DISPUTE, midnight + MINUTE, disputeId="1", state="lost", amounts=[30, 20]),
            a_fact(6, AnomalyKind.DISPUTE, midnight, disputeId="2", state="opened", amounts=[]),
            a_fact(7, AnomalyKind.SECOND_CHARGE, midnight, amounts=[150000]),
            a_fact(8, AnomalyKind.MISMATCH, midnight, reason="UNDERPAID", expected=150000, received=9),
            a_fact(18, AnomalyKind.MISMATCH, midnight, reason="CURRENCY_MISMATCH", expected=150000, received=8),
            a_fact(9, AnomalyKind.LATE_SUCCESS, midnight, amounts=[1], environment=Environment.LIVE),
            a_fact(10, AnomalyKind.LATE_SUCCESS, midnight, amounts=[2], business_id="biz_2"),
        ]
        await kept(db, *facts)
        expected = [
            AdjustmentTotal(yesterday.date(), AdjustmentKind.REFUND, 1, 5000, -5000),
            AdjustmentTotal(midnight.date(), AdjustmentKind.REFUND, 3, 150300, -150300),
            AdjustmentTotal(midnight.date(), AdjustmentKind.DISPUTE, 2, 150030, -30),
            AdjustmentTotal(midnight.date(), AdjustmentKind.SECOND_CHARGE, 1, 150000, 150000),
            AdjustmentTotal(midnight.date(), AdjustmentKind.ATTENTION, 2, 9, 0),
        ]
        whole = PaymentFilter("biz_1", SANDBOX, since=yesterday, until=midnight + DAY)
        everybody = AdjustmentTotal(midnight.date(), AdjustmentKind.LATE_SUCCESS, 2, 3, 3)
        assert await db.adjustments.totals(whole) == expected
        assert await db.adjustments.totals(replace(whole, since=None, until=midnight)) == expected[:1]
        assert await db.adjustments.totals(replace(whole, since=midnight)) == expected[1:]
        of_all = PaymentFilter(since=midnight, until=midnight + DAY)
        assert await db.adjustments.totals(of_all) == [*expected[1:3], everybody, *expected[3:]]

    async def test_after_the_clock_was_ahead_adjustments_still_add_up_by_their_own_day(self, db: Database) -> None:
        """Their ids go on from the last one, which is of the days ahead."""
        facts = [a_fact(number, AnomalyKind.PARTIAL_REFUND, NOW + 2 * DAY, amounts=[5000]) for number in (1, 2)]
        await kept(db, facts[0], replace(facts[1], at=NOW))
        for of_business in (PaymentFilter("biz_1", SANDBOX), PaymentFilter()):
            (total,) = await db.adjustments.totals(replace(of_business, since=NOW, until=NOW + DAY))
            assert (total.day, total.count, total.amount) == (NOW.date(), 1, 5000)

    async def test_the_last_request_to_end_a_payment_is_found_and_confirmed(self, db: Database) -> None:
        assert await db.resolutions.latest(REFERENCE) is None
        await put(db, ASKED, replace(AGAIN, id="res_3", reference="PAY-20250131-OTHER1"), AGAIN)
        assert await db.resolutions.latest(REFERENCE) == AGAIN
        await db.resolutions.confirm(CONFIRMED)
        assert await db.resolutions.of_payment(REFERENCE) == [ASKED, CONFIRMED]

    @pytest.mark.parametrize(
        "wrong",
        [replace(CONFIRMED, confirmed_by="admin:eve"), replace(ASKED, confirmed_by="admin:ada", confirmed_at=NOW)],
        ids=["confirmed again", "by who asked"],
    )
    async def test_a_request_is_confirmed_once_and_by_another(self, db: Database, wrong: Resolution) -> None:
        await put(db, ASKED, AGAIN)
        await db.resolutions.confirm(CONFIRMED)
        await breaks_a_rule(db.resolutions.confirm(wrong))
        assert await db.resolutions.of_payment(REFERENCE) == [ASKED, CONFIRMED]
