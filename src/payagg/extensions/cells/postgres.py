"""Moves between cells as rows: the outbox that they go through, and the forwarding records that stay."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from payagg.adapters.postgres.repositories.accounts import ENTRY
from payagg.adapters.postgres.repositories.rows import PostgresRepository
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.outside import Unavailable
from payagg.domain.audit import AuditEntry
from payagg.domain.values import Environment
from payagg.domain.webhook import secret_context
from payagg.extensions.cells import arrivals
from payagg.extensions.cells import statements as sql
from payagg.extensions.cells.domain import BusinessMove, CellNames, MoveState
from payagg.extensions.cells.places import Destination

HERE = ""
ADD_AUDIT = Statement(ENTRY.insert().on_conflict_do_nothing())


class CellRows(PostgresRepository):
    """What a cell has, and where it went that is here no more."""

    async def of_business(self, business_id: str) -> BusinessMove | None:
        row = await self._connection.row(sql.OF_BUSINESS, business_id=business_id)
        return None if row is None else BusinessMove(row[0], row[1], MoveState(row[2]), row[3])

    async def cell_of(self, place: Destination) -> str | None:
        """Where a key, a business or a payment went, HERE where it is, None for what never was here. Raises Unavailable
        while the other cell has not got it, or may have and nobody may ask for it yet."""
        row = await self._connection.row(sql.CELL_OF[place.by], name=place.name)
        if row is not None and row[1]:
            raise Unavailable("the business is moving to another cell")
        return None if row is None else row[0] or HERE

    async def names(self) -> CellNames:
        """In order. A business that is still arriving is where it comes from."""
        keys, businesses = await self._connection.all((sql.ACTIVE_KEYS, {}), (sql.BUSINESSES_HERE, {}))
        return CellNames([row[0] for row in keys], [row[0] for row in businesses])

    async def schema(self) -> str:
        """The name of the schema; `rows` go between equal ones alone."""
        return str(await self._connection.value(sql.SCHEMA))

    async def database(self) -> str:
        """A word that no other database has, and this one until its server starts anew."""
        return str(await self._connection.value(sql.DATABASE))

    async def gateways_in_use(self, business_id: str) -> set[str]:
        """The ids of those that the business has settings of, or charges at that are still to be asked about."""
        return {row[0] for row in await self._connection.rows(sql.IN_USE, business_id=business_id)}

    async def environments(self, business_id: str) -> set[Environment]:
        """Those in which it has active keys or payments."""
        return {Environment(row[0]) for row in await self._connection.rows(sql.ENVIRONMENTS, business_id=business_id)}

    async def signing_secrets(self, business_id: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Signing secrets of endpoints, of one business or of any, each with its context in the vault."""
        rows = await self._connection.rows(sql.SEALED, business_id=business_id, limit=limit)
        return [(secret_context(endpoint_id), secret) for endpoint_id, secret in rows]


class DepartureRows(PostgresRepository):
    """A business in the cell that it leaves. What is on its way is `rows`: as one store wrote them, and as one of the
    same kind and schema reads them."""

    async def close(self, business_id: str, cell: str, at: datetime) -> bool:
        """Its keys and members are on their way, and nothing of it changes any more but its payments; False where there
        is no such business, or it was closed before."""
        known = await self._connection.row(sql.LOCK_BUSINESS, business_id=business_id)
        if known is None or await self._connection.row(sql.OF_BUSINESS, business_id=business_id) is not None:
            return False
        values: dict[str, Any] = {"business_id": business_id, "cell": cell, "at": at}
        self._connection.send(sql.KEYS_LEAVE, **values)
        self._connection.send(sql.MEMBERS_LEAVE, **values)
        return True

    async def open_transactions(self) -> frozenset[str]:
        """A name for each transaction that may have begun before now and may still write."""
        return frozenset(row[0] for row in await self._connection.rows(sql.OPEN_TRANSACTIONS))

    async def profile(self, business_id: str) -> Any:
        """Rows of the business, its settings and its endpoints, without what the endpoints have counted."""
        return await self._connection.value(sql.PROFILE, business_id=business_id)

    async def start(self, business_id: str) -> None:
        """LEAVING becomes MOVING."""
        self._connection.send(sql.START, business_id=business_id)

    async def take(self, business_id: str, now: datetime, limit: int) -> int:
        """Payments that are on their way from now on, with all that is theirs; how many. One whose charge is being
        started, or that a delivery is being sent of, is left for later, and so is one that somebody holds."""
        chosen = [row[0] for row in await self._connection.rows(sql.CHOOSE, business_id=business_id, limit=limit)]
        if not chosen:
            return 0
        busy = {row[0] for row in await self._connection.rows(sql.BUSY, references=chosen, now=now)}
        free = [reference for reference in chosen if reference not in busy]
        if free:
            self._connection.send(sql.PACK, references=free, now=now)
            for statement in sql.REMOVE:
                self._connection.send(statement, references=free)
        return len(free)

    async def has_payments(self, business_id: str) -> bool:
        return bool(await self._connection.value(sql.HAS_PAYMENTS, business_id=business_id))

    async def under_way(self, business_id: str, limit: int) -> dict[str, str]:
        """Payments on their way by reference, each with all that is found by it."""
        rows = await self._connection.rows(sql.UNDER_WAY, business_id=business_id, limit=limit)
        return dict(rows)

    async def forget_arrivals(self, references: Iterable[str]) -> None:
        """Nothing is kept of them but where they went."""
        self._connection.send(sql.ARRIVED, references=list(references))

    async def belongings(self, business_id: str) -> Any:
        """Rows of its keys, its members and what its endpoints have counted."""
        return await self._connection.value(sql.BELONGINGS, business_id=business_id)

    async def leave(self, business_id: str) -> bool:
        """Nothing is kept but where the business and its keys went; False, and nothing is changed, while a payment is
        here."""
        await self._connection.row(sql.LOCK_BUSINESS, business_id=business_id)
        if await self.has_payments(business_id):
            return False
        for statement in sql.LEAVE:
            self._connection.send(statement, business_id=business_id)
        return True


class ArrivalRows(PostgresRepository):
    """A business in the cell where it arrives. `gateways` are the ids here of the other cell's."""

    async def prepare(self, move: BusinessMove, profile: Any, gateways: Mapping[str, str]) -> None:
        """Makes the business, closed as it is where it comes from; nothing where it is there already."""
        if await self._connection.row(arrivals.PREPARE_BUSINESS, profile=profile) is None:
            return
        self._connection.send(arrivals.PREPARE_SETTINGS, profile=profile, gateways=json.dumps(dict(gateways)))
        self._connection.send(arrivals.PREPARE_ENDPOINTS, profile=profile)
        self._connection.send(arrivals.ARRIVE, business_id=move.business_id, cell=move.cell, at=move.at)

    async def receive(self, payments: Iterable[str], gateways: Mapping[str, str]) -> int:
        """Adds those that are not there; how many."""
        packed, here = _array(payments), json.dumps(dict(gateways))
        rows = await self._connection.rows(arrivals.RECEIVE, payments=packed, gateways=here)
        if rows:
            references, grown, anomalies, archived = zip(*rows, strict=True)
            self._connection.send(arrivals.GROWN, payments=_array(grown))
            self._connection.send(arrivals.MEET_AGAIN, references=list(references))
            self._connection.send(arrivals.WORKED_OFF, anomalies=_array(anomalies))
            self._connection.send(arrivals.PARTS_ARRIVE, archived=_array(archived))
            self._connection.send(arrivals.ARCHIVED_ARRIVE, archived=_array(archived))
            self._connection.send(arrivals.BACK_AGAIN, references=list(references))
        return len(rows)

    async def receive_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Adds those that are not there."""
        for entry in entries:
            self._connection.send(ADD_AUDIT, **ENTRY.values(entry))

    async def open(self, business_id: str, belongings: Any) -> bool:
        """Its keys and members hold from now on; False where they did before."""
        if await self._connection.row(arrivals.OPEN, business_id=business_id) is None:
            return False
        for statement in arrivals.MOVE_IN:
            self._connection.send(statement, belongings=belongings)
        return True


def _array(documents: Iterable[str]) -> str:
    return f"[{','.join(documents)}]"
