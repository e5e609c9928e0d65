"""Businesses, their members and their API keys, as rows."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.repositories.rows import RowMap
from payagg.adapters.postgres.schema.tables import api_keys, businesses, members
from payagg.domain.api_key import ApiKey, ApiKeyStatus
from payagg.domain.business import Business, BusinessStatus, KycStatus, Role
from payagg.domain.values import Environment

BUSINESS = RowMap(Business, businesses, status=BusinessStatus, kyc_status=KycStatus)
API_KEY = RowMap(ApiKey, api_keys, environment=Environment, status=ApiKeyStatus)
ACTIVE_LISTED = 100  # far above the limit of five


class PostgresBusinesses:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self, business_id: str) -> Business | None:
        query = select(*BUSINESS.columns).where(businesses.c.id == business_id)
        row = (await self._connection.execute(query)).first()
        return BUSINESS.load(row) if row else None

    async def lock(self, business_id: str) -> Business | None:
        query = select(*BUSINESS.columns).where(businesses.c.id == business_id).with_for_update(key_share=True)
        row = (await self._connection.execute(query)).first()
        return BUSINESS.load(row) if row else None

    async def names(self, business_ids: Collection[str]) -> dict[str, str]:
        query = select(businesses.c.id, businesses.c.name).where(businesses.c.id.in_(business_ids))
        return {row.id: row.name for row in await self._connection.execute(query)}

    async def role(self, business_id: str, subject: str) -> Role | None:
        query = select(members.c.role).where(members.c.business_id == business_id, members.c.subject == subject)
        role = (await self._connection.execute(query)).scalar()
        return Role(role) if role else None

    async def add(self, business: Business) -> None:
        values = {**BUSINESS.values(business), "updated_at": business.created_at}
        await self._connection.execute(insert(businesses).values(**values))

    async def save(self, business: Business) -> None:
        values = {"name": business.name, "status": business.status.value, "kyc_status": business.kyc_status.value}
        await self._connection.execute(
            update(businesses).where(businesses.c.id == business.id).values(**values, updated_at=func.clock_timestamp())
        )

    async def listed(self, search: str | None, after: str | None, limit: int) -> list[Business]:
        query = select(*BUSINESS.columns).order_by(businesses.c.id.desc()).limit(limit)
        if search is not None:
            query = query.where(businesses.c.name.icontains(search, autoescape=True))
        if after is not None:
            query = query.where(businesses.c.id < after)
        return [BUSINESS.load(row) for row in await self._connection.execute(query)]

    async def members(self, business_id: str) -> dict[str, Role]:
        query = select(members.c.subject, members.c.role).where(members.c.business_id == business_id)
        rows = await self._connection.execute(query.order_by(members.c.subject.collate("C")))
        return {row.subject: Role(row.role) for row in rows}

    async def set_member(self, business_id: str, subject: str, role: Role) -> None:
        row = insert(members).values(business_id=business_id, subject=subject, role=role.value)
        await self._connection.execute(
            row.on_conflict_do_update(index_elements=["business_id", "subject"], set_={"role": role.value})
        )

    async def remove_member(self, business_id: str, subject: str) -> None:
        own = members.c
        await self._connection.execute(delete(members).where(own.business_id == business_id, own.subject == subject))


class PostgresApiKeys:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self, business_id: str, key_id: str) -> ApiKey | None:
        query = select(*API_KEY.columns).where(api_keys.c.business_id == business_id, api_keys.c.id == key_id)
        row = (await self._connection.execute(query.with_for_update(key_share=True))).first()
        return API_KEY.load(row) if row else None

    async def listed(self, business_id: str, environment: Environment, revoked_max: int) -> list[ApiKey]:
        active = self._of(business_id, environment, ApiKeyStatus.ACTIVE)
        active = active.order_by(api_keys.c.created_at.desc(), api_keys.c.id.desc()).limit(ACTIVE_LISTED)
        revoked = self._of(business_id, environment, ApiKeyStatus.REVOKED)
        revoked = revoked.order_by(api_keys.c.revoked_at.desc(), api_keys.c.id.desc()).limit(revoked_max)
        return [API_KEY.load(row) for query in (active, revoked) for row in await self._connection.execute(query)]

    async def count_active(self, business_id: str, environment: Environment) -> int:
        query = self._of(business_id, environment, ApiKeyStatus.ACTIVE).with_only_columns(func.count())
        return (await self._connection.execute(query)).scalar_one()

    async def add(self, key: ApiKey) -> None:
        await self._connection.execute(insert(api_keys).values(**API_KEY.values(key)))

    async def save(self, key: ApiKey) -> None:
        # `last_used_at` is moved by `touch_key` alone; writing it here could set it back.
        await self._connection.execute(
            update(api_keys)
            .where(api_keys.c.id == key.id)
            .values(name=key.name, status=key.status.value, revoked_at=key.revoked_at)
        )

    @staticmethod
    def _of(business_id: str, environment: Environment, status: ApiKeyStatus) -> "Select[Any]":
        return select(*API_KEY.columns).where(
            api_keys.c.business_id == business_id,
            api_keys.c.environment == environment.value,
            api_keys.c.status == status.value,
        )
