"""Answers of the service's health, for administrators."""

from typing import Annotated

from msgspec import Meta, Struct

from payagg.application.ports.provider_events import SignatureFault
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.values import Environment

Seconds = Annotated[float, Meta(ge=0, examples=[0.0])]


class UnclosedAnomalies(Struct, rename="camel", frozen=True):
    kind: AnomalyKind
    count: int


class PausedProvider(Struct, rename="camel", frozen=True):
    """A provider that failed several times in a row, and the seconds until its next call."""

    gateway: str
    environment: Environment
    seconds: Seconds


class RefusedEventCount(Struct, rename="camel", frozen=True):
    """The least number of a provider's events refused for their signature within a day, and the reason. Equal events
    count once, and at most fifty are distinguished."""

    provider: str
    environment: Environment
    fault: SignatureFault
    count: int


class ServiceVersions(Struct, rename="camel", frozen=True):
    """Versions: payagg, the answering process's Python and its build, Postgres, and the database's newest migration."""

    payagg: str
    python: str
    postgres: str
    migration: str


class ServiceHealth(Struct, rename="camel", frozen=True):
    """How late the queues are, zero when nothing waits, and what waits for a person."""

    deliveries_oldest_due_seconds: Seconds
    payments_oldest_unasked_seconds: Seconds
    webhook_endpoints_deactivated: int
    paused_providers: list[PausedProvider]
    unclosed_anomalies: list[UnclosedAnomalies]
    refused_events: list[RefusedEventCount]
    versions: ServiceVersions
