"""Answers of the audit trail, for administrators and merchants."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from payagg.application.schemas.views import view_of
from payagg.domain.audit import ActorRealm, AuditEntry
from payagg.domain.business import SUBJECT_MAX

PAGE_DEFAULT = 50
PAGE_MAX = 100
EntryId = Annotated[str, Meta(min_length=36, max_length=36, pattern="^aud_[0-9a-f]{32}$")]
# The client's address, or the host name of a command.
Address = Annotated[str, Meta(max_length=255, examples=["192.0.2.1"])]
RequestId = Annotated[str, Meta(min_length=8, max_length=64, pattern="^[A-Za-z0-9._-]+$", examples=["4be3f0a9c1d2"])]
Word = Annotated[str, Meta(max_length=64, pattern="^[a-z._]+$", examples=["webhook.update"])]
# A member's id is the subject of the member's tokens.
ObjectId = Annotated[str, Meta(min_length=1, max_length=255, pattern="^[^\\u0000]+$", examples=["whe_0194bb1c2f00"])]
OPERATORS = frozenset({ActorRealm.ADMIN, ActorRealm.CLI})


class AuditChange(Struct, frozen=True):
    """A field's value before and after; null without one."""

    before: Any
    after: Any


class AuditEntryView(Struct, rename="camel", frozen=True):
    id: EntryId
    at: datetime
    realm: ActorRealm
    subject: Annotated[str, Meta(max_length=SUBJECT_MAX)]
    address: Address | None
    request_id: RequestId | None
    action: Word
    object_kind: Word
    object_id: ObjectId
    business_id: str | None
    changes: dict[str, AuditChange]

    @classmethod
    def of(cls, entry: AuditEntry) -> "AuditEntryView":
        return view_of(cls, entry, changes={name: AuditChange(**change) for name, change in entry.changes.items()})

    @classmethod
    def for_business(cls, entry: AuditEntry) -> "AuditEntryView":
        view = cls.of(entry)
        return replace(view, address=None, request_id=None) if entry.realm in OPERATORS else view


class AuditPage(Struct, rename="camel", frozen=True):
    """`nextCursor` is the last entry's id: pass it as `after`."""

    entries: list[AuditEntryView]
    next_cursor: EntryId | None
    has_more: bool
