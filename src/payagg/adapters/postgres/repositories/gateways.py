"""Gateways and what businesses chose among them, as rows."""

from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import and_, bindparam, false, func, or_, select, true, update

from payagg.adapters.postgres.repositories.accounts import BUSINESS, SEARCHED, escape_like
from payagg.adapters.postgres.repositories.provider_events import ALL_HEALTH, HEALTH
from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, in_text
from payagg.adapters.postgres.schema.tables import business_gateways, businesses, gateways
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.gateways import GatewayChoices, GatewayMerchant
from payagg.domain.business import BusinessStatus
from payagg.domain.gateway import BusinessGateway, Gateway, GatewayStatus

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
ADD = Statement(GATEWAY.insert().on_conflict_do_nothing().returning(gateways.c.id))
SAVE = Statement(GATEWAY.update(*(name for name in GATEWAY.names if name != "id")))


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


SETTINGS = RowMap(BusinessGateway, business_gateways)
OVERRIDES_MAX = 10_000
_IS_ACTIVE = businesses.c.status == in_text(BusinessStatus.ACTIVE.value)
_OF_GATEWAY = business_gateways.c.gateway_id == bindparam("gateway_id")
# As people read, and code points where that leaves two alike: a page is the same whatever collation the database has.
_BY_NAME = (func.lower(businesses.c.name).collate("C"), businesses.c.name.collate("C"), businesses.c.id)
_MERCHANTS = select(*BUSINESS.columns, *SETTINGS.columns)
ACTIVE_BUSINESSES = Statement(select(func.count()).select_from(businesses).where(_IS_ACTIVE))
OVERRIDES = Statement(
    _MERCHANTS.join_from(business_gateways, businesses, businesses.c.id == business_gateways.c.business_id)
    .where(_OF_GATEWAY, ~business_gateways.c.is_enabled)
    .order_by(*_BY_NAME)
    .limit(in_text(OVERRIDES_MAX))
)


@cache
def _opt_outs(of_gateway: bool) -> Statement:
    return Statement(
        select(business_gateways.c.gateway_id, func.count())
        .join(businesses, businesses.c.id == business_gateways.c.business_id)
        .where(~business_gateways.c.is_enabled, _IS_ACTIVE, _OF_GATEWAY if of_gateway else true())
        .group_by(business_gateways.c.gateway_id)
    )


# Every name has the empty text in it.
MERCHANTS = Statement(
    _MERCHANTS.select_from(
        businesses.outerjoin(business_gateways, and_(business_gateways.c.business_id == businesses.c.id, _OF_GATEWAY))
    )
    .where(_IS_ACTIVE, SEARCHED)
    .order_by(*_BY_NAME)
    .offset(bindparam("offset"))
    .limit(bindparam("limit"))
)
COUNT_MERCHANTS = Statement(select(func.count()).select_from(businesses).where(_IS_ACTIVE, SEARCHED))
OF_BUSINESS = Statement(SETTINGS.select("business_id"))
CLEAR_DEFAULT = Statement(
    update(business_gateways)
    .where(
        business_gateways.c.business_id == bindparam("business_id"),
        business_gateways.c.gateway_id != bindparam("gateway_id"),
        business_gateways.c.is_default,
    )
    .values(is_default=false(), updated_at=bindparam("updated_at"))
)
SAVE_SETTINGS = Statement(SETTINGS.upsert("business_id", "gateway_id"))


def _merchant(row: Any) -> GatewayMerchant:
    business, own = row[: len(BUSINESS.names)], row[len(BUSINESS.names) :]
    # The first of `own` is the business's id, which only a row of its own has.
    return GatewayMerchant(BUSINESS.load(business), None if own[0] is None else SETTINGS.load(own))


class PostgresGatewayChoices(PostgresRepository):
    async def of_business(self, business_id: str) -> GatewayChoices:
        gateways_, settings, health = await self._connection.all(
            (ALL, {}), (OF_BUSINESS, {"business_id": business_id}), (ALL_HEALTH, {})
        )
        own = {one.gateway_id: one for one in SETTINGS.all(settings)}
        return GatewayChoices(GATEWAY.all(gateways_), own, HEALTH.all(health))

    async def active_businesses(self) -> int:
        return int(await self._connection.value(ACTIVE_BUSINESSES) or 0)

    async def opt_outs(self, gateway_id: str | None = None) -> dict[str, int]:
        return dict(await self._connection.rows(_opt_outs(gateway_id is not None), gateway_id=gateway_id))

    async def overrides(self, gateway_id: str) -> list[GatewayMerchant]:
        return [_merchant(row) for row in await self._connection.rows(OVERRIDES, gateway_id=gateway_id)]

    async def merchants(
        self, gateway_id: str, search: str | None, offset: int, limit: int
    ) -> tuple[list[GatewayMerchant], int]:
        searched = escape_like(search or "")
        rows = await self._connection.rows(
            MERCHANTS, gateway_id=gateway_id, search=searched, offset=offset, limit=limit
        )
        total = await self._connection.value(COUNT_MERCHANTS, search=searched)
        return [_merchant(row) for row in rows], int(total or 0)

    async def settings(self, business_id: str) -> dict[str, BusinessGateway]:
        found = SETTINGS.all(await self._connection.rows(OF_BUSINESS, business_id=business_id))
        return {own.gateway_id: own for own in found}

    async def save(self, settings: BusinessGateway) -> None:
        values = SETTINGS.values(settings)
        if settings.is_default:
            self._connection.send(CLEAR_DEFAULT, **values)
        self._connection.send(SAVE_SETTINGS, **values)
