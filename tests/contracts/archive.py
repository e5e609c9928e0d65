"""What every Store promises about payments whose history leaves for the archive."""

from dataclasses import replace
from typing import Any

import pytest
from payagg_testing.builders import DAY, NOW, a_payment, an_attempt, an_event, an_id

from payagg.application.ports.outside import Conflict
from payagg.application.ports.payments import ProviderCall
from payagg.application.ports.store import Store
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import AttemptState
from payagg.domain.payment import Payment, Status, Trigger
from payagg.extensions.archive.postgres import ArchiveRows, PartRows
from payagg.extensions.archive.tables import TABLES, remaining
from tests.contracts.database import Database, OnDatabase, autocommit

OF_DAY = ("PAY-20250131-", "PAY-20250131-ZZZZZZ")


def named(suffix: str) -> str:
    return f"PAY-20250131-{suffix}"


async def with_history(
    store: Store, reference: str, *triggers: Trigger, attempt: dict[str, Any] | None = None, **fields: Any
) -> Payment:
    """A payment that made these moves, with an attempt and a call to its provider."""
    payment, db = a_payment(reference=reference, **fields), autocommit(store)
    await db.add_payment(payment)
    for number, trigger in enumerate(triggers):
        payment, transition = payment.move(trigger, NOW + number * DAY / 24, actor="test", reason=None)
        assert transition is not None
        await db.payments.save(payment, transition)
    own = {"state": AttemptState.HANDED_OFF, "next_ask_at": None, "last_ask_at": NOW, **(attempt or {})}
    await db.attempts.add(an_attempt(payment, **own))
    call_id = an_id("pcl", int(reference[-6:], 36))
    await db.provider_calls.add(
        ProviderCall(call_id, reference, 1, "provider_a", "fetch_charge", "SUCCESS", "success", 20, "test", NOW)
    )
    return payment


async def ready(db: Database, limit: int = 9, after: str = OF_DAY[0]) -> tuple[list[str], str | None]:
    return await db.of(ArchiveRows).ready(after, OF_DAY[1], NOW + DAY, limit)


async def a_part(db: Database) -> ArchivePart:
    begun = await db.of(PartRows).begin("PAY-20250131", "f", NOW)
    part = replace(begun, payments=1, last_reference=named("000001"), manifest=b"m" * 32)
    await db.of(PartRows).finish(part)
    return part


ENDED = (Trigger.PROCESS, Trigger.SUCCEED)


class ArchiveContract(OnDatabase):
    async def test_payments_with_a_history_are_met_in_the_order_of_their_references(self, db: Database) -> None:
        for reference in (named("00000B"), "PAY-20250201-000001", named("00000A")):
            await with_history(db, reference, *ENDED)
        await db.add_payment(a_payment(reference="AAA-20250131-000001"))
        met, after = [], ""
        while (found := await db.of(ArchiveRows).next_with_history(after)) is not None:
            met.append(found)
            after = found
        assert met == [named("00000A"), named("00000B"), "PAY-20250201-000001"]
        assert await ready(db, 1) == ([named("00000A")], named("00000A"))
        assert await ready(db, 9, named("00000A")) == ([named("00000B")], named("00000B"))
        assert await ready(db, 9, named("00000B")) == ([], None)

    async def test_only_what_has_had_every_other_end_may_be_archived(self, db: Database) -> None:
        await with_history(db, named("000001"), *ENDED)
        await with_history(db, named("000002"), Trigger.PROCESS)
        await with_history(db, named("000003"), *ENDED, attempt={"next_ask_at": NOW})
        for reference in (named("000004"), named("000005"), named("000006")):
            await with_history(db, reference, *ENDED)
        await with_history(db, named("000007"), *ENDED, now=NOW + DAY)
        anomaly = Anomaly("anm_1", named("000005"), AnomalyKind.LATE_REVERSAL, "test", {}, NOW)
        await db.webhook_events.emit(an_event(reference=named("000004")), [])
        await db.anomalies.add(anomaly)
        closed = Anomaly("anm_2", named("000006"), AnomalyKind.LATE_REVERSAL, "test", {}, NOW)
        await db.anomalies.add(closed)
        await db.anomalies.save(closed.close("admin:ada", "Refunded.", NOW))
        assert await ready(db) == ([named("000001"), named("000006")], named("000007"))
        await db.anomalies.save(anomaly.close("admin:ada", "Refunded.", NOW))
        asked = [named("000006"), named("000002"), named("000005"), "PAY-20250131-NOSUCH"]
        assert await db.of(ArchiveRows).lock_ready(asked) == [named("000005"), named("000006")]

    async def test_a_history_is_every_row_and_nothing_of_the_payer(self, db: Database) -> None:
        payer: dict[str, Any] = {
            "customer_email": "ada@example.com",
            "metadata": {"order": "canary"},
            "idempotency_key": "canary key",
        }
        payment = await with_history(db, named("000001"), *ENDED, **payer)
        for number, trigger in ((2, Trigger.FAIL), (3, Trigger.REVERSE)):
            await with_history(db, named(f"00000{number}"), Trigger.PROCESS, trigger)
        history = await db.of(ArchiveRows).histories([named("000001"), "PAY-20250131-NOSUCH"])
        assert {table: len(rows) for table, rows in history.items()} == {
            "payments": 1,
            "transitions": 2,
            "attempts": 1,
            "provider_calls": 1,
        }
        assert list(history) == list(TABLES)
        own = dict(zip(TABLES["payments"], history["payments"][0], strict=True))
        assert (own["amount"], own["status"], own["settled_at"]) == (payment.amount, "SUCCESS", payment.settled_at)
        assert [row[1] for row in history["transitions"]] == [1, 2]
        assert not [word for word in ("ada@", "canary", "https://") if word in repr(history)]
        others = (await db.of(ArchiveRows).histories([named("000002"), named("000003")]))["payments"]
        column = list(TABLES["payments"]).index("status")
        assert [row[column] for row in others] == [Status.FAILED.value, Status.REVERSED.value]

    async def test_what_is_moved_is_gone_and_known_to_be_archived(self, db: Database) -> None:
        first = await with_history(db, named("000001"), *ENDED)
        await with_history(db, named("000002"), *ENDED)
        other = await db.of(ArchiveRows).histories([named("000002")])
        part = await a_part(db)
        own = await db.of(ArchiveRows).histories([named("000001")])
        late = ProviderCall(
            "pcl_late", named("000001"), 1, "provider_a", "fetch_charge", "SUCCESS", "s", 5, "test", NOW
        )
        await db.provider_calls.add(late)
        calls = [(row[0], row[1]) for row in own["provider_calls"]]
        await db.of(ArchiveRows).move([remaining(named("000001"), part.number, own)], calls)
        kept = ArchivedPayment(named("000001"), part.number, (("provider_a", AttemptState.HANDED_OFF, None),), None)
        assert await db.payments.archived(named("000001")) == (kept, part)
        assert await db.payments.archived(named("000002")) is None
        assert await db.of(ArchiveRows).find_archived([named("000001"), named("000002")]) == {named("000001")}
        assert await db.payments.transitions(named("000001")) == []
        assert await db.attempts.of_payment(named("000001")) == []
        assert await db.provider_calls.of_payment(named("000001")) == [late], "what came meanwhile stays"
        assert await db.payments.get(named("000001")) == first
        assert await db.of(ArchiveRows).histories([named("000002")]) == other
        assert await ready(db) == ([named("000002")], named("000002"))

    async def test_every_attempt_of_an_archived_payment_can_be_told(self, db: Database) -> None:
        part = await a_part(db)
        tried = (("provider_b", AttemptState.REFUSED, None), ("provider-a", AttemptState.UNKNOWN, "P-C 1"))
        payments = [
            ArchivedPayment(named("000001"), part.number, tried, f"{named('000001')}-2"),
            ArchivedPayment(named("000002"), part.number, (), None),
        ]
        await db.of(ArchiveRows).move(payments, [])
        assert [await db.payments.archived(one.reference) for one in payments] == [(one, part) for one in payments]

    async def test_a_part_is_recorded_once_and_not_after_it_was_given_up(self, db: Database) -> None:
        part = await a_part(db)
        with pytest.raises(Conflict):
            await db.of(PartRows).finish(part)
        lost = await db.of(PartRows).begin("PAY-20250131", "g", NOW)
        other_day = await db.of(PartRows).begin("PAY-20250201", "h", NOW)
        assert await db.of(PartRows).of_day("PAY-20250131") == [part, lost]
        given_up = [await db.of(PartRows).give_up(number) for number in (lost.number, part.number, lost.number)]
        assert given_up == [True, False, False]
        assert await db.of(PartRows).of_day("PAY-20250131") == [part], "what is written is not given up"
        assert await db.of(PartRows).of_day("PAY-20250201") == [other_day]
        assert await db.of(PartRows).unfinished_days() == ["PAY-20250131", "PAY-20250201"]
        await db.of(PartRows).close(part.number, NOW)
        assert await db.of(PartRows).unfinished_days() == ["PAY-20250201"]
        assert await db.of(PartRows).of_day("PAY-20250131") == []
        with pytest.raises(Conflict):
            await db.of(PartRows).finish(replace(lost, payments=1, last_reference="x", manifest=b"m"))
