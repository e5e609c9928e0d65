"""What businesses chose among the gateways."""

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, false, func, select, true, update
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.repositories.businesses import BUSINESS, SEARCHED, escape_like
from payagg.adapters.postgres.repositories.gateways import ALL, GATEWAY
from payagg.adapters.postgres.repositories.provider_events import ALL_HEALTH, HEALTH
from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, in_text, parameters
from payagg.adapters.postgres.schema.accounts import business_gateways, businesses
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.gateways import GatewayChoices, GatewayMerchant
from payagg.domain.business import BusinessStatus
from payagg.domain.gateway import BusinessGateway

SETTINGS = RowMap(BusinessGateway, business_gateways)
OVERRIDES_MAX = 10_000
_IS_ACTIVE = businesses.c.status == in_text(BusinessStatus.ACTIVE.value)
_OF_GATEWAY = business_gateways.c.gateway_id == bindparam("gateway_id")
# Code point order, so that a page is the same whatever locale the database was made with.
_BY_NAME = (businesses.c.name.collate("C"), businesses.c.id)
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


def _choice_filter(is_searched: bool) -> ColumnElement[bool]:
    return and_(_IS_ACTIVE, SEARCHED) if is_searched else _IS_ACTIVE


@cache
def _merchants(is_searched: bool) -> Statement:
    own = and_(business_gateways.c.business_id == businesses.c.id, _OF_GATEWAY)
    return Statement(
        _MERCHANTS.select_from(businesses.outerjoin(business_gateways, own))
        .where(_choice_filter(is_searched))
        .order_by(*_BY_NAME)
        .offset(bindparam("offset"))
        .limit(bindparam("limit"))
    )


@cache
def _merchants_count(is_searched: bool) -> Statement:
    return Statement(select(func.count()).select_from(businesses).where(_choice_filter(is_searched)))


OF_BUSINESS = Statement(select(*SETTINGS.columns).where(business_gateways.c.business_id == bindparam("business_id")))
CLEAR_DEFAULT = Statement(
    update(business_gateways)
    .where(
        business_gateways.c.business_id == bindparam("business_id"),
        business_gateways.c.gateway_id != bindparam("gateway_id"),
        business_gateways.c.is_default,
    )
    .values(is_default=false(), updated_at=bindparam("updated_at"))
)


def _save_settings() -> Statement:
    added = insert(business_gateways).values(parameters(*SETTINGS.names))
    key = ("business_id", "gateway_id")
    return Statement(
        added.on_conflict_do_update(
            index_elements=key, set_={name: added.excluded[name] for name in SETTINGS.names if name not in key}
        )
    )


SAVE_SETTINGS = _save_settings()


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
        is_searched, searched = search is not None, escape_like(search or "")
        rows = await self._connection.rows(
            _merchants(is_searched), gateway_id=gateway_id, search=searched, offset=offset, limit=limit
        )
        total = await self._connection.value(_merchants_count(is_searched), search=searched)
        return [_merchant(row) for row in rows], int(total or 0)

    async def settings(self, business_id: str) -> dict[str, BusinessGateway]:
        found = SETTINGS.all(await self._connection.rows(OF_BUSINESS, business_id=business_id))
        return {own.gateway_id: own for own in found}

    async def save(self, settings: BusinessGateway) -> None:
        values = SETTINGS.values(settings)
        if settings.is_default:
            self._connection.send(CLEAR_DEFAULT, **values)
        self._connection.send(SAVE_SETTINGS, **values)
