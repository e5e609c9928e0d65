"""Up to 64 clients at a few payments at a time, over HTTP, while processes and Postgres are killed and connections cut;
each payment's history must be one that a sequential payment could have had."""

import argparse
import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
from payagg_testing.fault_proxy import FaultProxy
from payagg_testing.network_faults import DropReply

from lab.kit.buyer import GOOD, a_client, refused
from lab.kit.figures import RunSummary
from lab.kit.places import a_folder, a_postgres
from lab.kit.processes import cut_connections, kill_postgres
from lab.kit.site import UNLIMITED, Site, a_site, opened_shop
from lab.linear.check import Operation
from lab.linear.faults import FAULTS, caught
from lab.linear.model import (
    CARDS,
    FAILED,
    MERCHANT,
    PAYER,
    PENDING,
    REVERSED,
    SIMULATOR,
    STRANGER,
    SUCCESS,
    A,
    Order,
    Told,
)
from payagg.adapters.postgres.doctor import examine

CREW = ("both", "both")
OPERATIONS = 120_000
ROUND = 10_000  # operations; what a round leaves is checked before the next
ORDERS, CLIENTS, CALLS = 16, 4, 8  # at one time, of each, and of each client
PAUSE = 0.02  # seconds between two calls of a client, at most
AFTER_FAULT = 0.3  # seconds; whoever had no answer waits
PATIENCE = 10.0  # seconds for an answer
VERIFY_EVERY = 2.2  # seconds; more often the provider is not asked
CALM = (200, 1200)  # answers from one fault to the next
LOST = 8  # answers
LOOKS = 30  # at a payment that is paid; a bound, never an expectation
STRIKES = ("process killed", "Postgres killed", "database cut off", "clients cut off", "answers lost")
# How often a client does what.
WISHES = {
    "initiate": 3, MERCHANT: 5, PAYER: 3, STRANGER: 1, "verify": 5, "process": 5, "simulate": 1, "pay": 3, "decline": 1,
}  # fmt: skip


@dataclass
class LinearLoad:
    """`strangers`: the headers of keys that none of these payments belongs to. `wrong`: answers that may never be."""

    site: Site
    clients: Sequence[httpx.AsyncClient]
    strangers: Sequence[dict[str, str]]
    chance: random.Random
    wrong: list[str] = field(default_factory=list)
    made: int = 0  # operations
    unknown: Counter[str] = field(default_factory=Counter)

    async def one_order(self, order: Order) -> None:
        await asyncio.gather(*(self._client(order) for _ in range(CLIENTS)))

    async def _client(self, order: Order) -> None:
        for _ in range(CALLS):
            await asyncio.sleep(self.chance.uniform(0, PAUSE))
            [wish] = self.chance.choices(list(WISHES), list(WISHES.values())) if order.reference else ["initiate"]
            if wish in ("pay", "decline"):
                self._at_provider(order, wish)
            elif await self.call(order, wish) is None:
                await asyncio.sleep(AFTER_FAULT)

    def _at_provider(self, order: Order, wish: str) -> None:
        """What the payer does at the provider's page; a card that is declined there ends the charge by its event."""
        book, now = self.site.provider.book, time.monotonic()
        names = (order.reference, *(f"{order.reference}.{number}" for number in range(2, 9)))
        charges = (book.charges[name] for name in names if name in book.charges)
        charge = next((one for one in charges if order.sent_to.endswith(f"/pay/ac{one.id}")), None)
        if charge is None or charge.status == "success":
            return
        order.history.append(Operation("report", now, asked=SUCCESS if wish == "pay" else FAILED))
        if wish == "pay":
            order.is_paid = True
            self.site.provider.pay(charge.reference)
        else:
            self.site.provider.decline(charge.reference)
            book.emit(self.site.provider.event(charge, "charge.failed"))

    async def call(self, order: Order, what: str) -> Told | None:
        """Makes a call and adds it to the history."""
        chance, site = self.chance, self.site
        payment, public = f"payments/{order.reference}", f"public/payments/{order.reference}"
        own, body, headers = site.shop.as_sandbox, dict[str, Any](), dict[str, str]()
        method, path, asked = "GET", f"{public}/{what}", None  # type: str, str, Any
        match what:
            case "initiate":
                method, path, headers = "POST", "payments/initiate", own
                body = {"amount": order.amount, "idempotencyKey": order.key}
            case "process":
                card = chance.choice(list(CARDS))
                is_simulator = chance.random() < 0.5
                asked = (SIMULATOR, CARDS[card]) if is_simulator else (A, "")
                body = {"gatewaySlug": SIMULATOR, "cardNumber": card} if is_simulator else {"gatewaySlug": A}
                method = "POST"
            case "simulate":
                asked = chance.choice((SUCCESS, FAILED, REVERSED))
                method, path, headers, body = "POST", f"{payment}/simulate", own, {"outcome": asked}
            case "read" | "stranger":
                path, headers = payment, own if what == MERCHANT else chance.choice(self.strangers)
            case "public":
                path = public
        self.made += 1
        more = {"json": body} if body else {}
        began = time.monotonic()
        told = await self._told(chance.choice(self.clients), method, path, headers=headers, **more)
        ended = time.monotonic()
        if what == "process" and asked and asked[1]:
            order.history.append(Operation("report", began, asked=asked[1]))
        if told is not None:
            order.history.append(Operation(what, began, ended, asked, told))
            order.reference, order.sent_to = told.reference or order.reference, told.sent_to or order.sent_to
        elif what in ("initiate", "process", "simulate", "verify"):
            order.history.append(Operation(what, began, asked=asked))
        return told

    async def _told(self, client: httpx.AsyncClient, method: str, path: str, **more: Any) -> Told | None:
        try:
            answer = await client.request(method, path, **more)
        except httpx.TransportError as error:
            self.unknown[type(error).__name__] += 1
            return None
        if answer.status_code in GOOD:
            data = answer.json()["data"]
            sent_to = data["checkoutUrl"] if path.endswith("process") else ""
            shown = (data["status"], data.get("gateway") or "", data["reference"], data.get("amount", 0))
            return Told(str(answer.status_code), *shown, sent_to)
        status, code = refused(answer)
        if status != 503:
            if status >= 500:
                self.wrong.append(f"{method} {path}: {status} {code}")
            return Told(code)
        self.unknown[code] += 1
        return None

    async def last_look(self, order: Order) -> None:
        """Once all is quiet: what was acknowledged is there, and who has paid is told so."""
        for _ in range(LOOKS):
            if order.reference or await self.call(order, "initiate"):
                verified, read = await self.call(order, "verify"), await self.call(order, MERCHANT)
                if verified and read and not (order.is_paid and read.status == PENDING):
                    return
            await asyncio.sleep(VERIFY_EVERY)
        self.wrong.append(f"{order.key}, {order.reference}: paid and not told so, or never answered")


async def strike(site: Site, folder: Path, url: str, proxies: Sequence[FaultProxy], chance: random.Random) -> str:
    """One fault, and its name."""
    [name] = chance.choices(STRIKES, (4, 1, 3, 4, 4))
    if name == "process killed":
        site.processes.kill(chance.choice(list(site.ports)))
        await asyncio.to_thread(site.start)
    elif name == "Postgres killed":
        await asyncio.to_thread(kill_postgres, folder / "state")
    elif name == "database cut off":
        with suppress(psycopg.OperationalError):  # it may be down
            await asyncio.to_thread(cut_connections, url)
    else:
        proxy = chance.choice(proxies)
        if name == "clients cut off":
            proxy.cut()
        else:
            proxy.impose(DropReply(), times=LOST)
    return name


async def a_round(
    load: LinearLoad, struck: Counter[str], operations: int, first: int, strikes: Callable[[], Awaitable[str]]
) -> list[Order]:
    """The orders of about so many operations; `first` numbers them."""
    orders, most = list[Order](), load.made + operations

    async def go_on() -> None:
        while load.made < most:
            number = first + len(orders)
            orders.append(Order(f"order {number}", 10_000 + number))
            await load.one_order(orders[-1])

    async def break_things() -> None:
        while load.made < most:
            due = load.made - load.unknown.total() + load.chance.randrange(*CALM)
            while load.made - load.unknown.total() < due and load.made < most:  # noqa: ASYNC110 - no one number is it
                await asyncio.sleep(AFTER_FAULT)
            struck[await strikes()] += 1

    await asyncio.gather(break_things(), *(go_on() for _ in range(ORDERS)))
    await asyncio.to_thread(load.site.start)
    await asyncio.gather(*map(load.last_look, orders))
    return orders


async def tried(tally: RunSummary, operations: int, seed: int) -> dict[str, Any]:
    """The figures of a run."""
    chance, struck, references, refused_orders, known = random.Random(seed), Counter[str](), 0, 0, set[str]()
    with a_folder("linear") as folder, a_postgres(folder) as postgres:
        url = postgres.url
        async with a_site(url, folder, CREW, **UNLIMITED) as site, AsyncExitStack() as stack:
            proxies = [await stack.enter_async_context(FaultProxy("127.0.0.1", port)) for port in site.ports.values()]
            clients = [await stack.enter_async_context(a_client(one.port, timeout=PATIENCE)) for one in proxies]
            strangers = [site.shop.as_live, (await opened_shop(url)).as_sandbox]
            load = LinearLoad(site, clients, strangers, chance)
            while load.made < operations:
                of_round = min(ROUND, operations - load.made)
                orders = await a_round(
                    load, struck, of_round, references, lambda: strike(site, folder, url, proxies, chance)
                )
                references += len(orders)
                known |= set(caught(orders))
                refused_orders += len(broken := list(filter(None, (order.wrong() for order in orders))))
                wrong = [*load.wrong, *(line for lines in broken for line in lines)]
                wrong += [f"doctor: {rule.rule}" for rule in examine(url).rules if not rule.is_kept]
                wrong += site.processes.errors() if wrong else []
                load.wrong = []
                told = f"{load.made:,} operations, {references:,} references, {load.unknown.total()} without an answer"
                tally.line(f"seed {seed}: {told}; " + ", ".join(f"{n} x {name}" for name, n in struck.items()), wrong)
            for name in list(site.processes.running):
                site.processes.stop(name)
    missed = [fault for fault in FAULTS if fault not in known]
    tally.line(f"{len(known)} of {len(FAULTS)} planted faults caught", missed)
    return {
        "operations": load.made,
        "references": references,
        "refused": refused_orders,
        "caught": len(known),
        "unknown": load.unknown.total(),
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab linear", description=__doc__)
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--seed", type=int, help="of the clients and the faults; the machine's timing is not drawn")
    chosen = parser.parse_args(arguments)
    tally = RunSummary("linear", arguments)
    seed = random.SystemRandom().randrange(10_000) if chosen.seed is None else chosen.seed
    figures = asyncio.run(tried(tally, chosen.operations, seed))
    return tally.end(whole=chosen.operations >= OPERATIONS, **figures)
