"""Gateways and what businesses chose among them, as rows."""

# ruff: noqa: S608 - our own words

from datetime import datetime
from functools import cache
from typing import Any

from payagg.adapters.postgres.repositories.accounts import BUSINESS, SEARCHED, escape_like
from payagg.adapters.postgres.repositories.provider_events import ALL_HEALTH, HEALTH
from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.gateways import GatewayChoices, GatewayMerchant
from payagg.domain.business_gateway import BusinessGateway
from payagg.domain.gateway import Gateway, GatewayStatus

GATEWAY = RowMap(Gateway, "gateways", status=GatewayStatus)
DRAINS_MAX = 100
WIPES_MAX = 100

_LIVING = "status <> 'DELETED'"
ALL = GATEWAY.query(f"WHERE {_LIVING} ORDER BY display_order, slug")
EVERYTHING = GATEWAY.query("ORDER BY id")
GET = GATEWAY.query(f"WHERE id = :id AND {_LIVING}")
LOCK = GATEWAY.query(f"WHERE id = :id AND {_LIVING} FOR NO KEY UPDATE")
OF_SLUG = GATEWAY.query(f"WHERE slug = :slug AND {_LIVING}")
GET_ANY = GATEWAY.query("WHERE id = :id")
SETTLING = GATEWAY.query(f"""
WHERE slug = :slug AND ({_LIVING} OR credentials IS NOT NULL OR replaced_secrets IS NOT NULL)
ORDER BY {_LIVING} DESC, updated_at DESC, id DESC
""")
TO_WIPE = GATEWAY.query(f"""
WHERE (status = 'DELETED' AND credentials IS NOT NULL) OR replaced_secrets_until <= :now
ORDER BY updated_at, id LIMIT {WIPES_MAX} FOR NO KEY UPDATE SKIP LOCKED
""")
DRAINING = GATEWAY.query(f"""
WHERE status = 'DRAINING' AND drain_ends_at <= :now
ORDER BY drain_ends_at LIMIT {DRAINS_MAX} FOR NO KEY UPDATE SKIP LOCKED
""")
ADD = Statement(GATEWAY.insert().on_conflict_do_nothing().returning(GATEWAY.table.c.id))
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


SETTINGS = RowMap(BusinessGateway, "business_gateways")
OVERRIDES_MAX = 10_000
_IS_ACTIVE = "businesses.status = 'ACTIVE'"
_OF_GATEWAY = "business_gateways.gateway_id = :gateway_id"
# As people read, and code points where that leaves two alike: a page is the same whatever collation the database has.
_BY_NAME = 'lower(businesses.name) COLLATE "C", businesses.name COLLATE "C", businesses.id'
_OWN = "businesses.id = business_gateways.business_id"
ACTIVE_BUSINESSES = Statement(f"SELECT count(*) FROM businesses WHERE {_IS_ACTIVE}")
OVERRIDES = Statement(f"""
SELECT {BUSINESS.listed}, {SETTINGS.listed} FROM business_gateways JOIN businesses ON {_OWN}
WHERE {_OF_GATEWAY} AND NOT is_enabled ORDER BY {_BY_NAME} LIMIT {OVERRIDES_MAX}
""")


@cache
def _opt_outs(of_gateway: bool) -> Statement:
    return Statement(f"""
    SELECT gateway_id, count(*) FROM business_gateways JOIN businesses ON {_OWN}
    WHERE NOT is_enabled AND {_IS_ACTIVE} AND {_OF_GATEWAY if of_gateway else "true"} GROUP BY gateway_id
    """)


# Every name has the empty text in it.
MERCHANTS = Statement(f"""
SELECT {BUSINESS.listed}, {SETTINGS.listed} FROM businesses LEFT JOIN business_gateways ON {_OWN} AND {_OF_GATEWAY}
WHERE {_IS_ACTIVE} AND {SEARCHED} ORDER BY {_BY_NAME} OFFSET :offset LIMIT :limit
""")
COUNT_MERCHANTS = Statement(f"SELECT count(*) FROM businesses WHERE {_IS_ACTIVE} AND {SEARCHED}")
OF_BUSINESS = SETTINGS.query("WHERE business_id = :business_id")
CLEAR_DEFAULT = Statement("""
UPDATE business_gateways SET is_default = false, updated_at = :updated_at
WHERE business_id = :business_id AND gateway_id <> :gateway_id AND is_default
""")
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

    async def save(self, settings: BusinessGateway) -> None:
        values = SETTINGS.values(settings)
        if settings.is_default:
            self._connection.send(CLEAR_DEFAULT, **values)
        self._connection.send(SAVE_SETTINGS, **values)
