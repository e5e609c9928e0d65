"""The outbox's sending side: what is due, partition by partition, leased with SKIP LOCKED.

A partition (column `lane`) is what shares a fate: mostly one endpoint. The next claim begins at the one where the
last one ended.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.delivery_queue.statements import (
    CLAIM,
    DEACTIVATED,
    FINISH,
    OLDEST,
    PURGE_DELIVERIES,
    PURGE_EVENTS,
    RELEASE,
    SIGNERS,
)
from payagg.adapters.postgres.repositories.audit import PostgresAudit
from payagg.adapters.postgres.repositories.webhooks import DELIVERY, ENDPOINT, id_at
from payagg.application.audit import switched_off
from payagg.application.ports import SWITCHED_OFF, UNSIGNED, ClaimedDelivery, DeliveryResult
from payagg.domain.webhook import DEACTIVATE_AFTER, Delivery, DeliveryStatus, WebhookEndpoint

STATEMENTS_PER_CLAIM = 20  # so one claim is bounded however many partitions wait


class ConnectionSource(Protocol):
    def connection(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """One transaction; raises Unavailable or Conflict."""


@dataclass
class PostgresDeliveryQueue:
    """Each call is its own short transaction. Raises Unavailable or Conflict; after either, doing it again is safe."""

    store: ConnectionSource
    _after: str = ""

    async def claim(
        self, now: datetime, limit: int, per_partition: int, failing: int, lease: timedelta
    ) -> list[ClaimedDelivery]:
        claimed: list[ClaimedDelivery] = []
        ended: list[DeliveryResult] = []
        async with self.store.connection() as connection:
            rows = await self._lap(connection, now, limit, per_partition, failing, lease)
            signers = await _signers(connection, rows) if rows else []
        by_id = {signer.id: signer for signer in signers}
        for row in rows:
            delivery = DELIVERY.load(row[1 : 1 + len(DELIVERY.names)])
            endpoint = by_id.get(delivery.partition)
            own = [endpoint] if endpoint is not None else _of_business(signers, delivery)
            secrets = tuple((signer.id, sealed) for signer in own for sealed in signer.signing_secrets(now))
            url = endpoint.url if endpoint else delivery.url or ""
            one = ClaimedDelivery(delivery, row.body, url, secrets, row.is_lapsed, row.is_failing)
            if row.is_on and secrets:
                claimed.append(one)
            else:
                ended.append(DeliveryResult(one, UNSIGNED if row.is_on else SWITCHED_OFF, now, retry_at=None))
        if ended:
            await self._record(ended, tried=False)
        return claimed

    async def _lap(
        self, connection: AsyncConnection, now: datetime, limit: int, per_partition: int, failing: int, lease: timedelta
    ) -> list[Any]:
        """Rows leased on at most one lap over the partitions, which begins where the last one ended."""
        rows: list[Any] = []
        is_round = not self._after
        for _ in range(STATEMENTS_PER_CLAIM):
            values = {"after": self._after, "now": now, "until": now + lease, "per_partition": per_partition}
            left = {"limit": limit - len(rows), "failing": failing - sum(row.is_failing for row in rows)}
            found = (await connection.execute(CLAIM, values | left)).all()
            rows += [row for row in found if row.id is not None]
            self._after = found[0].walked_to or ""
            if len(rows) >= limit or (not self._after and is_round):
                break
            is_round = is_round or not self._after
        return rows

    async def finish(self, results: Sequence[DeliveryResult]) -> None:
        await self._record(results, tried=True)

    async def _record(self, results: Sequence[DeliveryResult], *, tried: bool) -> None:
        values = {
            "references": [result.claimed.delivery.reference for result in results],
            "ids": [result.claimed.delivery.id for result in results],
            "tokens": [result.claimed.delivery.token for result in results],
            "statuses": [_status(result).value for result in results],
            "retries": [result.retry_at for result in results],
            "codes": [result.sent.status_code for result in results],
            "errors": [result.sent.error for result in results],
            "durations": [result.sent.duration_ms for result in results],
            "times": [result.at for result in results],
            "gone": [result.deactivate for result in results],
            "tried": [tried] * len(results),
            "urls": ["" if result.blameless else result.claimed.url for result in results],
            "lanes": list({result.claimed.delivery.partition for result in results}),
            "hopeless": DEACTIVATE_AFTER,
        }
        async with self.store.connection() as connection:
            for row in await connection.execute(FINISH, values):
                cause = next(one for one in results if one.claimed.delivery.endpoint_id == row.id)
                await PostgresAudit(connection).add(switched_off(cause, row.business_id))

    async def release(self, claimed: Sequence[ClaimedDelivery]) -> None:
        values = {
            "references": [one.delivery.reference for one in claimed],
            "ids": [one.delivery.id for one in claimed],
            "tokens": [one.delivery.token for one in claimed],
        }
        async with self.store.connection() as connection:
            await connection.execute(RELEASE, values)

    async def oldest_due(self, now: datetime) -> datetime | None:
        async with self.store.connection() as connection:
            found: datetime | None = (await connection.execute(OLDEST, {"now": now})).scalar_one()
        return found

    async def deactivated(self) -> int:
        async with self.store.connection() as connection:
            return int((await connection.execute(DEACTIVATED)).scalar_one())

    async def purge(self, before: datetime, limit: int) -> int:
        gone = 0
        for statement, prefix in ((PURGE_DELIVERIES, "dlv"), (PURGE_EVENTS, "evt")):
            async with self.store.connection() as connection:
                values = {"before": id_at(prefix, before), "limit": limit}
                gone += int((await connection.execute(statement, values)).scalar_one())
        return gone


async def _signers(connection: AsyncConnection, rows: Sequence[Any]) -> list[WebhookEndpoint]:
    """The endpoints behind the partitions, and those whose secrets sign for a payment's own webhookUrl."""
    lanes = {row.lane for row in rows if row.endpoint_id is not None}
    businesses = {row.business_id for row in rows if row.endpoint_id is None}
    found = await connection.execute(SIGNERS, {"ids": list(lanes), "businesses": list(businesses)})
    return [ENDPOINT.load(row) for row in found]


def _of_business(signers: Sequence[WebhookEndpoint], delivery: Delivery) -> list[WebhookEndpoint]:
    if delivery.endpoint_id is not None:
        return []
    own = [signer for signer in signers if signer.business_id == delivery.business_id and signer.is_active]
    return [signer for signer in own if signer.environment is delivery.environment]


def _status(result: DeliveryResult) -> DeliveryStatus:
    if result.retry_at is not None:
        return DeliveryStatus.PENDING
    return DeliveryStatus.DELIVERED if result.sent.is_accepted else DeliveryStatus.FAILED
