"""What any Store promises of reconciliations."""

from dataclasses import replace
from datetime import date

from payagg_testing.builders import HOUR, LIVE, NOW, REFERENCE, a_payment, an_attempt

from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.attempt import AttemptState
from payagg.domain.payment import Status
from payagg.domain.reconciliation import LineKind, MatchBucket, OurPayment, ReconciliationFinding, ReconciliationRun
from payagg.domain.values import Environment
from tests.contracts.database import Database, breaks_a_rule, put

DAY = date(2025, 1, 30)
RUN = ReconciliationRun("rec_1", "provider_a", LIVE, DAY, DAY, "list", "cli:ada", NOW)
CLAIMED = replace(RUN, id="rec_2", claim="provider_a LIVE 2025-01-30")
TOTALS = {"AGREED": {"payments": 1, "ours": 2**53 - 1, "lines": 1, "theirs": 2**53 - 1}}
ENDED = replace(RUN, ended_at=NOW + HOUR, totals=TOTALS)
FINDINGS = [
    ReconciliationFinding("rec_1", 1, MatchBucket.HERE_ONLY, REFERENCE, None, None, None, 150000, None, None),
    ReconciliationFinding(
        "rec_1", 2, MatchBucket.PAID_THERE, REFERENCE, REFERENCE, LineKind.CHARGE, "5000000001", 150000, 150000, "MOVED"
    ),
]
OTHER = "PAY-20250131-7K2M9Y"


class ReconciliationContract:
    async def test_a_reconciliation_is_kept_from_its_start_and_ends_once_with_its_findings(self, db: Database) -> None:
        kept = db.reconciliations
        await put(db, RUN, CLAIMED)
        assert [await kept.get(id) for id in ("rec_1", "rec_0")] == [RUN, None]
        await kept.end(ENDED, FINDINGS)
        pages = [await kept.page(*asked) for asked in ((None, 10), (None, 1), ("rec_2", 10))]
        assert pages == [[CLAIMED, ENDED], [CLAIMED], [ENDED]]
        asked = (("rec_1", 0, 10), ("rec_1", 1, 10), ("rec_1", 0, 1), ("rec_2", 0, 10))
        assert [await kept.findings(*one) for one in asked] == [FINDINGS, FINDINGS[1:], FINDINGS[:1], []]
        await breaks_a_rule(kept.end(replace(ENDED, ended_at=NOW), []))

    async def test_a_day_is_claimed_once_and_again_when_its_run_did_not_end(self, db: Database) -> None:
        later = replace(CLAIMED, id="rec_3", started_at=NOW + HOUR)
        assert await db.reconciliations.claim(CLAIMED, NOW - HOUR) == "rec_2"
        assert await db.reconciliations.claim(later, NOW) is None  # it is under way
        assert await db.reconciliations.claim(later, NOW + HOUR / 2) == "rec_2"
        assert await db.reconciliations.page(None, 10) == [replace(CLAIMED, started_at=NOW + HOUR)]
        await db.reconciliations.end(replace(CLAIMED, ended_at=NOW + HOUR), [])
        assert await db.reconciliations.claim(later, NOW + 9 * HOUR) is None
        other = replace(CLAIMED, id="rec_4", claim="provider_a LIVE 2025-01-31")
        assert await db.reconciliations.claim(other, NOW) == "rec_4"

    async def test_a_day_that_was_claimed_by_a_clock_ahead_of_it_is_claimed_again(self, db: Database) -> None:
        ahead = replace(CLAIMED, started_at=NOW + 3 * HOUR)
        assert await db.reconciliations.claim(ahead, NOW) == "rec_2"
        await db.reconciliations.end(replace(ahead, ended_at=NOW + 3 * HOUR), [])
        assert await db.upkeep.pull_back(NOW, "") == (1, None)
        assert await db.upkeep.pull_back(NOW, "") == (0, None)
        later = replace(CLAIMED, id="rec_3", started_at=NOW + HOUR)
        assert await db.reconciliations.claim(later, NOW) == "rec_3"

    async def test_payments_are_found_by_the_gateway_and_the_time_of_their_hand_off(self, db: Database) -> None:
        wanted = a_payment(environment=LIVE, gateway="provider_a")
        for payment, gateway, at in (
            (wanted, "provider_a", NOW),
            (replace(wanted, reference=OTHER), "provider_a", NOW + HOUR),
            (replace(wanted, reference="PAY-20250131-000001"), "provider_b", NOW),
            (replace(wanted, reference="PAY-20250131-000002", environment=Environment.SANDBOX), "provider_a", NOW),
        ):
            stored = replace(payment, gateway=gateway)
            await put(db, stored, an_attempt(stored, 1, AttemptState.HANDED_OFF, gateway=gateway, now=at))
        # Their payers may have been there, before a restore; one was paid there after all.
        for number, confirmed_at in enumerate((None, NOW), 3):
            refused = replace(wanted, reference=f"PAY-20250131-00000{number}")
            doubt = an_attempt(refused, 1, AttemptState.REFUSED, handed_off_at=NOW, confirmed_at=confirmed_at)
            await put(db, refused, doubt)
        paid = NOW, OurPayment("PAY-20250131-000004", 150000, Status.INITIATED, LIVE)
        first = NOW, OurPayment(REFERENCE, 150000, Status.INITIATED, LIVE)
        second = NOW + HOUR, OurPayment(OTHER, 150000, Status.INITIATED, LIVE)
        find, hours = db.reconciliations, (NOW, NOW + 2 * HOUR)
        asked = ((*hours, "", 10), (*hours, "", 1), (*hours, REFERENCE, 10), (NOW, NOW + HOUR, "", 10))
        found = [await find.handed_off("provider_a", LIVE, *one) for one in asked]
        assert found == [[paid, first, second], [paid], [second], [paid, first]]
        both = [REFERENCE, "PAY-20250131-000001", "PAY-20250131-000002", "PAY-20250131-999999"]
        assert await find.of_gateway("provider_a", LIVE, both) == [first[1]]

    async def test_what_was_told_of_no_payment_is_found_by_the_providers_reference(self, db: Database) -> None:
        unknown = AnomalyKind.UNKNOWN_REFERENCE
        facts = {name: {"providerReference": name, "amounts": [1]} for name in (REFERENCE, OTHER)}
        mine = Anomaly("anm_1", None, unknown, "event:provider_a", facts[REFERENCE], NOW)
        await db.anomalies.add(mine)
        await db.anomalies.add(Anomaly("anm_2", None, unknown, "event:provider_a", facts[OTHER], NOW))
        await db.anomalies.add(Anomaly("anm_3", REFERENCE, AnomalyKind.MISMATCH, "verify", facts[REFERENCE], NOW))
        assert await db.reconciliations.unknown([REFERENCE]) == [mine]
        assert await db.reconciliations.unknown([]) == []
