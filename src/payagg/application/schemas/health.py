"""What administrators see of the service's health."""

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
    """A provider that failed several times in a row, and in how many seconds it may be tried again."""

    gateway: str
    environment: Environment
    seconds: Seconds


class RefusedEventCount(Struct, rename="camel", frozen=True):
    """At least how many events of a provider were refused for their signature within a day, and why. Equal events count
    once, and no more than fifty are told apart."""

    provider: str
    environment: Environment
    fault: SignatureFault
    count: int


class ServiceVersions(Struct, rename="camel", frozen=True):
    """What runs: ourselves, the Python of the process that answers and its build, Postgres, and the newest migration
    that the database has."""

    payagg: str
    python: str
    postgres: str
    migration: str


class ServiceHealth(Struct, rename="camel", frozen=True):
    """How late the queues are, zero where nothing waits, and what waits for a person."""

    deliveries_oldest_due_seconds: Seconds
    payments_oldest_unasked_seconds: Seconds
    webhook_endpoints_deactivated: int
    paused_providers: list[PausedProvider]
    unclosed_anomalies: list[UnclosedAnomalies]
    refused_events: list[RefusedEventCount]
    versions: ServiceVersions
