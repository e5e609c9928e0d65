"""The tables as dicts. Rows are frozen, so a shallow copy of the dicts is a full snapshot."""

from collections import Counter
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final

from payagg.application.ports.payments import ProviderCall
from payagg.application.ports.providers import ProviderEvent, RefusedEvent, SignatureFault
from payagg.domain.anomaly import Anomaly
from payagg.domain.api_key import ApiKey
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import Attempt
from payagg.domain.audit import AuditEntry
from payagg.domain.business import Business, Role
from payagg.domain.business_gateway import BusinessGateway
from payagg.domain.delivery import Delivery, Event
from payagg.domain.gateway import Gateway
from payagg.domain.health import Health
from payagg.domain.payment import Payment, Transition
from payagg.domain.rate_limit import MARKS_MAX, RateLimit
from payagg.domain.reconciliation import ReconciliationFinding, ReconciliationRun
from payagg.domain.resolution import Resolution
from payagg.domain.revocation import Revocation, RevokedClaim
from payagg.domain.values import Environment
from payagg.domain.webhook import WebhookEndpoint


class BrokenRule(Exception):
    """A write that the schema would refuse (a constraint or the transition trigger): the caller's defect."""


class HitWindow:
    """The hits of one bucket in memory."""

    def __init__(self) -> None:
        self._hits: Counter[int] = Counter()  # by mark

    def hit(self, limit: RateLimit, now: datetime) -> datetime | None:
        """Counts one; where there is no room it counts nothing and says when there will be."""
        if len(self._hits) > MARKS_MAX or self._hits.total() >= limit.most:
            oldest, newest = limit.oldest(now), limit.newest(now)
            self._hits = Counter({mark: hits for mark, hits in self._hits.items() if oldest <= mark <= newest})
            if self._hits.total() >= limit.most:
                return limit.end_of(min(self._hits))
        self._hits[limit.mark(now)] += 1
        return None


@dataclass
class State:
    """One dict per table, by primary key; every repository of one store works on the same State."""

    payments: dict[str, Payment] = field(default_factory=dict)
    attempts: dict[tuple[str, int], Attempt] = field(default_factory=dict)  # reference, number
    holds: dict[tuple[str, int], datetime] = field(default_factory=dict)  # reference, number: until when an ask is held
    transitions: dict[tuple[str, int], Transition] = field(default_factory=dict)  # reference, sequence
    calls: dict[str, ProviderCall] = field(default_factory=dict)
    archive_parts: dict[int, ArchivePart] = field(default_factory=dict)  # by number
    archived: dict[str, ArchivedPayment] = field(default_factory=dict)  # by reference
    anomalies: dict[str, Anomaly] = field(default_factory=dict)
    reconciliations: dict[str, ReconciliationRun] = field(default_factory=dict)
    findings: dict[tuple[str, int], ReconciliationFinding] = field(default_factory=dict)  # run id, number
    resolutions: dict[str, Resolution] = field(default_factory=dict)
    businesses: dict[str, Business] = field(default_factory=dict)
    members: dict[tuple[str, str], Role] = field(default_factory=dict)  # business id, subject
    api_keys: dict[str, ApiKey] = field(default_factory=dict)
    gateways: dict[str, Gateway] = field(default_factory=dict)
    business_gateways: dict[tuple[str, str], BusinessGateway] = field(default_factory=dict)  # business id, gateway id
    endpoints: dict[str, WebhookEndpoint] = field(default_factory=dict)
    removed: dict[str, datetime] = field(default_factory=dict)  # endpoint id: since when nothing shows it
    events: dict[tuple[str, int], Event] = field(default_factory=dict)  # reference, sequence
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    inbox: dict[str, ProviderEvent] = field(default_factory=dict)
    refused: dict[tuple[str, Environment, SignatureFault, int], RefusedEvent] = field(default_factory=dict)  # ..., slot
    health: dict[tuple[str, Environment], Health] = field(default_factory=dict)
    revocations: dict[tuple[RevokedClaim, str], Revocation] = field(default_factory=dict)
    audit: dict[str, AuditEntry] = field(default_factory=dict)
    hits: dict[str, HitWindow] = field(default_factory=dict)  # by bucket of a rate limit
    counts: dict[tuple[str, ...], int] = field(default_factory=dict)  # name, then labels
    idempotency_keys: dict[tuple[str, Environment, str], str] = field(default_factory=dict)  # ..., key: reference
    of_extensions: dict[tuple[str, Any], Any] = field(default_factory=dict)  # table, key

    def snapshot(self) -> "State":
        return State(**{table: dict(getattr(self, table)) for table in _TABLES})

    def restore(self, saved: "State") -> None:
        """Puts a snapshot's tables back in place; repositories keep seeing this State."""
        for table in _TABLES:
            setattr(self, table, getattr(saved, table))


@dataclass(frozen=True)
class MemoryRepository:
    state: State


_TABLES: Final = tuple(table.name for table in fields(State))
