"""Requests and answers of businesses, for administrators. Limits are in the types."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from payagg.application.schemas.views import view_of
from payagg.domain.business import BUSINESS_NAME_MAX, SUBJECT_MAX, Business, BusinessStatus, KycStatus, Role

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
