"""Requests to end a payment by hand, as rows."""

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, in_text, parameters
from payagg.adapters.postgres.schema.payments import resolutions
from payagg.adapters.postgres.statement import Statement
from payagg.domain.resolution import Resolution

RESOLUTION = RowMap(Resolution, resolutions)
OF_PAYMENT_MAX = 100
CONFIRMED = ("confirmed_by", "confirmed_at")

ADD = Statement(insert(resolutions).values(parameters(*RESOLUTION.names)))
_OWN = select(*RESOLUTION.columns).where(resolutions.c.reference == bindparam("reference"))
LATEST = Statement(_OWN.order_by(resolutions.c.id.desc()).limit(in_text(1)))
OF_PAYMENT = Statement(_OWN.order_by(resolutions.c.id).limit(in_text(OF_PAYMENT_MAX)))
CONFIRM = Statement(
    update(resolutions)
    .where(resolutions.c.reference == bindparam("reference"), resolutions.c.id == bindparam("id"))
    .values(parameters(*CONFIRMED))
)


class PostgresResolutions(PostgresRepository):
    async def add(self, resolution: Resolution) -> None:
        self._connection.send(ADD, **RESOLUTION.values(resolution))

    async def latest(self, reference: str) -> Resolution | None:
        return RESOLUTION.from_row(await self._connection.row(LATEST, reference=reference))

    async def of_payment(self, reference: str) -> list[Resolution]:
        return RESOLUTION.all(await self._connection.rows(OF_PAYMENT, reference=reference))

    async def confirm(self, resolution: Resolution) -> None:
        changes = {name: getattr(resolution, name) for name in CONFIRMED}
        self._connection.send(CONFIRM, reference=resolution.reference, id=resolution.id, **changes)
