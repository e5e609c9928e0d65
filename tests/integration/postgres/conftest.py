"""The checkout at a `site` whose providers send what a test makes them send, and nothing else."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from payagg.entrypoints.dev.fake_providers import WebhookMode
from payagg.entrypoints.dev.fake_providers.steering import serve_asgi
from payagg.entrypoints.http.app import create_app
from tests.integration.http.providers.test_inbound import InboundWorld
from tests.support.answers.recorder import recorded
from tests.support.provider_world import world_on


@pytest.fixture
async def site(database_url: str, tmp_path: Path) -> AsyncIterator[InboundWorld]:
    async with world_on(database_url, tmp_path) as world, serve_asgi(recorded(create_app(world.services))) as base:
        for book in (world.fakes.paystack.book, world.fakes.payaza.book):
            book.webhooks = WebhookMode.NEVER
        yield InboundWorld(**world.__dict__, base=base)
