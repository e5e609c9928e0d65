"""The fake providers of `dev`: our adapters find them at the addresses that they are given."""

import httpx

from payagg.adapters.providers.provider_b.client import QUERY
from payagg.adapters.system import SystemEntropy
from payagg.entrypoints.dev.providers import fake_providers
from tests.support.assembly import SETTINGS


async def test_provider_b_can_be_asked_about_a_charge() -> None:
    async with (
        fake_providers(SETTINGS, "http://127.0.0.1:1", SystemEntropy("PAY")) as (_, credentials),
        httpx.AsyncClient(trust_env=False) as client,
    ):
        for name in ("sandboxBaseUrl", "liveBaseUrl"):
            assert (await client.get(credentials["provider_b"][name] + QUERY)).status_code != 404
