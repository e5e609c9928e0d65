"""Businesses, their members and their API keys, as rows."""

from collections.abc import Collection
from functools import cache

from sqlalchemy import ARRAY, Text, any_, bindparam, func, select, true, update
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, in_text, parameters
from payagg.adapters.postgres.schema.accounts import api_keys, businesses
from payagg.adapters.postgres.statement import Statement
from payagg.domain.api_key import ApiKey, ApiKeyStatus
from payagg.domain.business import Business, BusinessStatus, KycStatus
from payagg.domain.values import Environment

BUSINESS = RowMap(Business, businesses, status=BusinessStatus, kyc_status=KycStatus)
API_KEY = RowMap(ApiKey, api_keys, environment=Environment, status=ApiKeyStatus)
# What `save` may change of a business, and of a key.
MOVING = ("name", "status", "kyc_status")
# `last_used_at` is moved by `touch_key` alone; writing it here could set it back.
KEY_MOVING = ("name", "status", "revoked_at")

_BY_ID = businesses.c.id == bindparam("id")
GET = Statement(select(*BUSINESS.columns).where(_BY_ID))
LOCK = Statement(select(*BUSINESS.columns).where(_BY_ID).with_for_update(key_share=True))
NAMES = Statement(
    select(businesses.c.id, businesses.c.name).where(businesses.c.id == any_(bindparam("ids", type_=ARRAY(Text))))
)
COUNT = Statement(select(func.count()).select_from(businesses))
ADD = Statement(insert(businesses).values(parameters(*BUSINESS.names, "updated_at")))
SAVE = Statement(update(businesses).where(_BY_ID).values(parameters(*MOVING) | {"updated_at": func.clock_timestamp()}))
# The parameter is what `escape_like` makes of the text.
SEARCHED = businesses.c.name.icontains(bindparam("search", type_=Text), escape="/")


def escape_like(search: str) -> str:
    """The text as LIKE finds it literally."""
    return search.replace("/", "//").replace("%", "/%").replace("_", "/_")


@cache
def _list_statement(is_searched: bool, is_after: bool) -> Statement:
    return Statement(
        select(*BUSINESS.columns)
        .where(SEARCHED if is_searched else true())
        .where(businesses.c.id < bindparam("after") if is_after else true())
        .order_by(businesses.c.id.desc())
        .limit(bindparam("limit"))
    )


GET_KEY = Statement(
    select(*API_KEY.columns)
    .where(api_keys.c.business_id == bindparam("business_id"), api_keys.c.id == bindparam("id"))
    .with_for_update(key_share=True)
)
_NEWEST = (func.coalesce(api_keys.c.revoked_at, api_keys.c.created_at).desc(), api_keys.c.id.desc())
_RANKED = (
    select(
        *API_KEY.columns,
        func.row_number()
        .over(partition_by=(api_keys.c.environment, api_keys.c.status), order_by=_NEWEST)
        .label("rank"),
    )
    .where(api_keys.c.business_id == bindparam("business_id"))
    .subquery()
)
KEYS = Statement(
    select(*(_RANKED.c[name] for name in API_KEY.names))
    .where((_RANKED.c.status == in_text(ApiKeyStatus.ACTIVE.value)) | (_RANKED.c.rank <= bindparam("revoked_max")))
    .order_by(_RANKED.c.status, _RANKED.c.rank)  # ACTIVE stands before REVOKED
)
COUNT_ACTIVE = Statement(
    select(func.count()).where(
        api_keys.c.business_id == bindparam("business_id"),
        api_keys.c.environment == bindparam("environment"),
        api_keys.c.status == in_text(ApiKeyStatus.ACTIVE.value),
    )
)
ADD_KEY = Statement(insert(api_keys).values(parameters(*API_KEY.names)))
SAVE_KEY = Statement(update(api_keys).where(api_keys.c.id == bindparam("id")).values(parameters(*KEY_MOVING)))


class PostgresBusinesses(PostgresRepository):
    async def get(self, business_id: str) -> Business | None:
        return BUSINESS.from_row(await self._connection.row(GET, id=business_id))

    async def lock(self, business_id: str) -> Business | None:
        return BUSINESS.from_row(await self._connection.row(LOCK, id=business_id))

    async def names(self, business_ids: Collection[str]) -> dict[str, str]:
        return dict(await self._connection.rows(NAMES, ids=list(business_ids)))

    async def add(self, business: Business) -> None:
        self._connection.send(ADD, updated_at=business.created_at, **BUSINESS.values(business))

    async def save(self, business: Business) -> None:
        self._connection.send(SAVE, **BUSINESS.values(business))

    async def count(self) -> int:
        return int(await self._connection.value(COUNT) or 0)

    async def list_businesses(self, search: str | None, after: str | None, limit: int) -> list[Business]:
        listed = _list_statement(search is not None, after is not None)
        rows = await self._connection.rows(listed, search=escape_like(search or ""), after=after, limit=limit)
        return BUSINESS.all(rows)


class PostgresApiKeys(PostgresRepository):
    async def get(self, business_id: str, key_id: str) -> ApiKey | None:
        return API_KEY.from_row(await self._connection.row(GET_KEY, business_id=business_id, id=key_id))

    async def list_keys(self, business_id: str, revoked_max: int) -> list[ApiKey]:
        return API_KEY.all(await self._connection.rows(KEYS, business_id=business_id, revoked_max=revoked_max))

    async def count_active(self, business_id: str, environment: Environment) -> int:
        of = {"business_id": business_id, "environment": environment.value}
        return int(await self._connection.value(COUNT_ACTIVE, **of) or 0)

    async def add(self, key: ApiKey) -> None:
        self._connection.send(ADD_KEY, **API_KEY.values(key))

    async def save(self, key: ApiKey) -> None:
        self._connection.send(SAVE_KEY, **API_KEY.values(key))
