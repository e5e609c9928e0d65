"""Businesses, their KYC and their members: what operators do, from the command line and over HTTP."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from payagg.application.ports.store import Transaction
from payagg.application.schemas.views import page_of, view_of
from payagg.application.use_case import UseCase, in_transaction, retry_on_conflict
from payagg.domain.audit import Action, Actor, ActorRealm, changes_of
from payagg.domain.business import (
    BUSINESS_NAME_MAX,
    SUBJECT_MAX,
    Business,
    BusinessStatus,
    KycStatus,
    Role,
    check_subject,
    ensure_manager,
    ensure_owner_left,
    move_kyc,
)
from payagg.domain.checks import with_changes
from payagg.domain.errors import ErrorCode, Refusal, must_exist

SEARCH_MAX = 100

BusinessName = Annotated[str, Meta(min_length=1, max_length=BUSINESS_NAME_MAX, examples=["Ada's Shop"])]
Subject = Annotated[str, Meta(min_length=1, max_length=SUBJECT_MAX, examples=["user_0194bb1c2f00"])]


class CreateBusiness(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """`owner` is the subject (`sub`) of the first OWNER's tokens."""

    name: BusinessName
    owner: Subject
    kyc_status: KycStatus | None = None
    status: BusinessStatus | None = None


class ChangeBusiness(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """An absent field, or null, keeps its value."""

    kyc_status: KycStatus | None = None
    status: BusinessStatus | None = None


class SetMember(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    subject: Subject
    role: Role


class RemoveMember(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    subject: Subject


class BusinessMember(Struct, rename="camel", frozen=True):
    subject: Subject
    role: Role


class AdminBusiness(Struct, rename="camel", frozen=True):
    id: str
    name: BusinessName
    status: BusinessStatus
    kyc_status: KycStatus
    created_at: datetime


class AdminBusinessDetail(AdminBusiness, frozen=True):
    members: list[BusinessMember]

    @classmethod
    def of_members(cls, business: Business, members: Mapping[str, Role]) -> "AdminBusinessDetail":
        listed = [BusinessMember(subject, role) for subject, role in members.items()]
        return view_of(cls, business, members=listed)


class ManagedBusiness(AdminBusiness, frozen=True):
    """`role` is the caller's own: OWNER or ADMIN."""

    role: Role


class ManagedBusinesses(Struct, rename="camel", frozen=True):
    businesses: list[ManagedBusiness]


class BusinessPage(Struct, rename="camel", frozen=True):
    """`nextCursor` is the last business's id: pass it as `after`."""

    businesses: list[AdminBusiness]
    next_cursor: str | None
    has_more: bool


NO_BUSINESS = "No such business."


class Businesses(UseCase):
    async def list_businesses(self, search: str | None, after: str | None, limit: int) -> BusinessPage:
        """Newest first, strictly older than the cursor."""
        found = await in_transaction(self.store, lambda tx: tx.businesses.list_businesses(search, after, limit + 1))
        shown, cursor, has_more = page_of(found, limit, after)
        return BusinessPage([view_of(AdminBusiness, business) for business in shown], cursor, has_more)

    async def list_managed(self, subject: str) -> ManagedBusinesses:
        """What the user may manage, oldest first."""
        found = await in_transaction(self.store, lambda tx: tx.members.managed_by(subject))
        return ManagedBusinesses([view_of(ManagedBusiness, business, role=role) for business, role in found])

    async def detail(self, business_id: str) -> AdminBusinessDetail:
        """With its members by subject; raises NOT_FOUND, as every use case here that names a business does."""
        async with self.store.begin() as tx:
            business = must_exist(await tx.businesses.get(business_id), NO_BUSINESS)
            return AdminBusinessDetail.of_members(business, await tx.members.of_business(business_id))

    @retry_on_conflict
    async def create(
        self, name: str, owner: str, kyc: KycStatus, status: BusinessStatus, *, by: Actor
    ) -> AdminBusinessDetail:
        """A new business with its first OWNER; raises VALIDATION_ERROR. It may begin in any KYC state, as KYC may have
        been done elsewhere; after that its KYC machine decides."""
        now = self.clock.now()
        business = Business(self.entropy.id("biz", now), name.strip(), status, kyc, now)
        owner = _subject(owner, "owner")
        async with self.store.begin() as tx:
            await tx.businesses.add(business)
            await self._record(tx, by, Action.BUSINESS_CREATE, None, business)
            await self._set_member(tx, by, business.id, owner, None, Role.OWNER)
        return AdminBusinessDetail.of_members(business, {owner: Role.OWNER})

    @retry_on_conflict
    async def change(
        self, business_id: str, kyc: KycStatus | None, status: BusinessStatus | None, *, by: Actor
    ) -> AdminBusiness:
        """Moves KYC along its machine and sets the status, both or neither; raises NOT_FOUND or VALIDATION_ERROR."""
        async with self.store.begin() as tx:
            business = must_exist(await tx.businesses.lock(business_id), NO_BUSINESS)
            changed = with_changes(
                business,
                kyc_status=move_kyc(business.kyc_status, kyc) if kyc else business.kyc_status,
                status=status or business.status,
            )
            await tx.businesses.save(changed)
            await self._record(tx, by, Action.BUSINESS_UPDATE, business, changed)
            return view_of(AdminBusiness, changed)

    @retry_on_conflict
    async def set_member(self, business_id: str, subject: str, role: Role, *, by: Actor) -> BusinessMember:
        """Adds a member or changes the role; raises NOT_FOUND, VALIDATION_ERROR or LAST_OWNER."""
        subject = _subject(subject, "subject")
        async with self.store.begin() as tx:
            members = await self._locked_members(tx, business_id)
            ensure_owner_left(members, {**members, subject: role})
            await self._set_member(tx, by, business_id, subject, members.get(subject), role)
        return BusinessMember(subject, role)

    @retry_on_conflict
    async def remove_member(self, business_id: str, subject: str, *, by: Actor) -> None:
        """Raises NOT_FOUND, also for one who is no member, or LAST_OWNER."""
        subject = _subject(subject, "subject")
        async with self.store.begin() as tx:
            members = await self._locked_members(tx, business_id)
            role = members.get(subject)
            if role is None:
                raise Refusal(ErrorCode.NOT_FOUND, "No such member.")
            ensure_owner_left(members, {name: own for name, own in members.items() if name != subject})
            await tx.members.remove(business_id, subject)
            changes = {"role": {"before": role.value, "after": None}}
            await self.record(tx, by, Action.MEMBER_REMOVE, subject, changes, business_id=business_id)

    async def _locked_members(self, tx: Transaction, business_id: str) -> dict[str, Role]:
        """Under the lock of the business: when two owners demote each other, only one succeeds."""
        must_exist(await tx.businesses.lock(business_id), NO_BUSINESS)
        return await tx.members.of_business(business_id)

    async def _set_member(
        self, tx: Transaction, by: Actor, business_id: str, subject: str, before: Role | None, role: Role
    ) -> None:
        if role is before:
            return
        await tx.members.add(business_id, subject, role)
        changes = {"role": {"before": before.value if before else None, "after": role.value}}
        await self.record(tx, by, Action.MEMBER_SET, subject, changes, business_id=business_id)

    async def _record(
        self, tx: Transaction, by: Actor, action: Action, before: Business | None, after: Business
    ) -> None:
        changes = changes_of(before, after, "name", "status", "kyc_status")
        await self.record(tx, by, action, after.id, changes, business_id=after.id)


async def lock_own(tx: Transaction, business_id: str, by: Actor) -> Business:
    """Locks the caller's business, so its settings change one at a time: two new defaults at once would violate the
    unique index. Raises FORBIDDEN when the membership ended since the caller was authorised: whoever removes a member
    holds this lock, and no key or secret is made after that."""
    business, role = await tx.members.lock_business(business_id, by.subject)
    if business is None:
        raise Refusal(ErrorCode.FORBIDDEN)
    if by.realm is ActorRealm.MERCHANT:
        ensure_manager(role)
    return business


def _subject(text: str, field: str) -> str:
    """Without the space around it; raises VALIDATION_ERROR."""
    subject = text.strip()
    check_subject(subject, field)
    return subject
