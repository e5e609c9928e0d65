"""The `world` of the checkout's tests, and the `site` where its providers send what a test makes them send."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from payagg.entrypoints.dev.fake_providers import WebhookMode
from payagg.entrypoints.dev.fake_providers.steering import serve_asgi
from payagg.entrypoints.http.app import create_app
from tests.integration.http.providers.test_inbound import InboundWorld
from tests.support.answers.recorder import recorded
from tests.support.provider_world import World, world_on


@pytest.fixture
async def world(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(database_url, tmp_path) as world:
        yield world


@pytest.fixture
def providers_send_no_events(world: World) -> None:
    for book in (world.fakes.paystack.book, world.fakes.payaza.book):
        book.webhooks = WebhookMode.NEVER


@pytest.fixture
async def site(world: World, providers_send_no_events: None) -> AsyncIterator[InboundWorld]:
    async with serve_asgi(recorded(create_app(world.services))) as base:
        yield InboundWorld(**world.__dict__, base=base)
