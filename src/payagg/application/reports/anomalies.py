"""Anomalies for operators: list, acknowledge, assign, note, close."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from payagg.application.ports.reports import AnomalyFilter
from payagg.application.schemas.views import page_of
from payagg.application.use_case import UseCase, in_transaction, retry_on_conflict
from payagg.domain.anomaly import Anomaly
from payagg.domain.audit import Action, Actor, Changes, changes_of
from payagg.domain.errors import must_exist
from payagg.domain.values import CURRENCY


class Anomalies(UseCase):
    async def list_anomalies(self, wanted: AnomalyFilter, limit: int) -> tuple[Sequence[Anomaly], str | None, bool]:
        """A page, newest first, the next one's cursor, and whether there is one."""
        found = await in_transaction(self.store, lambda tx: tx.anomalies.page(wanted, limit + 1))
        return page_of(found, limit)

    async def acknowledge(self, anomaly_id: str, *, by: Actor) -> Anomaly:
        """Raises NOT_FOUND or ANOMALY_NOT_OPEN."""
        return await self._change(
            anomaly_id, by, Action.ANOMALY_ACKNOWLEDGE, lambda anomaly, now: anomaly.acknowledge(by.name, now)
        )

    async def close(self, anomaly_id: str, reason: str, *, by: Actor) -> Anomaly:
        """`reason`: what was done. Raises VALIDATION_ERROR, NOT_FOUND or ANOMALY_ALREADY_CLOSED."""
        return await self._change(
            anomaly_id, by, Action.ANOMALY_CLOSE, lambda anomaly, now: anomaly.close(by.name, reason, now)
        )

    async def assign(self, anomaly_id: str, assignee: str | None, *, by: Actor) -> Anomaly:
        """Raises VALIDATION_ERROR, NOT_FOUND or ANOMALY_ALREADY_CLOSED."""
        return await self._change(anomaly_id, by, Action.ANOMALY_ASSIGN, lambda anomaly, _: anomaly.assign(assignee))

    async def note(self, anomaly_id: str, text: str, *, by: Actor) -> Anomaly:
        """Raises VALIDATION_ERROR, NOT_FOUND, ANOMALY_ALREADY_CLOSED or NOTE_LIMIT_REACHED."""
        changes = {"note": {"before": None, "after": text}}
        return await self._change(
            anomaly_id, by, Action.ANOMALY_NOTE, lambda anomaly, now: anomaly.note(text, by.name, now), changes
        )

    @retry_on_conflict
    async def _change(
        self,
        anomaly_id: str,
        by: Actor,
        action: Action,
        change: Callable[[Anomaly, datetime], Anomaly],
        changes: Changes | None = None,
    ) -> Anomaly:
        async with self.store.begin() as tx:
            before, now = must_exist(await tx.anomalies.lock(anomaly_id)), self.clock.now()
            after = change(before, now)
            await tx.anomalies.save(after)
            changes = changes or changes_of(before, after, "status", "close_reason", "assignee")
            await self.record(tx, by, action, anomaly_id, changes)
            return after


def line_of(anomaly: Anomaly, now: datetime) -> str:
    """One line for a person: id, date, status, severity, age, assignee, kind and facts, with a dispute's due date."""
    facts = ", ".join(f"{name} {value}" for name, value in facts_of(anomaly.details))
    who = f"{anomaly.status.value:12}  {anomaly.severity.value:18}  {age_of(anomaly.age(now)):>8}"
    what = f"{anomaly.kind.value} {anomaly.reference or '-'} {facts}"
    return f"{anomaly.id}  {anomaly.at:%Y-%m-%d %H:%M:%S}Z  {who}  {anomaly.assignee or '-':12}  {what}"


def naira(kobo: int) -> str:
    return f"NGN {kobo // 100:,}.{kobo % 100:02d}"


def facts_of(details: Mapping[str, Any], money: Callable[[int], str] = naira) -> Iterator[tuple[str, str]]:
    """An anomaly's details by name, for a person: kobo as `money` shows them, the figures of another currency as the
    provider gave them."""
    is_naira = details.get("currency", CURRENCY) == CURRENCY
    for name, value in details.items():
        is_kobo = name == "expected" or (is_naira and name in ("amounts", "amount", "received"))
        figures = value if isinstance(value, list) else [value]
        yield name, ", ".join(map(money, figures)) if is_kobo else str(value)


def age_of(age: timedelta) -> str:
    """For a person: the two largest units of days, hours and minutes."""
    minutes = int(age.total_seconds()) // 60
    days, hours = minutes // 1440, minutes // 60 % 24
    return f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} m" if hours else f"{minutes} m"
