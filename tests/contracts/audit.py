"""What every Store promises about the audit trail."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from payagg_testing.builders import MINUTE, NOW, TICK, a_delivery, an_actor, an_endpoint, an_entry, an_id

from payagg.application.ports.webhooks import ClaimedDelivery, DeliveryResult
from payagg.domain.audit import Action, ActorRealm, AuditEntry, AuditFilter, Changes
from payagg.domain.webhook import DEACTIVATE_AFTER
from tests.contracts.database import Database, put
from tests.contracts.webhooks import DLV, DOWN, claim, emitted, with_endpoints


class AuditContract:
    async def test_entries_come_back_as_they_were_added_newest_first_and_by_cursor(self, db: Database) -> None:
        changes: Changes = {
            "events": {"before": None, "after": ["payment.success"]},
            "isActive": {"before": True, "after": False},
        }
        whole = replace(an_entry(1, changes=changes), business_id="biz_1", address="192.0.2.7", request_id="req-1")
        bare = replace(an_entry(2, actor=an_actor(ActorRealm.CLOCK)), business_id=None, address=None, request_id=None)
        entries = [an_entry(0), whole, bare, an_entry(3)]
        await put(db, *entries)
        first = await db.audit.list_entries(AuditFilter(), None, 2)
        assert first == [entries[3], bare]
        await db.audit.add(an_entry(9))
        assert await db.audit.list_entries(AuditFilter(), first[-1].id, 2) == [whole, entries[0]]
        assert await db.audit.list_entries(AuditFilter(), an_id("aud", 0), 2) == []

    async def test_each_filter_narrows_alone_and_together(self, db: Database) -> None:
        base = an_entry(0, Action.WEBHOOK_CREATE, "whe_1", business_id="biz_1")
        others = [
            an_entry(1, Action.WEBHOOK_CREATE, "whe_1", business_id="biz_2"),
            an_entry(2, Action.WEBHOOK_UPDATE, "whe_1", business_id="biz_1"),
            an_entry(3, Action.WEBHOOK_CREATE, "whe_2", business_id="biz_1"),
            an_entry(4, Action.WEBHOOK_CREATE, "whe_1", business_id="biz_1", actor=an_actor(subject="bo")),
            an_entry(5, Action.WEBHOOK_CREATE, "whe_1", business_id=None),
        ]
        await put(db, base, *others)

        assert await numbers(db, business_id="biz_1") == [4, 3, 2, 0]
        assert await numbers(db, subject="bo") == [4]
        assert await numbers(db, object_id="whe_2") == [3]
        assert await numbers(db, action="webhook.update") == [2]
        assert await numbers(db, business_id="biz_1", subject="ada", object_id="whe_1", action="webhook.create") == [0]
        assert await numbers(db, business_id="biz_3") == []

    async def test_times_are_kept_to_the_microsecond(self, db: Database) -> None:
        milli = timedelta(milliseconds=1)
        for number, at in enumerate((NOW, NOW + TICK, NOW + 2 * TICK, NOW + milli)):
            await db.audit.add(replace(an_entry(number, now=at), at=at))
        assert await numbers(db, since=NOW + TICK) == [3, 2, 1]
        assert await numbers(db, until=NOW + 2 * TICK) == [1, 0]
        assert await numbers(db, since=NOW + TICK, until=NOW + milli) == [2, 1]
        assert await numbers(db, since=NOW + milli + TICK) == []

    async def test_an_endpoint_that_the_queue_switches_off_is_told_once(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint(), an_endpoint("whe_2"))
        await emitted(db, *(a_delivery(id=DLV[n]) for n in range(4)), a_delivery(id=DLV[9], endpoint_id="whe_2"))
        claimed = await claim(db)
        others = [one for one in claimed if one.delivery.endpoint_id == "whe_2"]
        first, second, third, *_ = [one for one in claimed if one.delivery.endpoint_id == "whe_1"]
        await db.queue.finish([DeliveryResult(first, DOWN, NOW, NOW + MINUTE), *map(failed, others)])
        assert await all_entries(db) == []
        hopeless = NOW + DEACTIVATE_AFTER
        await db.queue.finish([replace(failed(second), at=hopeless), replace(failed(third), at=hopeless)])
        (entry,) = await all_entries(db)
        assert (entry.realm, entry.action, entry.at) == (ActorRealm.CLOCK, "webhook.deactivate", hopeless)
        assert (entry.object_id, entry.business_id) == ("whe_1", "biz_1")
        assert entry.changes == {"isActive": {"before": True, "after": False}}
        (last,) = [one for one in claimed if one.delivery.endpoint_id == "whe_1" and one not in (first, second, third)]
        await db.queue.finish([replace(failed(last), at=hopeless, deactivate=True)])
        assert await all_entries(db) == [entry]


def failed(claimed: ClaimedDelivery) -> DeliveryResult:
    return DeliveryResult(claimed, DOWN, NOW, None)


async def numbers(db: Database, **wanted: Any) -> list[int]:
    return [int(entry.id[-1]) for entry in await db.audit.list_entries(AuditFilter(**wanted), None, 10)]


async def all_entries(db: Database) -> list[AuditEntry]:
    return await db.audit.list_entries(AuditFilter(), None, 10)
