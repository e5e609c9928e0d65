"""The audit trail: writing an entry beside its change, reading, and what a reader sees."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from payagg.application.ports.store import Store
from payagg.application.ports.webhooks import DeliveryResult
from payagg.application.schemas.views import id_form, page_of, view_of
from payagg.application.use_case import in_transaction
from payagg.domain.audit import Action, ActorRealm, AuditEntry, AuditFilter, clock
from payagg.domain.business import SUBJECT_MAX
from payagg.domain.errors import invalid

EntryId = Annotated[str, id_form("aud")]
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


ACTIONS = frozenset(action.value for action in Action)


def switched_off(cause: DeliveryResult, business_id: str) -> AuditEntry:
    """The entry of an endpoint that a failed delivery deactivated. Its id derives from the delivery's: only the
    database can decide which result deactivates, and it draws no ids."""
    delivery = cause.claimed.delivery
    id = f"aud_{int(cause.at.timestamp() * 1000):012x}{delivery.id[-20:]}"
    changes = {"isActive": {"before": True, "after": False}}
    by = clock("deliveries")
    return AuditEntry.of(id, cause.at, by, Action.WEBHOOK_DEACTIVATE, delivery.endpoint_id or "", changes, business_id)


@dataclass(frozen=True)
class AuditTrail:
    store: Store

    async def page(
        self,
        wanted: AuditFilter,
        after: str | None,
        limit: int,
        view: Callable[[AuditEntry], AuditEntryView] = AuditEntryView.of,
    ) -> AuditPage:
        """Newest first, strictly older than the cursor; raises VALIDATION_ERROR on `action`."""
        if wanted.action is not None and wanted.action not in ACTIONS:
            raise invalid("action", "Unknown action; the description of this operation lists them.")
        found = await in_transaction(self.store, lambda tx: tx.audit.list_entries(wanted, after, limit + 1))
        shown, cursor, has_more = page_of(found, limit, after)
        return AuditPage([view(entry) for entry in shown], cursor, has_more)


def line_of(entry: AuditEntryView) -> str:
    """One line for a person."""
    where = f" from {entry.address}" if entry.address else ""
    whose = f" of {entry.business_id}" if entry.business_id not in (None, entry.object_id) else ""
    request = f" (request {entry.request_id})" if entry.request_id else ""
    changes = ", ".join(f"{name}: {_word(c.before)} -> {_word(c.after)}" for name, c in entry.changes.items())
    facts = f"{entry.realm.value}:{entry.subject}{where}{request}  {entry.action} {entry.object_id}{whose}"
    return f"{entry.at:%Y-%m-%d %H:%M:%S}Z  {facts}" + (f"  {changes}" if changes else "")


def _word(value: Any) -> str:
    if value == []:
        return "all"  # only the events of an endpoint are a list that may be empty
    text = "none" if value is None else " ".join(value) if isinstance(value, list) else str(value)
    return one_line(text)


def one_line(text: str) -> str:
    """One line, whatever line breaks the text has."""
    return text if text.isprintable() else json.dumps(text)
