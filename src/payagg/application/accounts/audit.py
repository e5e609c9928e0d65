"""The audit trail: writing an entry beside its change, and reading."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from payagg.application.ports.outside import Entropy
from payagg.application.ports.store import Store, Transaction
from payagg.application.ports.webhooks import DeliveryResult
from payagg.application.schemas.audit import AuditEntryView, AuditPage
from payagg.domain.audit import Action, Actor, AuditEntry, AuditFilter, Changes, clock
from payagg.domain.errors import invalid

ACTIONS = frozenset(action.value for action in Action)
_CURSOR = re.compile(r"aud_[0-9a-f]{32}")


async def record(
    tx: Transaction,
    entropy: Entropy,
    now: datetime,
    by: Actor,
    action: Action,
    object_id: str,
    changes: Changes | None = None,
    *,
    business_id: str | None = None,
) -> None:
    """Adds an entry in the transaction of the change. `changes` None = the action needs no fields; empty = nothing
    changed, so no entry is written."""
    if changes is None or changes:
        id = entropy.id("aud", now)
        await tx.audit.add(AuditEntry.of(id, now, by, action, object_id, changes or {}, business_id))


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
        """Newest first, strictly older than the cursor; raises VALIDATION_ERROR on `action`, `after` or `to`."""
        if wanted.action is not None and wanted.action not in ACTIONS:
            raise invalid("action", f"Must be one of {', '.join(sorted(ACTIONS))}.")
        if wanted.since is not None and wanted.until is not None and wanted.until <= wanted.since:
            raise invalid("to", "Must be later than `from`.")
        if after is not None and not _CURSOR.fullmatch(after):
            raise invalid("after", "Must be an entry's id, for example the last answer's nextCursor.")
        async with self.store.begin() as tx:
            found = await tx.audit.list_entries(wanted, after, limit + 1)
        shown = found[:limit]
        return AuditPage(
            entries=[view(entry) for entry in shown],
            next_cursor=shown[-1].id if shown else after,
            has_more=len(found) > limit,
        )


def line_of(entry: AuditEntryView) -> str:
    """One line for a person."""
    where = f" from {entry.address}" if entry.address else ""
    whose = f" of {entry.business_id}" if entry.business_id not in (None, entry.object_id) else ""
    request = f" (request {entry.request_id})" if entry.request_id else ""
    changes = ", ".join(f"{name}: {_word(c.before)} -> {_word(c.after)}" for name, c in entry.changes.items())
    facts = f"{entry.realm.value}:{entry.subject}{where}{request}  {entry.action} {entry.object_id}{whose}"
    return f"{entry.at:%Y-%m-%d %H:%M:%S}Z  {facts}" + (f"  {changes}" if changes else "")


def _word(value: Any) -> str:
    text = "none" if value is None else " ".join(value) if isinstance(value, list) else str(value)
    return one_line(text)


def one_line(text: str) -> str:
    """One line, whatever line breaks the text has."""
    return text if text.isprintable() else json.dumps(text)
