"""The audit trail as rows."""

from datetime import timedelta
from functools import cache

from sqlalchemy import Text, bindparam, insert, select, tuple_

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, parameters
from payagg.adapters.postgres.repositories.webhook_events import id_at
from payagg.adapters.postgres.schema.accounts import audit
from payagg.adapters.postgres.statement import Statement
from payagg.domain.audit import ActorRealm, AuditEntry, AuditFilter

ENTRY = RowMap(AuditEntry, audit, realm=ActorRealm)
TICK = timedelta(milliseconds=1)  # what an id tells of its instant
FIRST, LAST = "aud_", "aud_g"  # below and above every id
_BY_SELECTIVITY = ("object_id", "subject", "business_id", "action")  # each has an index together with the id

ADD = Statement(insert(audit).values(parameters(*ENTRY.names)))


@cache
def _list_statement(filters: tuple[str, ...], is_since: bool, is_until: bool) -> Statement:
    own = audit.c
    low, high = bindparam("low", type_=Text), bindparam("high", type_=Text)
    query = select(*ENTRY.columns).limit(bindparam("limit"))
    if not filters:
        query = query.where(own.id >= low, own.id < high).order_by(own.id.desc())
    else:
        # As one range of the filter's own index: for "equal to" the server may walk the whole table by id, which takes
        # long when matches are rare.
        value, key = bindparam(filters[0], type_=Text), tuple_(own[filters[0]], own.id)
        query = query.where(key >= tuple_(value, low), key < tuple_(value, high))
        query = query.order_by(own[filters[0]].desc(), own.id.desc())
    for name in filters[1:]:
        query = query.where(own[name] == bindparam(name))
    if is_since:
        query = query.where(own.at >= bindparam("since"))
    if is_until:
        query = query.where(own.at < bindparam("until"))
    return Statement(query)


class PostgresAudit(PostgresRepository):
    async def add(self, entry: AuditEntry) -> None:
        self._connection.send(ADD, **ENTRY.values(entry))

    async def list_entries(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        # An id begins with its instant, so that one index serves order, cursor and times; `at` is exact.
        low = id_at("aud", wanted.since) if wanted.since else FIRST
        high = min(after or LAST, id_at("aud", wanted.until + TICK) if wanted.until else LAST)
        given = {name: getattr(wanted, name) for name in _BY_SELECTIVITY if getattr(wanted, name) is not None}
        listed = _list_statement(tuple(given), wanted.since is not None, wanted.until is not None)
        rows = await self._connection.rows(
            listed, low=low, high=high, limit=limit, since=wanted.since, until=wanted.until, **given
        )
        return ENTRY.all(rows)
