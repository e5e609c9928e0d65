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

from lab.kit.around import AroundProvider
from lab.kit.processes import cut_connections, kill_postgres
from payagg.adapters.logos import ObjectLogos
from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.payments import PostgresPayments
from payagg.adapters.postgres.repositories.webhook_events import PostgresWebhookEvents
from payagg.adapters.postgres.store import PostgresTransaction
from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.registry import providers_of
from payagg.adapters.webhooks.http1 import HttpConnection
from payagg.application.ports.payments import PaymentAggregate
from payagg.application.schemas.payments import ProcessPayment
from payagg.application.schemas.payments import TestPayment as DashboardPayment
from payagg.domain.payment import Payment, Transition
from payagg.entrypoints.bootstrap import Services
from tests.support.assembly import SETTINGS, services_over
from tests.support.delivering import MortalSender, MortalStore
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


class SteppingPayments(PostgresPayments):
    """Calls a step before a payment is added and before it is locked for a claim, and knows whether it wrote one."""

    def __init__(self, connection: StatementConnection, step: Step) -> None:
        super().__init__(connection, PostgresWebhookEvents(connection))
        self.step, self.has_written = step, False

    async def add(self, payment: Payment) -> bool:
        self.step("add")
        self.has_written = await super().add(payment)
        return self.has_written

    async def save(self, payment: Payment, transition: Transition) -> None:
        await super().save(payment, transition)
        self.has_written = True

    async def lock_aggregate(self, reference: str) -> PaymentAggregate | None:
        self.step("claim")
        return await super().lock_aggregate(reference)


class SteppingStore(MortalStore):
    """Calls a step before the COMMIT of a block that wrote a payment, and MortalQueue's around the outbox."""

    def __init__(self, database_url: str, step: Step) -> None:
        super().__init__(database_url, step)
        self.step = step

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[PostgresTransaction]:
        async with super().begin() as tx:
            payments = SteppingPayments(tx._connection, self.step)
            vars(tx)["payments"] = payments
            yield tx
            if payments.has_written:
                self.step("commit")


class SteppingLogos(ObjectLogos):
    """A step behind each new file and before an old one goes."""

    def __init__(self, folder: Path, step: Step) -> None:
        super().__init__(folder)
        self.step = step

    async def put(self, path: str, content: bytes) -> None:
        await super().put(path, content)
        self.step("put")

    async def delete(self, path: str) -> None:
        self.step("delete")
        await super().delete(path)


def step_before_answers_are_read(step: Step) -> None:
    read = HttpConnection.data_received

    def stepped(connection: HttpConnection, data: bytes) -> None:
        step("unread")
        read(connection, data)

    HttpConnection.data_received = stepped  # type: ignore[method-assign, assignment]


def services_with(step: Step, url: str, folder: Path, now: str) -> Services:
    providers = providers_of(allow_loopback=True)
    return services_over(
        SteppingStore(url, step),
        replace(SETTINGS, state_dir=folder),
        ManualClock(datetime.fromisoformat(now)),
        providers={slug: AroundProvider(one, after=partial(step, "answered")) for slug, one in providers.items()},
        sender=MortalSender(step),
        logos=SteppingLogos(folder / "logos", step),
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
        return (await services.checkout.process(words[0], ProcessPayment(gateway_slug="provider_a"))).checkout_url
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
    step_before_answers_are_read(step)
    print(await done(services_with(step, url, folder, now), step, verb, *words))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
