"""The steps at which tests stop a process are not in a production process, whatever its environment says."""

import httpx
import psycopg
import pytest
from payagg_testing.builders import an_endpoint

from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.security import AesVault
from payagg.domain.webhook import secret_context
from tests.support.assembly import KEYS, services_over
from tests.support.http_world import Api
from tests.support.processes import serving, wait_until

pytestmark = pytest.mark.anyio
ADDRESS = "https://127.0.0.1:9/"  # which the sender refuses: a try that fails at once


@pytest.mark.parametrize("label", ["P4", "claimed", "sent", "recorded"])
async def test_a_serving_process_goes_on_past_every_step_of_a_charge_and_a_delivery(
    database_url: str, store: PostgresStore, label: str
) -> None:
    with serving(database_url, CRASH_AT=label) as (process, origin):
        async with httpx.AsyncClient(base_url=f"{origin}/api/v1", trust_env=False, timeout=30) as client:
            api = Api(services_over(store), origin, client)
            shop = await api.open_shop()
            sealed = AesVault(KEYS).seal(b"s" * 32, secret_context("whe_1"))
            async with store.begin() as tx:
                await tx.webhooks.add_endpoint(an_endpoint(business_id=shop.business.id, url=ADDRESS, secret=sealed))
            reference = (await api.initiate(shop))["reference"]
            choice = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}
            answer = await client.post(f"/public/payments/{reference}/process", json=choice)
            assert answer.status_code == 200
        wait_until(lambda: has_been_tried(database_url))
        assert process.poll() is None


def has_been_tried(database_url: str) -> bool:
    """A delivery was claimed, sent in vain and recorded."""
    with psycopg.connect(database_url) as connection:
        found = connection.execute("SELECT 1 FROM deliveries WHERE last_error IS NOT NULL").fetchone()
    return found is not None
