"""Ports of businesses, their keys, the audit trail and token revocations."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol

from payagg.domain.api_key import ApiKey
from payagg.domain.audit import ActorRealm, AuditEntry, AuditFilter
from payagg.domain.business import Business, Role
from payagg.domain.revocation import Revocation
from payagg.domain.values import Environment


class BusinessRepository(Protocol):
    async def get(self, business_id: str) -> Business | None: ...

    async def lock(self, business_id: str) -> Business | None:
        """The business, its row locked: limits of five are counted under this lock."""

    async def names(self, business_ids: Collection[str]) -> dict[str, str]:
        """The names of the existing businesses, by id."""

    async def add(self, business: Business) -> None: ...

    async def save(self, business: Business) -> None: ...

    async def list_businesses(self, search: str | None, after: str | None, limit: int) -> list[Business]:
        """By id, newest first (an id begins with its instant), strictly older than the id `after`; `search` is a
        literal, case-insensitive substring of the name."""


class MemberRepository(Protocol):
    """Who manages which business, and whose tokens are revoked."""

    async def lock_business(self, business_id: str, subject: str) -> tuple[Business | None, Role | None]:
        """As `BusinessRepository.lock`, with the subject's role as it is under the lock."""

    async def managed_by(self, subject: str) -> list[tuple[Business, Role]]:
        """The businesses in which the subject is OWNER or ADMIN, oldest first, at most 1,000."""

    async def of_business(self, business_id: str) -> dict[str, Role]:
        """The role of each subject, by subject in code point order."""

    async def add(self, business_id: str, subject: str, role: Role) -> None: ...

    async def remove(self, business_id: str, subject: str) -> None: ...

    async def revoke(self, revocation: Revocation) -> None:
        """A second one for the same claim and value keeps the later instant."""


class Membership(NamedTuple):
    """What decides about a request of a business's user. `role` and `business` are None for no such business, `role`
    also for no membership."""

    is_revoked: bool  # the token
    role: Role | None
    business: Business | None


class ApiKeyRepository(Protocol):
    async def get(self, business_id: str, key_id: str) -> ApiKey | None:
        """Locked for update."""

    async def list_keys(self, business_id: str, revoked_max: int) -> list[ApiKey]:
        """Active keys, newest first, then the most recently revoked ones, at most `revoked_max` of an environment."""

    async def count_active(self, business_id: str, environment: Environment) -> int: ...

    async def add(self, key: ApiKey) -> None: ...

    async def save(self, key: ApiKey) -> None: ...


class AuditRepository(Protocol):
    """Append-only: the store refuses to change or delete an entry."""

    async def add(self, entry: AuditEntry) -> None: ...

    async def list_entries(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        """By id, newest first, strictly older than the id `after`."""


@dataclass(frozen=True)
class KeyHolder:
    """A presented key and its business: as stored now or, `is_cached`, as last read."""

    key: ApiKey
    business: Business
    is_cached: bool = False
    realm: ClassVar[ActorRealm] = ActorRealm.KEY

    @property
    def subject(self) -> str:
        return self.key.id

    @cached_property
    def key_state(self) -> tuple[str, str, str]:
        """What decides who may initiate and can change: the key's status, the business's status and KYC."""
        return self.key.status.value, self.business.status.value, self.business.kyc_status.value
