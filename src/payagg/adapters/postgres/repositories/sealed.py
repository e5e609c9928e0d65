"""Every column of encrypted data, for `payagg reseal`."""

from sqlalchemy import LargeBinary, bindparam, select, update

from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.schema.accounts import gateways
from payagg.adapters.postgres.schema.webhooks import webhook_endpoints
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.upkeep import SealedBlob, SealedKind

COLUMNS = {
    SealedKind.GATEWAY_CREDENTIALS: gateways.c.credentials,
    SealedKind.REPLACED_SECRETS: gateways.c.replaced_secrets,
    SealedKind.ENDPOINT_CURRENT: webhook_endpoints.c.secret,
    SealedKind.ENDPOINT_PREVIOUS: webhook_endpoints.c.previous_secret,
}
PAGE = {
    kind: Statement(
        select(column.table.c.id, column)
        .where(column.table.c.id > bindparam("after"), column.is_not(None))
        .order_by(column.table.c.id)
        .limit(bindparam("limit"))
    )
    for kind, column in COLUMNS.items()
}
# Under the row's lock the condition sees what was committed last, so that a change of the same moment stays.
REPLACE = {
    kind: Statement(
        update(column.table)
        .where(column.table.c.id == bindparam("owner_id"), column == bindparam("before", type_=LargeBinary))
        .values({column.name: bindparam("resealed", type_=LargeBinary)})
        .returning(column.table.c.id)
    )
    for kind, column in COLUMNS.items()
}


class PostgresSealed:
    def __init__(self, connection: StatementConnection) -> None:
        self._connection = connection

    async def page(self, kind: SealedKind, after: str, limit: int) -> list[SealedBlob]:
        rows = await self._connection.rows(PAGE[kind], after=after, limit=limit)
        return [SealedBlob(id, blob) for id, blob in rows]

    async def replace(self, kind: SealedKind, owner_id: str, before: bytes, after: bytes) -> bool:
        values = {"owner_id": owner_id, "before": before, "resealed": after}
        return await self._connection.row(REPLACE[kind], **values) is not None
