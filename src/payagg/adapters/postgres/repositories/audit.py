"""The audit trail as rows."""

from datetime import timedelta

from sqlalchemy import insert, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.repositories.rows import RowMap
from payagg.adapters.postgres.repositories.webhooks import id_at
from payagg.adapters.postgres.schema.tables import audit
from payagg.domain.audit import ActorRealm, AuditEntry, AuditFilter

ENTRY = RowMap(AuditEntry, audit, realm=ActorRealm)
TICK = timedelta(milliseconds=1)  # what an id tells of its instant
FIRST, LAST = "aud_", "aud_g"  # below and above every id
_BY_SELECTIVITY = ("object_id", "subject", "business_id", "action")  # each has an index together with the id


class PostgresAudit:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, entry: AuditEntry) -> None:
        await self._connection.execute(insert(audit).values(**ENTRY.values(entry)))

    async def listed(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        own = audit.c
        # An id begins with its instant, so that one index serves order, cursor and times; `at` is exact.
        low = id_at("aud", wanted.since) if wanted.since else FIRST
        high = min(after or LAST, id_at("aud", wanted.until + TICK) if wanted.until else LAST)
        filters = [name for name in _BY_SELECTIVITY if getattr(wanted, name) is not None]
        query = select(*ENTRY.columns).limit(limit)
        if not filters:
            query = query.where(own.id >= low, own.id < high).order_by(own.id.desc())
        else:
            # As one range of the filter's own index: for "equal to" the server may prefer to walk the whole table by
            # id, and does so for long where matches are rare.
            value, key = getattr(wanted, filters[0]), tuple_(own[filters[0]], own.id)
            query = query.where(key >= tuple_(value, low), key < tuple_(value, high))
            query = query.order_by(own[filters[0]].desc(), own.id.desc())
        for name in filters[1:]:
            query = query.where(own[name] == getattr(wanted, name))
        if wanted.since is not None:
            query = query.where(own.at >= wanted.since)
        if wanted.until is not None:
            query = query.where(own.at < wanted.until)
        return [ENTRY.load(row) for row in await self._connection.execute(query)]
