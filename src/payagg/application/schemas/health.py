"""What administrators see of the service's health."""

from typing import Annotated

from msgspec import Meta, Struct

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


class ServiceHealth(Struct, rename="camel", frozen=True):
    """How late the queues are, zero where nothing waits, and what waits for a person."""

    deliveries_oldest_due_seconds: Seconds
    payments_oldest_unasked_seconds: Seconds
    webhook_endpoints_deactivated: int
    paused_providers: list[PausedProvider]
    unclosed_anomalies: list[UnclosedAnomalies]
