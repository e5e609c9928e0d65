"""Businesses, their members and keys, revoked tokens and the audit trail, as rows."""

# ruff: noqa: S608 - our own words

from collections.abc import Collection
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import bindparam, func

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap
from payagg.adapters.postgres.repositories.webhook_events import id_at
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.accounts import Membership
from payagg.domain.api_key import ApiKey, ApiKeyStatus
from payagg.domain.audit import ActorRealm, AuditEntry, AuditFilter
from payagg.domain.business import MANAGERS, Business, BusinessStatus, KycStatus, Role
from payagg.domain.payment_search import LATEST
from payagg.domain.revocation import Revocation, RevokedClaim
from payagg.domain.values import Environment

REVOCATION = RowMap(Revocation, "token_revocations", claim=RevokedClaim)
REVOKE = Statement("""
INSERT INTO token_revocations AS kept (claim, value, issued_before)
VALUES (:claim, :value, CAST(:issued_before AS timestamptz))
ON CONFLICT (claim, value) DO UPDATE SET issued_before = greatest(kept.issued_before, excluded.issued_before)
""")
REVOKED = """EXISTS (
    SELECT FROM token_revocations WHERE (claim = 'jti' AND value = :token_id)
    OR (claim = 'sub' AND value = :subject AND issued_before > :issued_at))"""
IS_REVOKED = Statement(f"SELECT {REVOKED}")

BUSINESS = RowMap(Business, "businesses", status=BusinessStatus, kyc_status=KycStatus)
API_KEY = RowMap(ApiKey, "api_keys", environment=Environment, status=ApiKeyStatus)
# What `save` may change of a business, and of a key.
MOVING = ("name", "status", "kyc_status")
# `last_used_at` is moved by `touch_key` alone; writing it here could set it back.
KEY_MOVING = ("name", "status", "revoked_at")

GET = BUSINESS.query("WHERE id = :id")
LOCK = BUSINESS.query("WHERE id = :id FOR NO KEY UPDATE")
NAMES = Statement("SELECT id, name FROM businesses WHERE id = ANY(:ids)")
ADD = Statement(BUSINESS.insert().values(updated_at=bindparam("created_at")))
SAVE = Statement(BUSINESS.update(*MOVING).values(updated_at=func.clock_timestamp()))
# The parameter is what `escape_like` makes of the text.
SEARCHED = "businesses.name ILIKE '%' || CAST(:search AS text) || '%' ESCAPE '/'"


def escape_like(search: str) -> str:
    """The text as LIKE finds it literally."""
    return search.replace("/", "//").replace("%", "/%").replace("_", "/_")


@cache
def _list_businesses(is_searched: bool, is_after: bool) -> Statement:
    found = f"{SEARCHED if is_searched else 'true'} AND {'id < :after' if is_after else 'true'}"
    return BUSINESS.query(f"WHERE {found} ORDER BY id DESC LIMIT :limit")


GET_KEY = API_KEY.query("WHERE business_id = :business_id AND id = :id FOR NO KEY UPDATE")
# ACTIVE stands before REVOKED.
KEYS = Statement(f"""
SELECT {API_KEY.listed} FROM (
    SELECT *, row_number() OVER (
        PARTITION BY environment, status ORDER BY coalesce(revoked_at, created_at) DESC, id DESC) AS rank
    FROM api_keys WHERE business_id = :business_id
) api_keys WHERE status = 'ACTIVE' OR rank <= :revoked_max ORDER BY status, rank
""")
COUNT_ACTIVE = Statement("""
SELECT count(*) FROM api_keys WHERE business_id = :business_id AND environment = :environment AND status = 'ACTIVE'
""")
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
_MEMBER = "members.business_id = :business_id AND members.subject = :subject"
ROLE = Statement(f"SELECT role FROM members WHERE {_MEMBER}")
# A row whatever there is, since the token is asked about, too.
FIND_MEMBER = Statement(f"""
SELECT {REVOKED}, members.role, {BUSINESS.listed} FROM (SELECT 1) one
LEFT JOIN businesses ON businesses.id = :business_id LEFT JOIN members ON {_MEMBER}
""")
MANAGED = Statement(f"""
SELECT {BUSINESS.listed}, members.role FROM businesses JOIN members ON members.business_id = businesses.id
WHERE members.subject = :subject AND members.role IN ({", ".join(sorted(repr(role.value) for role in MANAGERS))})
ORDER BY businesses.id LIMIT {MANAGED_MAX}
""")
MEMBERS = Statement('SELECT subject, role FROM members WHERE business_id = :business_id ORDER BY subject COLLATE "C"')
SET_MEMBER = Statement("""
INSERT INTO members (business_id, subject, role) VALUES (:business_id, :subject, :role)
ON CONFLICT (business_id, subject) DO UPDATE SET role = excluded.role
""")
REMOVE_MEMBER = Statement(f"DELETE FROM members WHERE {_MEMBER}")


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


ENTRY = RowMap(AuditEntry, "audit", realm=ActorRealm)
TICK = timedelta(milliseconds=1)  # what an id tells of its instant
FIRST, LAST = "aud_", "aud_g"  # below and above every id
_BY_SELECTIVITY = ("object_id", "subject", "business_id", "action")  # each has an index together with the id

ADD_ENTRY = Statement(ENTRY.insert())


@cache
def _list_entries(filters: tuple[str, ...], is_since: bool, is_until: bool) -> Statement:
    conditions, order = ["id >= :low AND id < :high"], "id DESC"
    if filters:
        # As one range of the filter's own index: for "equal to" the server may walk the whole table by id, which takes
        # long when matches are rare.
        own = filters[0]
        conditions, order = [f"({own}, id) >= (:{own}, :low) AND ({own}, id) < (:{own}, :high)"], f"{own} DESC, id DESC"
    conditions += [f"{name} = :{name}" for name in filters[1:]]
    conditions += ["at >= :since"] * is_since + ["at < :until"] * is_until
    return ENTRY.query(f"WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT :limit")


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
