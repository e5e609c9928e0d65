"""One process that does one thing and meets one crash on the way: URL, folder, time, step, kind, verb, words."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from enum import Enum
from functools import partial
from pathlib import Path

from payagg_testing.builders import AN_ADMIN, a_business
from payagg_testing.clocks import ManualClock

from lab.kit.around import around
from lab.kit.processes import cut_connections, kill_postgres
from payagg.adapters.logos import ObjectLogos
from payagg.adapters.postgres.delivery_queue.queue import PostgresDeliveryQueue
from payagg.adapters.postgres.repositories.payments import PostgresPayments
from payagg.adapters.postgres.store import PostgresStore, PostgresTransaction
from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.registry import providers_of
from payagg.adapters.webhooks.http1 import HttpConnection
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application.schemas.checkout import ProcessPayment
from payagg.application.schemas.payments import TestPayment as DashboardPayment
from payagg.entrypoints.bootstrap import Services
from tests.support.assembly import SETTINGS, services_over
from tests.support.images import an_image

REACHED = "reached"  # the file that says so
KEY, AMOUNT, GATEWAY = "order 1", 150_000, "gw_provider_a"
Step = Callable[[str], None]


class CrashKind(Enum):
    """Our own process, the whole database server, or every connection to it."""

    PROCESS = "our process killed"
    POSTGRES = "Postgres killed"
    CONNECTION = "connections cut"


def crash_at_step(step: str, kind: CrashKind, url: str, folder: Path) -> Step:
    """The hook of every port: at the first `step` of that name the crash happens."""
    left = [step]

    def reached(name: str) -> None:
        if name not in left:
            return
        left.remove(name)
        (folder / REACHED).touch()
        if kind is CrashKind.PROCESS:
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind is CrashKind.POSTGRES:
            kill_postgres(folder.parent / "state")
        else:
            cut_connections(url)

    return reached


class SteppingStore(PostgresStore):
    """Calls a step before the COMMIT of a block that wrote a payment."""

    def __init__(self, url: str, step: Step) -> None:
        super().__init__(url, pool_size=3, pgbouncer=False)
        self.step, self.has_written = step, False

    def wrote(self, answer: bool | None) -> None:
        self.has_written |= answer is not False

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[PostgresTransaction]:
        async with super().begin() as tx:
            self.has_written = False
            yield tx
            if self.has_written:
                self.step("commit")


def services_with(step: Step, url: str, folder: Path, now: str) -> Services:
    """Every port calls its steps."""
    store, providers = SteppingStore(url, step), providers_of(allow_loopback=True)
    around(PostgresPayments, "add", before=partial(step, "add"), after=store.wrote)
    around(PostgresPayments, "save", after=store.wrote)
    around(PostgresPayments, "lock_aggregate", before=partial(step, "claim"))
    for provider in providers.values():
        for call in ("start_charge", "fetch_charge"):
            around(provider, call, after=lambda _: step("answered"))
    for claim in ("claim", "claim_poison_message"):
        around(PostgresDeliveryQueue, claim, after=lambda found: step("claimed") if found else None)
    around(HttpConnection, "data_received", before=partial(step, "unread"))
    around(HttpSender, "send", after=lambda _: step("sent"))
    around(ObjectLogos, "put", after=lambda _: step("put"))
    around(ObjectLogos, "delete", before=partial(step, "delete"))
    return services_over(
        store,
        replace(SETTINGS, state_dir=folder),
        ManualClock(datetime.fromisoformat(now)),
        providers=providers,
        logos=ObjectLogos(folder / "logos"),
        crash_point=step,
    )


async def done(services: Services, step: Step, verb: str, *words: str) -> str:
    """What the caller was told."""
    if verb == "initiate":
        command = DashboardPayment(amount=AMOUNT, idempotency_key=KEY)
        made = await services.payments.initiate_test(command, a_business(), by=AN_ADMIN)
        step("reply")
        return made.payment.reference
    if verb == "process":
        slug = words[1] if words[1:] else "provider_a"
        return (await services.checkout.process(words[0], ProcessPayment(gateway_slug=slug))).checkout_url
    if verb == "verify":
        return (await services.verification.verify(words[0])).status.value
    if verb == "receive":
        body, header, signature = words
        route = PROVIDERS[0].routes[0]
        await services.provider_events.receive(route, body.encode(), {header: signature})
    elif verb == "logo":
        await services.gateways.upload_logo(GATEWAY, an_image("JPEG"), by=AN_ADMIN)
    else:
        if verb == "reconcile":
            await services.reconciler.run_once()
        await services.dispatcher.run_once()
    return "done"


async def main(url: str, place: str, now: str, at: str, kind: str, verb: str, *words: str) -> None:
    folder = Path(place)
    step = crash_at_step(at, CrashKind[kind], url, folder)
    print(await done(services_with(step, url, folder, now), step, verb, *words))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
