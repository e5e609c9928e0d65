"""kill -9 before and after the COMMIT of an event: nothing is lost and nothing happens twice."""

import json
from datetime import timedelta

import pytest

from payagg.application.payments.provider_events import FIRST_RETRY
from tests.integration.http.providers.test_inbound import charge_event, signed
from tests.support.provider_world import World

pytestmark = [pytest.mark.usefixtures("providers_send_no_events")]
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("label", ["W3", "W4"])
async def test_an_event_survives_its_receiver(world: World, label: str) -> None:
    payment = await world.handed_over()
    body = json.dumps(charge_event(payment))
    name, signature = next(iter(signed("provider_a/sandbox", body.encode()).items()))
    await world.dies_at(label, "receive", body, name, signature)
    world.clock.move(FIRST_RETRY + SECOND)
    await world.services.provider_events.retry_due()
    assert await world.history(payment) == ["PENDING", "SUCCESS"]
    assert await world.events(payment) == (2, 2)
    assert await world.services.provider_events.retry_due() == 0
