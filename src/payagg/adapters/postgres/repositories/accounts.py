"""Businesses, their members and keys, revoked tokens and the audit trail, as rows."""

from collections.abc import Collection
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    Text,
    and_,
    any_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, in_text, parameters
from payagg.adapters.postgres.repositories.webhook_events import id_at
from payagg.adapters.postgres.schema.tables import api_keys, audit, businesses, members, token_revocations
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.accounts import Membership
from payagg.domain.api_key import ApiKey, ApiKeyStatus
from payagg.domain.audit import ActorRealm, AuditEntry, AuditFilter
from payagg.domain.business import MANAGERS, Business, BusinessStatus, KycStatus, Role
from payagg.domain.payment_search import LATEST
from payagg.domain.revocation import Revocation, RevokedClaim
from payagg.domain.values import Environment

REVOCATION = RowMap(Revocation, token_revocations, claim=RevokedClaim)
_NEW = REVOCATION.insert()
REVOKE = Statement(
    _NEW.on_conflict_do_update(
        index_elements=["claim", "value"],
        set_={"issued_before": func.greatest(token_revocations.c.issued_before, _NEW.excluded.issued_before)},
    )
)
_ROW = token_revocations.c
REVOKED = or_(
    exists().where(_ROW.claim == in_text(RevokedClaim.TOKEN.value), _ROW.value == bindparam("token_id")),
    exists().where(
        _ROW.claim == in_text(RevokedClaim.SUBJECT.value),
        _ROW.value == bindparam("subject"),
        _ROW.issued_before > bindparam("issued_at"),
    ),
)
IS_REVOKED = Statement(select(REVOKED))


BUSINESS = RowMap(Business, businesses, status=BusinessStatus, kyc_status=KycStatus)
API_KEY = RowMap(ApiKey, api_keys, environment=Environment, status=ApiKeyStatus)
# What `save` may change of a business, and of a key.
MOVING = ("name", "status", "kyc_status")
# `last_used_at` is moved by `touch_key` alone; writing it here could set it back.
KEY_MOVING = ("name", "status", "revoked_at")

GET = Statement(BUSINESS.select("id"))
LOCK = Statement(BUSINESS.select("id").with_for_update(key_share=True))
NAMES = Statement(
    select(businesses.c.id, businesses.c.name).where(businesses.c.id == any_(bindparam("ids", type_=ARRAY(Text))))
)
COUNT = Statement(select(func.count()).select_from(businesses))
ADD = Statement(BUSINESS.insert().values(updated_at=bindparam("created_at")))
SAVE = Statement(BUSINESS.update(*MOVING).values(updated_at=func.clock_timestamp()))
# The parameter is what `escape_like` makes of the text.
SEARCHED = businesses.c.name.icontains(bindparam("search", type_=Text), escape="/")


def escape_like(search: str) -> str:
    """The text as LIKE finds it literally."""
    return search.replace("/", "//").replace("%", "/%").replace("_", "/_")


@cache
def _list_businesses(is_searched: bool, is_after: bool) -> Statement:
    return Statement(
        select(*BUSINESS.columns)
        .where(SEARCHED if is_searched else true())
        .where(businesses.c.id < bindparam("after") if is_after else true())
        .order_by(businesses.c.id.desc())
        .limit(bindparam("limit"))
    )


GET_KEY = Statement(API_KEY.select("business_id", "id").with_for_update(key_share=True))
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
ADD_KEY = Statement(API_KEY.insert())
SAVE_KEY = Statement(API_KEY.update(*KEY_MOVING))


class PostgresBusinesses(PostgresRepository):
    async def get(self, business_id: str) -> Business | None:
        return BUSINESS.from_row(await self._connection.row(GET, id=business_id))

    async def lock(self, business_id: str) -> Business | None:
        return BUSINESS.from_row(await self._connection.row(LOCK, id=business_id))

    async def names(self, business_ids: Collection[str]) -> dict[str, str]:
        return dict(await self._connection.rows(NAMES, ids=list(business_ids)))

    async def add(self, business: Business) -> None:
        self._connection.send(ADD, **BUSINESS.values(business))

    async def save(self, business: Business) -> None:
        self._connection.send(SAVE, **BUSINESS.values(business))

    async def count(self) -> int:
        return int(await self._connection.value(COUNT) or 0)

    async def list_businesses(self, search: str | None, after: str | None, limit: int) -> list[Business]:
        listed = _list_businesses(search is not None, after is not None)
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


MANAGED_MAX = 1_000
_MEMBER = (members.c.business_id == bindparam("business_id"), members.c.subject == bindparam("subject"))
ROLE = Statement(select(members.c.role).where(*_MEMBER))
_ONE = select(literal(1)).subquery()  # a row whatever there is, since the token is asked about, too
FIND_MEMBER = Statement(
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
SET_MEMBER = Statement(
    insert(members)
    .values(parameters("business_id", "subject", "role"))
    .on_conflict_do_update(index_elements=["business_id", "subject"], set_=parameters("role"))
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

    async def revoke(self, revocation: Revocation) -> None:
        self._connection.send(REVOKE, **REVOCATION.values(revocation))


ENTRY = RowMap(AuditEntry, audit, realm=ActorRealm)
TICK = timedelta(milliseconds=1)  # what an id tells of its instant
FIRST, LAST = "aud_", "aud_g"  # below and above every id
_BY_SELECTIVITY = ("object_id", "subject", "business_id", "action")  # each has an index together with the id

ADD_ENTRY = Statement(ENTRY.insert())


@cache
def _list_entries(filters: tuple[str, ...], is_since: bool, is_until: bool) -> Statement:
    own = audit.c
    low, high = bindparam("low", type_=Text), bindparam("high", type_=Text)
    query = select(*ENTRY.columns).limit(bindparam("limit"))
    if not filters:
        query = query.where(own.id >= low, own.id < high).order_by(own.id.desc())
    else:
        # As one range of the filter's own index: for "equal to" the server may walk the whole table by id, which takes
        # long when matches are rare.
        value, key = bindparam(filters[0], type_=Text), tuple_(own[filters[0]], own.id)
        query = query.where(key >= tuple_(value, low), key < tuple_(value, high))
        query = query.order_by(own[filters[0]].desc(), own.id.desc())
    for name in filters[1:]:
        query = query.where(own[name] == bindparam(name))
    if is_since:
        query = query.where(own.at >= bindparam("since"))
    if is_until:
        query = query.where(own.at < bindparam("until"))
    return Statement(query)


class PostgresAudit(PostgresRepository):
    async def add(self, entry: AuditEntry) -> None:
        self._connection.send(ADD_ENTRY, **ENTRY.values(entry))

    async def list_entries(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        # An id begins with its instant, so that one index serves order, cursor and times; `at` is exact.
        low = id_at("aud", wanted.since) if wanted.since else FIRST
        high = min(after or LAST, id_at("aud", min(wanted.until, LATEST - TICK) + TICK) if wanted.until else LAST)
        given = {name: getattr(wanted, name) for name in _BY_SELECTIVITY if getattr(wanted, name) is not None}
        listed = _list_entries(tuple(given), wanted.since is not None, wanted.until is not None)
        rows = await self._connection.rows(
            listed, low=low, high=high, limit=limit, since=wanted.since, until=wanted.until, **given
        )
        return ENTRY.all(rows)
