"""docs/sql.md names every statement that a payment sends."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from payagg.adapters.postgres.pipeline import BEGIN, COMMIT, ROLLBACK, StatementConnection
from payagg.adapters.postgres.statement import Statement
from payagg.application.payments.expiry import sweep_expired
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.http_world import an_api
from tests.support.provider_rigs import SECRET_KEYS
from tests.support.provider_world import world_on
from tools.sql_page import STATEMENTS


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> set[bytes]:
    """The SQL that connections send."""
    statements: set[bytes] = set()
    send = StatementConnection.send

    def recording_send(connection: StatementConnection, statement: Statement, **values: Any) -> None:
        if statement not in (BEGIN, COMMIT, ROLLBACK):
            statements.add(statement.sql)
        send(connection, statement, **values)

    monkeypatch.setattr(StatementConnection, "send", recording_send)
    return statements


async def test_the_page_names_exactly_what_a_payment_sends(sent: set[bytes], database_url: str, tmp_path: Path) -> None:
    initiate, process, change = (
        {statement.sql for statement, _, _ in statements} for statements in STATEMENTS.values()
    )
    async with world_on(database_url, tmp_path) as world, an_api(world.services) as api:
        shop = await api.open_shop()
        await api.add_endpoint(shop)
        sent.clear()
        simulated = (await api.initiate(shop))["reference"]
        once = shop.as_sandbox | {"Idempotency-Key": "order-1"}
        reference = (await api.initiate(shop, once))["reference"]
        await api.initiate(shop, once)
        assert sent == initiate

        sent.clear()
        choice = {"gatewaySlug": "provider_a"}
        (await api.client.post(f"/public/payments/{reference}/process", json=choice)).raise_for_status()
        assert process <= sent <= process | change

        sent.clear()
        paystack = world.fakes.paystack
        paystack.book.webhooks = WebhookMode.HELD
        paystack.pay(reference)
        body = paystack.book.waiting[-1].body
        proof = {"x-provider_a-signature": paystack.signature(body, SECRET_KEYS["test"])}
        (await api.client.post("/webhooks/provider_a/sandbox", content=body, headers=proof)).raise_for_status()
        outcome = {"outcome": "SUCCESS"}
        path = f"/payments/{simulated}/simulate"
        (await api.client.post(path, json=outcome, headers=shop.as_sandbox)).raise_for_status()
        await api.initiate(shop)
        world.clock.move(timedelta(hours=2))
        assert await sweep_expired(world.services.settlement) == 1
        assert change <= sent <= initiate | process | change
