"""The worker: what happens without a request, and how it survives and stops."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from payagg_testing.builders import AN_ADMIN
from payagg_testing.memory import MemoryStore
from structlog.testing import capture_logs

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.gateways.seed import seed_gateways
from payagg.application.ports.outside import Unavailable
from payagg.application.schemas.gateways import UpdateCredentials
from payagg.domain.audit import ActorRealm
from payagg.domain.payment import Status
from payagg.entrypoints.process import worker
from tests.support.assembly import SETTINGS, named, services_over, with_parts
from tests.support.audit_trail import entries
from tests.support.http_world import an_api, working
from tests.support.receivers import a_receiver, until


def services_with(**stubs: dict[str, Any]) -> Any:
    """In memory, some of them played by these functions."""
    played: dict[str, Any] = {name: SimpleNamespace(**functions) for name, functions in stubs.items()}
    return with_parts(services_over(MemoryStore()), **played)


@pytest.mark.rule("gateways.19")
async def test_an_unpaid_payment_expires_as_its_merchant_hears_and_secrets_end_with_their_gateway(
    store: PostgresStore, capsys: pytest.CaptureFixture[str]
) -> None:
    services = services_over(store, replace(SETTINGS, checkout_ttl=timedelta(seconds=1)))
    await seed_gateways(services.gateways, "builtin", named("provider_a"))
    command = UpdateCredentials(credentials={"sandboxSecretKey": "sk_test_1"})
    await services.gateways.set_credentials("gw_provider_a", command, by=AN_ADMIN)
    await services.gateways.delete("gw_provider_a", by=AN_ADMIN)
    async with an_api(services) as api, a_receiver() as receiver:
        shop = await api.open_shop()
        await api.add_endpoint(shop, receiver.origin)
        reference = (await api.initiate(shop))["reference"]
        async with working(services, pace=0.05):
            await until(lambda: bool(receiver.received))
        assert b'"payment.failed"' in receiver.received[0].body
    async with store.begin() as tx:
        payment, gateway = await tx.payments.get(reference), await tx.gateways.get_any("gw_provider_a")
    assert payment is not None
    assert (payment.status, payment.failure_reason) == (Status.FAILED, "EXPIRED")
    assert gateway is not None
    assert not gateway.has_credentials
    assert "gateway secrets wiped" in capsys.readouterr().out
    (told,) = await entries(store, action="gateway.wipe_secrets")
    assert (told.realm, told.subject, told.object_id) == (ActorRealm.CLOCK, "settling", "gw_provider_a")


@pytest.mark.parametrize(
    "error",
    [Unavailable("away"), pytest.param(RuntimeError("a defect"), marks=pytest.mark.error_lines("sweep failed"))],
)
async def test_a_sweep_that_fails_is_tried_again_and_stops_no_other(error: Exception) -> None:
    calls: Counter[str] = Counter()

    async def fails() -> int:
        calls["drains"] += 1
        raise error

    async def works() -> int:
        calls["inbound"] += 1
        return 0

    services = services_with(gateways={"end_drains": fails}, provider_events={"retry_due": works})
    with capture_logs() as lines:
        async with working(services):
            await until(lambda: min(calls["drains"], calls["inbound"]) >= 2)
    told = next(line for line in lines if line.get("sweep") == "drains")
    # The reason, or where it broke: docs/operating/runbook.md sends people here.
    assert told.get("reason") == "away" or (told["trace"][0], told["trace"][-1][-8:]) == ("RuntimeError", "in fails")


async def test_a_loop_that_ends_by_itself_ends_the_worker_with_its_error() -> None:
    async def ends(stop: asyncio.Event) -> None:
        raise RuntimeError("a defect")

    async def purge() -> int:
        return 0

    with pytest.raises(RuntimeError, match="a defect"):
        await worker.run(services_with(dispatcher={"run": ends, "purge": purge}), asyncio.Event())


async def test_a_worker_told_to_stop_while_a_sweep_hangs_stops_nonetheless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "STOP_SECONDS", 0.1)
    started = asyncio.Event()

    async def hangs() -> int:
        started.set()
        await asyncio.Event().wait()
        return 0

    async with working(services_with(gateways={"end_drains": hangs})):
        await started.wait()
