"""The outbox's sending side: due deliveries, partition by partition, leased with SKIP LOCKED.

A partition (column `lane`) is what fails together: mostly one endpoint. The next claim begins where the last one ended.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from payagg.adapters.postgres.delivery_queue.statements import (
    CLAIM,
    CLAIM_DUE,
    CLAIM_SUSPECT,
    DEACTIVATED,
    DUE,
    FINISH,
    OLDEST,
    PURGE_ENDPOINTS,
    RELEASE,
    SIGNERS,
    purge_deliveries,
    purge_events,
)
from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.repositories.accounts import PostgresAudit
from payagg.adapters.postgres.repositories.endpoints import ENDPOINT
from payagg.adapters.postgres.repositories.webhook_events import DELIVERY, LOCK_METADATA, PURGE_METADATA, id_at
from payagg.application.accounts.audit import switched_off
from payagg.application.ports.webhooks import SWITCHED_OFF, UNSIGNED, ClaimedDelivery, DeliveryResult
from payagg.domain.delivery import Delivery, DeliveryStatus
from payagg.domain.webhook import ANSWERS_WELL, DEACTIVATE_AFTER, WebhookEndpoint

STATEMENTS_PER_CLAIM = 20  # bounds one claim, however many partitions wait


class _Leased(NamedTuple):
    """What CLAIM returns of one delivery that it leased."""

    delivery: Delivery
    is_on: bool
    is_failing: bool
    is_lapsed: bool
    body: bytes


@dataclass
class PostgresDeliveryQueue:
    """Each call is one short transaction. Raises Unavailable or Conflict; it is safe to repeat after either."""

    pool: StatementPool
    _after: str = ""

    async def claim(
        self,
        now: datetime,
        limit: int,
        failing: int,
        lease: timedelta,
        slow: Collection[str] = (),
    ) -> list[ClaimedDelivery]:
        limits = {"now": now, "until": now + lease, "slow": list(slow)}
        async with self.pool.transaction() as connection:
            leased = await self._lap(connection, limit, failing, limits)
            signers = await _signers(connection, leased) if leased else []
        return await self._sendable(leased, signers, now)

    async def claim_poison_message(self, now: datetime, lease: timedelta) -> ClaimedDelivery | None:
        async with self.pool.transaction() as connection:
            rows = await connection.rows(CLAIM_SUSPECT, now=now, until=now + lease)
            leased = [_lease_of(row) for row in rows if row[1] is not None]
            signers = await _signers(connection, leased) if leased else []
        return next(iter(await self._sendable(leased, signers, now)), None)

    async def _sendable(
        self, leased: Sequence[_Leased], signers: Sequence[WebhookEndpoint], now: datetime
    ) -> list[ClaimedDelivery]:
        """The deliveries that can be sent; the others are ended."""
        claimed: list[ClaimedDelivery] = []
        ended: list[DeliveryResult] = []
        by_id = {signer.id: signer for signer in signers}
        for delivery, is_on, is_failing, is_lapsed, body in leased:
            endpoint = by_id.get(delivery.partition)
            own = [endpoint] if endpoint is not None else _of_business(signers, delivery)
            secrets = tuple((signer.id, sealed) for signer in own for sealed in signer.signing_secrets(now))
            url = endpoint.url if endpoint else delivery.url or ""
            one = ClaimedDelivery(delivery, body, url, secrets, is_lapsed, is_failing)
            if is_on and secrets:
                claimed.append(one)
            else:
                ended.append(DeliveryResult(one, UNSIGNED if is_on else SWITCHED_OFF, now, retry_at=None))
        if ended:
            await self._record(ended, tried=False)
        return claimed

    async def _lap(
        self, connection: StatementConnection, limit: int, failing: int, limits: dict[str, Any]
    ) -> list[_Leased]:
        """Due deliveries; when there are many, in at most one round over the partitions, from where the last claim
        ended."""
        leased: list[_Leased] = []
        rows = await connection.rows(CLAIM_DUE, **limits, limit=limit, failing=failing)
        if not rows[0][0]:
            return [_lease_of(row) for row in rows if row[1] is not None]
        is_round = not self._after
        for _ in range(STATEMENTS_PER_CLAIM):
            left = {"limit": limit - len(leased), "failing": failing - sum(one.is_failing for one in leased)}
            # At least one row: it says where the next claim continues.
            rows = await connection.rows(CLAIM, **limits, **left, after=self._after)
            self._after = rows[0][0] or ""
            leased += [_lease_of(row) for row in rows if row[1] is not None]
            if len(leased) >= limit or (not self._after and is_round):
                break
            is_round = is_round or not self._after
        return leased

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
            "tried": [tried and not result.lost for result in results],
            "lost": [result.lost for result in results],
            "urls": ["" if result.uncounted else result.claimed.url for result in results],
            "lanes": list({result.claimed.delivery.partition for result in results}),
            "hopeless": DEACTIVATE_AFTER,
            "well": ANSWERS_WELL // timedelta(milliseconds=1),
        }
        async with self.pool.transaction() as connection:
            for endpoint_id, business_id in await connection.rows(FINISH, **values):
                cause = next(one for one in results if one.claimed.delivery.endpoint_id == endpoint_id)
                await PostgresAudit(connection).add(switched_off(cause, business_id))

    async def release(self, claimed: Sequence[ClaimedDelivery]) -> None:
        await self.pool.read(
            RELEASE,
            references=[one.delivery.reference for one in claimed],
            ids=[one.delivery.id for one in claimed],
            tokens=[one.delivery.token for one in claimed],
        )

    async def oldest_due(self, now: datetime) -> datetime | None:
        [(found,)] = await self.pool.read(OLDEST, now=now)
        return found  # type: ignore[no-any-return]

    async def due(self, now: datetime, limit: int) -> int:
        [(number,)] = await self.pool.read(DUE, now=now, limit=limit)
        return int(number)

    async def count_deactivated(self) -> int:
        [(number,)] = await self.pool.read(DEACTIVATED)
        return int(number)

    async def purge(self, before: datetime, limit: int) -> int:
        [(deliveries,)] = await self.pool.read(purge_deliveries(limit), before=id_at("dlv", before))
        async with self.pool.transaction() as connection:
            [(events, with_metadata)] = await connection.rows(purge_events(limit), before=id_at("evt", before))
            if with_metadata:
                connection.send(LOCK_METADATA, references=with_metadata)
                connection.send(PURGE_METADATA, references=with_metadata)
        [(endpoints,)] = await self.pool.read(PURGE_ENDPOINTS, limit=limit)
        return int(deliveries) + int(events) + int(endpoints)


def _lease_of(row: Any) -> _Leased:
    _, *delivery, is_on, is_failing, is_lapsed, body = row
    return _Leased(DELIVERY.load(delivery), is_on, is_failing, is_lapsed, body)


async def _signers(connection: StatementConnection, leased: Sequence[_Leased]) -> list[WebhookEndpoint]:
    """The endpoints behind the partitions, and those whose secrets sign for a payment's own webhookUrl."""
    lanes = {one.delivery.partition for one in leased if one.delivery.endpoint_id is not None}
    businesses = {one.delivery.business_id for one in leased if one.delivery.endpoint_id is None}
    return ENDPOINT.all(await connection.rows(SIGNERS, ids=list(lanes), businesses=list(businesses)))


def _of_business(signers: Sequence[WebhookEndpoint], delivery: Delivery) -> list[WebhookEndpoint]:
    if delivery.endpoint_id is not None:
        return []
    own = [signer for signer in signers if signer.business_id == delivery.business_id and signer.is_active]
    return [signer for signer in own if signer.environment is delivery.environment]


def _status(result: DeliveryResult) -> DeliveryStatus:
    if result.retry_at is not None:
        return DeliveryStatus.PENDING
    return DeliveryStatus.DELIVERED if result.sent.is_accepted else DeliveryStatus.FAILED
