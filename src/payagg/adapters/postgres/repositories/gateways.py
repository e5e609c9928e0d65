"""Gateways and what businesses chose for them, as rows."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.schema.tables import business_gateways, businesses, gateways
from payagg.application.ports import GatewayMerchant
from payagg.domain.business import Business, BusinessStatus, KycStatus
from payagg.domain.checks import restored
from payagg.domain.gateway import BusinessGateway, Gateway, GatewayStatus

OVERRIDES_MAX = 10_000
DRAINS_MAX = 100
WIPES_MAX = 100
_LIVING = gateways.c.status != GatewayStatus.DELETED.value
_DELETED_WITH_SECRETS = and_(
    gateways.c.status == GatewayStatus.DELETED.value,
    or_(gateways.c.credentials.is_not(None), gateways.c.replaced_secrets.is_not(None)),
)
_ACTIVE_BUSINESS = businesses.c.status == BusinessStatus.ACTIVE.value
# Code point order, so that a page is the same whatever locale the database was made with.
_BY_NAME = (businesses.c.name.collate("C"), businesses.c.id)
_BUSINESS = (
    businesses.c.id.label("of_id"),
    businesses.c.name,
    businesses.c.status,
    businesses.c.kyc_status,
    businesses.c.created_at.label("of_created_at"),
)


class PostgresGateways:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def all(self) -> list[Gateway]:
        query = select(gateways).where(_LIVING).order_by(gateways.c.display_order, gateways.c.slug)
        return [_gateway(row) for row in await self._connection.execute(query)]

    async def get(self, gateway_id: str) -> Gateway | None:
        return await self._one(select(gateways).where(gateways.c.id == gateway_id, _LIVING))

    async def lock(self, gateway_id: str) -> Gateway | None:
        return await self._one(
            select(gateways).where(gateways.c.id == gateway_id, _LIVING).with_for_update(key_share=True)
        )

    async def by_slug(self, slug: str) -> Gateway | None:
        return await self._one(select(gateways).where(gateways.c.slug == slug, _LIVING))

    async def get_any(self, gateway_id: str) -> Gateway | None:
        return await self._one(select(gateways).where(gateways.c.id == gateway_id))

    async def settling(self, slug: str) -> list[Gateway]:
        query = (
            select(gateways)
            .where(gateways.c.slug == slug, or_(_LIVING, _DELETED_WITH_SECRETS))
            .order_by(_LIVING.desc(), gateways.c.updated_at.desc(), gateways.c.id.desc())
        )
        return [_gateway(row) for row in await self._connection.execute(query)]

    async def to_wipe(self, now: datetime) -> list[Gateway]:
        query = (
            select(gateways)
            .where(or_(_DELETED_WITH_SECRETS, gateways.c.replaced_secrets_until <= now))
            .order_by(gateways.c.updated_at, gateways.c.id)
            .limit(WIPES_MAX)
            .with_for_update(skip_locked=True, key_share=True)
        )
        return [_gateway(row) for row in await self._connection.execute(query)]

    async def add(self, gateway: Gateway) -> bool:
        statement = upsert(gateways).values(**_columns(gateway)).on_conflict_do_nothing().returning(gateways.c.id)
        return (await self._connection.execute(statement)).first() is not None

    async def save(self, gateway: Gateway) -> None:
        await self._connection.execute(update(gateways).where(gateways.c.id == gateway.id).values(**_columns(gateway)))

    async def draining(self, now: datetime) -> list[Gateway]:
        query = (
            select(gateways)
            .where(gateways.c.status == GatewayStatus.DRAINING.value, gateways.c.drain_ends_at <= now)
            .order_by(gateways.c.drain_ends_at)
            .limit(DRAINS_MAX)
            .with_for_update(skip_locked=True, key_share=True)
        )
        return [_gateway(row) for row in await self._connection.execute(query)]

    async def active_businesses(self) -> int:
        query = select(func.count()).select_from(businesses).where(_ACTIVE_BUSINESS)
        return int(await self._connection.scalar(query) or 0)

    async def opt_outs(self, gateway_id: str | None = None) -> dict[str, int]:
        query = (
            select(business_gateways.c.gateway_id, func.count())
            .join(businesses, businesses.c.id == business_gateways.c.business_id)
            .where(~business_gateways.c.is_enabled, _ACTIVE_BUSINESS)
            .group_by(business_gateways.c.gateway_id)
        )
        if gateway_id is not None:
            query = query.where(business_gateways.c.gateway_id == gateway_id)
        return {row[0]: row[1] for row in await self._connection.execute(query)}

    async def overrides(self, gateway_id: str) -> list[GatewayMerchant]:
        query = (
            select(*_BUSINESS, business_gateways)
            .join(businesses, businesses.c.id == business_gateways.c.business_id)
            .where(business_gateways.c.gateway_id == gateway_id, ~business_gateways.c.is_enabled)
            .order_by(*_BY_NAME)
            .limit(OVERRIDES_MAX)
        )
        return [_merchant(row) for row in await self._connection.execute(query)]

    async def merchants(
        self, gateway_id: str, search: str | None, offset: int, limit: int
    ) -> tuple[list[GatewayMerchant], int]:
        wanted = _ACTIVE_BUSINESS
        if search is not None:
            wanted = and_(wanted, businesses.c.name.icontains(search, autoescape=True))
        own = and_(business_gateways.c.business_id == businesses.c.id, business_gateways.c.gateway_id == gateway_id)
        query = (
            select(*_BUSINESS, business_gateways)
            .select_from(businesses.outerjoin(business_gateways, own))
            .where(wanted)
            .order_by(*_BY_NAME)
            .offset(offset)
            .limit(limit)
        )
        page = [_merchant(row) for row in await self._connection.execute(query)]
        total = await self._connection.scalar(select(func.count()).select_from(businesses).where(wanted))
        return page, int(total or 0)

    async def settings(self, business_id: str) -> dict[str, BusinessGateway]:
        query = select(business_gateways).where(business_gateways.c.business_id == business_id)
        rows = await self._connection.execute(query)
        return {row.gateway_id: restored(BusinessGateway, {**row._mapping}) for row in rows}

    async def save_settings(self, settings: BusinessGateway) -> None:
        if settings.is_default:
            await self._connection.execute(
                update(business_gateways)
                .where(
                    business_gateways.c.business_id == settings.business_id,
                    business_gateways.c.gateway_id != settings.gateway_id,
                    business_gateways.c.is_default,
                )
                .values(is_default=False, updated_at=settings.updated_at)
            )
        values = asdict(settings)
        statement = upsert(business_gateways).values(**values)
        await self._connection.execute(
            statement.on_conflict_do_update(
                index_elements=[business_gateways.c.business_id, business_gateways.c.gateway_id],
                set_={name: statement.excluded[name] for name in values if name not in ("business_id", "gateway_id")},
            )
        )

    async def _one(self, query: Any) -> Gateway | None:
        row = (await self._connection.execute(query)).first()
        return None if row is None else _gateway(row)


def _columns(gateway: Gateway) -> dict[str, Any]:
    return asdict(gateway) | {"status": gateway.status.value}


def _gateway(row: Row[Any]) -> Gateway:
    return restored(Gateway, {**row._mapping, "status": GatewayStatus(row.status)})


def _merchant(row: Row[Any]) -> GatewayMerchant:
    fields = {
        "id": row.of_id,
        "name": row.name,
        "status": BusinessStatus(row.status),
        "kyc_status": KycStatus(row.kyc_status),
        "created_at": row.of_created_at,
    }
    business = restored(Business, fields)
    if row.business_id is None:
        return GatewayMerchant(business, None)
    own = {column.name: row._mapping[column] for column in business_gateways.c}
    return GatewayMerchant(business, restored(BusinessGateway, own))
