"""The merchants' receivers: they check each event's signature and write down what they accepted."""

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from lab.simulation.process import Life
from lab.simulation.world import SimulatedWorld
from payagg.application.ports.webhooks import DeliveryAttemptResult
from payagg.domain.signing import signature
from payagg.domain.values import Environment

TRY_SECONDS = 15.0


@dataclass
class ShopReceiver:
    """One merchant's address."""

    world: SimulatedWorld
    url: str
    business_id: str
    environment: Environment
    key: bytes
    is_closed: bool = False  # it says so: 410

    def receive(self, headers: Mapping[str, str], body: bytes) -> int:
        world = self.world
        id, at = headers["webhook-id"], int(headers["webhook-timestamp"])
        if not hmac.compare_digest(headers["x-service-signature"], signature([self.key], id, at, body)):
            world.fail("INV4", f"{self.url} got {id} with a wrong signature")
        if self.is_closed:
            return 410
        if world.chance.happens(world.faults.merchant_error):
            return 500
        event = msgspec.json.decode(body)
        if event["environment"] != self.environment.value:
            world.fail("INV5", f"{self.url} is for {self.environment.value} and got {id}")
        reference, sequence = event["data"]["reference"], event["sequence"]
        heard = world.ledger.heard[self.url, reference]
        if heard.setdefault(sequence, id) != id:
            world.fail("INV4", f"{self.url} got event {sequence} of {reference} as {heard[sequence]} and as {id}")
        if world.ledger.accepted[self.url][id]:
            world.sometimes["a delivery arrives twice"] += 1
        if any(later > sequence for later in heard):
            world.sometimes["events arrive out of order"] += 1
        world.ledger.accepted[self.url][id] += 1
        world.tell("shop", f"accepts {event['type']} {sequence} of {reference}")
        return 200


class SimulatedSender:
    """A Sender: one life's way to the merchants."""

    def __init__(self, life: Life, receivers: Mapping[str, ShopReceiver]) -> None:
        self._life, self._receivers = life, receivers

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryAttemptResult:
        world, receiver = self._life.world, self._receivers[url]
        self._life.point("at a try")
        started = world.loop.time()
        try:
            async with asyncio.timeout(TRY_SECONDS):
                status = await world.call(self._life.name, f"POST {url}", partial(receiver.receive, headers, body))
        except TimeoutError:
            return DeliveryAttemptResult(None, "no answer", int(TRY_SECONDS * 1000))
        self._life.point("at a try")
        return DeliveryAttemptResult(
            status, None if status == 200 else f"status {status}", int((world.loop.time() - started) * 1000)
        )
