"""Who manages which business."""

from typing import Any

from sqlalchemy import and_, bindparam, delete, literal, select
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.repositories.businesses import BUSINESS, LOCK
from payagg.adapters.postgres.repositories.revocations import REVOKED
from payagg.adapters.postgres.repositories.rows import PostgresRepository, in_text, parameters
from payagg.adapters.postgres.schema.accounts import businesses, members
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.accounts import Membership
from payagg.domain.business import MANAGERS, Business, Role

MANAGED_MAX = 1_000
_MEMBER = (members.c.business_id == bindparam("business_id"), members.c.subject == bindparam("subject"))
ROLE = Statement(select(members.c.role).where(*_MEMBER))
_ONE = select(literal(1)).subquery()  # a row whatever there is, since the token is asked about, too
FIND = Statement(
    select(REVOKED, members.c.role, *BUSINESS.columns)
    .select_from(_ONE)
    .join(businesses, businesses.c.id == bindparam("business_id"), isouter=True)
    .join(members, and_(*_MEMBER), isouter=True)
)
MANAGED = Statement(
    select(*BUSINESS.columns, members.c.role)
    .join(members, members.c.business_id == businesses.c.id)
    .where(members.c.subject == bindparam("subject"))
    .where(members.c.role.in_([in_text(role.value) for role in sorted(MANAGERS, key=lambda role: role.value)]))
    .order_by(businesses.c.id)
    .limit(in_text(MANAGED_MAX))
)
MEMBERS = Statement(
    select(members.c.subject, members.c.role)
    .where(members.c.business_id == bindparam("business_id"))
    .order_by(members.c.subject.collate("C"))
)
_NEW_MEMBER = insert(members).values(parameters("business_id", "subject", "role"))
SET_MEMBER = Statement(
    _NEW_MEMBER.on_conflict_do_update(
        index_elements=["business_id", "subject"], set_={"role": _NEW_MEMBER.excluded.role}
    )
)
REMOVE_MEMBER = Statement(delete(members).where(*_MEMBER))


def membership(row: Any) -> Membership:
    is_revoked, role, *business = row
    return Membership(is_revoked, role and Role(role), BUSINESS.load(business) if business[0] is not None else None)


class PostgresMembers(PostgresRepository):
    async def managed_by(self, subject: str) -> list[tuple[Business, Role]]:
        rows = await self._connection.rows(MANAGED, subject=subject)
        return [(BUSINESS.load(row[:-1]), Role(row[-1])) for row in rows]

    async def lock_business(self, business_id: str, subject: str) -> tuple[Business | None, Role | None]:
        asked = (LOCK, {"id": business_id}), (ROLE, {"business_id": business_id, "subject": subject})
        found, roles = await self._connection.all(*asked)
        return BUSINESS.from_row(next(iter(found), None)), next((Role(role) for (role,) in roles), None)

    async def of_business(self, business_id: str) -> dict[str, Role]:
        rows = await self._connection.rows(MEMBERS, business_id=business_id)
        return {subject: Role(role) for subject, role in rows}

    async def add(self, business_id: str, subject: str, role: Role) -> None:
        self._connection.send(SET_MEMBER, business_id=business_id, subject=subject, role=role.value)

    async def remove(self, business_id: str, subject: str) -> None:
        self._connection.send(REMOVE_MEMBER, business_id=business_id, subject=subject)
