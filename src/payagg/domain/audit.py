"""The audit trail: one entry for each change by a person, a key or the clock. Entries are never changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from payagg.domain.values import Environment

# By the JSON name of the field: its value `before` and `after`, None where there was or is none.
Changes = Mapping[str, Mapping[str, Any]]


class ActorRealm(Enum):
    """The kind of actor. CLOCK is the service itself: drains that end, endpoints that fail for days."""

    ADMIN = "admin"
    MERCHANT = "merchant"
    KEY = "key"
    CLI = "cli"
    CLOCK = "clock"


@dataclass(frozen=True)
class Actor:
    """Who acts, and from where: `address` is the client's, or the host's name for a command."""

    realm: ActorRealm
    subject: str
    address: str | None = None
    request_id: str | None = None

    @property
    def name(self) -> str:
        return f"{self.realm.value}:{self.subject}"


def clock(subject: str) -> Actor:
    """The service itself; `subject` names the work that made the change."""
    return Actor(ActorRealm.CLOCK, subject)


class Action(Enum):
    """The action. The word before the dot is the kind of its object."""

    GATEWAY_CREATE = "gateway.create"
    GATEWAY_UPDATE = "gateway.update"
    GATEWAY_DELETE = "gateway.delete"
    GATEWAY_ENABLE = "gateway.enable"
    GATEWAY_DISABLE = "gateway.disable"
    GATEWAY_END_DRAIN = "gateway.end_drain"
    GATEWAY_SET_CREDENTIALS = "gateway.set_credentials"
    GATEWAY_TEST_CREDENTIALS = "gateway.test_credentials"  # the provider was asked, nothing changed
    GATEWAY_END_OVERLAP = "gateway.end_overlap"
    GATEWAY_WIPE_SECRETS = "gateway.wipe_secrets"
    GATEWAY_SET_LOGO = "gateway.set_logo"
    CHECKOUT_UPDATE = "checkout.update"  # a business's settings of the gateway whose id the object has
    API_KEY_CREATE = "api_key.create"
    API_KEY_REVOKE = "api_key.revoke"
    WEBHOOK_CREATE = "webhook.create"
    WEBHOOK_UPDATE = "webhook.update"
    WEBHOOK_DEACTIVATE = "webhook.deactivate"
    WEBHOOK_REMOVE = "webhook.remove"
    WEBHOOK_ROTATE = "webhook.rotate"
    WEBHOOK_TEST = "webhook.test"
    DELIVERY_REDELIVER = "delivery.redeliver"
    BUSINESS_CREATE = "business.create"
    BUSINESS_UPDATE = "business.update"
    BUSINESS_MOVE = "business.move"  # to another cell; kept by both
    MEMBER_SET = "member.set"  # the object's id is the member's subject
    MEMBER_REMOVE = "member.remove"
    ANOMALY_ACKNOWLEDGE = "anomaly.acknowledge"
    ANOMALY_CLOSE = "anomaly.close"
    ANOMALY_ASSIGN = "anomaly.assign"
    ANOMALY_NOTE = "anomaly.note"
    PAYMENT_DISCLOSE = "payment.disclose"  # to the person who paid, because that person asked
    PAYMENT_ERASE = "payment.erase"  # who paid, because that person asked
    RETENTION_CLEAR = "retention.clear"  # who paid long ago, a batch at a time
    PAYMENT_CREATE = "payment.create"  # a dashboard test payment; a key's payments are their own record
    PAYMENT_SIMULATE = "payment.simulate"  # by a user of the dashboard
    PAYMENT_ASK_RESOLUTION = "payment.ask_resolution"
    PAYMENT_RESOLVE = "payment.resolve"  # by the administrator who confirmed
    # Work that may be killed has an entry at its begin, and one with its outcome at its end.
    RESTORE_BEGIN_CATCH_UP = "restore.begin_catch_up"
    RESTORE_CATCH_UP = "restore.catch_up"  # providers were asked about what a restored database missed
    ARCHIVE_BEGIN_REMOVE = "archive.begin_remove"
    ARCHIVE_REMOVE = "archive.remove"  # the history of a part's payments; the object's id is the part's folder
    SECRETS_RESEAL = "secrets.reseal"  # a batch of what older keys sealed; the object's id is the key that seals it now
    TOKEN_ISSUE = "token.issue"  # noqa: S105 - by a command; the object's id is the token's
    TOKEN_REVOKE = "token.revoke"  # noqa: S105 - the object's id is the token's, or its subject


@dataclass(frozen=True)
class AuditEntry:
    """One change. `action` is a word and not an Action, so that a server reads what a newer one wrote."""

    id: str
    at: datetime
    realm: ActorRealm
    subject: str
    address: str | None
    request_id: str | None
    action: str
    object_kind: str
    object_id: str
    business_id: str | None
    changes: Changes

    @classmethod
    def of(
        cls,
        id: str,
        at: datetime,
        actor: Actor,
        action: Action,
        object_id: str,
        changes: Changes,
        business_id: str | None,
    ) -> "AuditEntry":
        return cls(
            id=id,
            at=at,
            realm=actor.realm,
            subject=actor.subject,
            address=actor.address,
            request_id=actor.request_id,
            action=action.value,
            object_kind=action.value.partition(".")[0],
            object_id=object_id,
            business_id=business_id,
            changes=changes,
        )


@dataclass(frozen=True)
class AuditFilter:
    """A filter of entries; None = any. `since` is included, `until` is not."""

    business_id: str | None = None
    subject: str | None = None
    object_id: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def admits(self, entry: AuditEntry) -> bool:
        names = ("business_id", "subject", "object_id", "action")
        if any(getattr(self, name) not in (None, getattr(entry, name)) for name in names):
            return False
        return (self.since is None or self.since <= entry.at) and (self.until is None or entry.at < self.until)


def changes_of(before: object | None, after: object | None, *names: str) -> dict[str, dict[str, Any]]:
    """The differences between two versions of an object in the fields `names`; None = it did not or does not exist.

    Callers name each field, so a secret is in an entry only if a caller names it; sealed blobs are refused with
    TypeError anyway.
    """
    changes = {}
    for name in names:
        old, new = (getattr(version, name, None) for version in (before, after))
        if old != new:
            changes[_json_name(name)] = {"before": _plain(name, old), "after": _plain(name, new)}
    return changes


def credentials_changed(before: Mapping[str, str], after: Mapping[str, str]) -> Changes:
    """Of credentials the names alone: those whose value is new, and those gone."""
    new = sorted(name for name, value in after.items() if before.get(name) != value)
    gone = sorted(set(before) - set(after))
    changes = {"credentialsSet": {"before": None, "after": new}} if new else {}
    return changes | ({"credentialsRemoved": {"before": gone, "after": None}} if gone else {})


def accounts_changed(before: Mapping[Environment, str], after: Mapping[Environment, str]) -> Changes:
    """The fingerprints of a gateway's provider accounts, where the account or its address is another one: attempts made
    with the one before are no longer answered for."""
    return {
        f"{one.value.lower()}Account": {"before": before.get(one), "after": after.get(one)}
        for one in Environment
        if before.get(one) != after.get(one)
    }


def _json_name(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


def _plain(name: str, value: Any) -> Any:
    """`value` as JSON has it. An address goes without its query, which often holds a token of the receiver's."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, tuple):
        return list(value)
    if name == "url" and isinstance(value, str) and "?" in value:
        return value.partition("?")[0] + "?[hidden]"
    if value is None or isinstance(value, str | bool | int):
        return value
    raise TypeError(f"{name} is nothing to show")
