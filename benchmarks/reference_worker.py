"""The comparison build's worker: polls the outbox, sends with one pooled httpx client, and records what came."""

import asyncio
import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import uvloop
from sqlalchemy import or_, select

from benchmarks.reference import sessions
from benchmarks.reference_journey import DeliveryRow, EndpointRow, EventRow

BATCH = 100
PAUSE_SECONDS = 0.1


async def deliver_due(client: httpx.AsyncClient) -> int:
    """Claims a batch, sends it, records it; how many there were."""
    async with sessions() as held:
        now = datetime.now(UTC)
        query = (
            select(DeliveryRow, EventRow, EndpointRow)
            .join(EventRow, (EventRow.reference == DeliveryRow.reference) & (EventRow.sequence == DeliveryRow.sequence))
            .join(EndpointRow, EndpointRow.id == DeliveryRow.endpoint_id)
            .where(DeliveryRow.status == "PENDING", DeliveryRow.next_attempt_at <= now)
            .where(or_(DeliveryRow.lease_until.is_(None), DeliveryRow.lease_until <= now))
            .order_by(DeliveryRow.next_attempt_at)
            .limit(BATCH)
            .with_for_update(of=DeliveryRow, skip_locked=True)
        )
        claimed = list((await held.execute(query)).all())
        for delivery, _, _ in claimed:
            delivery.attempts, delivery.last_attempt_at = delivery.attempts + 1, now
            delivery.lease_until = now + timedelta(minutes=1)
        await held.commit()
        codes = await asyncio.gather(*(send(client, event, endpoint) for _, event, endpoint in claimed))
        for (delivery, _, endpoint), code in zip(claimed, codes, strict=True):
            delivery.last_status_code, delivery.lease_until = code, None
            if code == httpx.codes.OK:
                delivery.status, delivery.next_attempt_at = "DELIVERED", None
                endpoint.successful = EndpointRow.successful + 1
            else:
                delivery.next_attempt_at = now + timedelta(minutes=1)
        await held.commit()
        return len(claimed)


async def send(client: httpx.AsyncClient, event: Any, endpoint: Any) -> int:
    """The answer's status; 0 where none came."""
    signature = hmac.new(b"k" * 32, event.body, hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "X-Service-Signature": signature}
    try:
        return (await client.post(endpoint.url, content=event.body, headers=headers)).status_code
    except httpx.HTTPError:
        return 0


async def main() -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        while True:
            if not await deliver_due(client):
                await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
