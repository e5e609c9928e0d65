"""Gateways and what businesses chose for them, as rows."""

from datetime import datetime

from sqlalchemy import and_, bindparam, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, in_text, parameters
from payagg.adapters.postgres.schema.accounts import gateways
from payagg.adapters.postgres.statement import Statement
from payagg.domain.gateway import Gateway, GatewayStatus

GATEWAY = RowMap(Gateway, gateways, status=GatewayStatus)
DRAINS_MAX = 100
WIPES_MAX = 100

_DELETED = in_text(GatewayStatus.DELETED.value)
_LIVING = gateways.c.status != _DELETED
_DELETED_WITH_SECRETS = and_(
    gateways.c.status == _DELETED,
    or_(gateways.c.credentials.is_not(None), gateways.c.replaced_secrets.is_not(None)),
)
_DELETED_WITH_CREDENTIALS = and_(gateways.c.status == _DELETED, gateways.c.credentials.is_not(None))
_GATEWAYS = select(*GATEWAY.columns)
_BY_ID = gateways.c.id == bindparam("id")
_BY_SLUG = gateways.c.slug == bindparam("slug")
ALL = Statement(_GATEWAYS.where(_LIVING).order_by(gateways.c.display_order, gateways.c.slug))
EVERYTHING = Statement(_GATEWAYS.order_by(gateways.c.id))
GET = Statement(_GATEWAYS.where(_BY_ID, _LIVING))
LOCK = Statement(_GATEWAYS.where(_BY_ID, _LIVING).with_for_update(key_share=True))
OF_SLUG = Statement(_GATEWAYS.where(_BY_SLUG, _LIVING))
GET_ANY = Statement(_GATEWAYS.where(_BY_ID))
SETTLING = Statement(
    _GATEWAYS.where(_BY_SLUG, or_(_LIVING, _DELETED_WITH_SECRETS)).order_by(
        _LIVING.desc(), gateways.c.updated_at.desc(), gateways.c.id.desc()
    )
)
TO_WIPE = Statement(
    _GATEWAYS.where(or_(_DELETED_WITH_CREDENTIALS, gateways.c.replaced_secrets_until <= bindparam("now")))
    .order_by(gateways.c.updated_at, gateways.c.id)
    .limit(in_text(WIPES_MAX))
    .with_for_update(skip_locked=True, key_share=True)
)
DRAINING = Statement(
    _GATEWAYS.where(
        gateways.c.status == in_text(GatewayStatus.DRAINING.value), gateways.c.drain_ends_at <= bindparam("now")
    )
    .order_by(gateways.c.drain_ends_at)
    .limit(in_text(DRAINS_MAX))
    .with_for_update(skip_locked=True, key_share=True)
)
ADD = Statement(insert(gateways).values(parameters(*GATEWAY.names)).on_conflict_do_nothing().returning(gateways.c.id))
SAVE = Statement(update(gateways).where(_BY_ID).values(parameters(*(name for name in GATEWAY.names if name != "id"))))


class PostgresGateways(PostgresRepository):
    async def all(self) -> list[Gateway]:
        return GATEWAY.all(await self._connection.rows(ALL))

    async def get(self, gateway_id: str) -> Gateway | None:
        return GATEWAY.from_row(await self._connection.row(GET, id=gateway_id))

    async def lock(self, gateway_id: str) -> Gateway | None:
        return GATEWAY.from_row(await self._connection.row(LOCK, id=gateway_id))

    async def by_slug(self, slug: str) -> Gateway | None:
        return GATEWAY.from_row(await self._connection.row(OF_SLUG, slug=slug))

    async def get_any(self, gateway_id: str) -> Gateway | None:
        return GATEWAY.from_row(await self._connection.row(GET_ANY, id=gateway_id))

    async def everything(self) -> list[Gateway]:
        return GATEWAY.all(await self._connection.rows(EVERYTHING))

    async def to_wipe(self, now: datetime) -> list[Gateway]:
        return GATEWAY.all(await self._connection.rows(TO_WIPE, now=now))

    async def add(self, gateway: Gateway) -> bool:
        return await self._connection.row(ADD, **GATEWAY.values(gateway)) is not None

    async def save(self, gateway: Gateway) -> None:
        self._connection.send(SAVE, **GATEWAY.values(gateway))

    async def draining(self, now: datetime) -> list[Gateway]:
        return GATEWAY.all(await self._connection.rows(DRAINING, now=now))
