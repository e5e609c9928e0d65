"""What must hold once everything is quiet, whatever failed before: the invariants INV1 to INV8. It is read from the
provider's book, the merchant's webhooks and the database itself."""

import json

import psycopg

from payagg.adapters.postgres.doctor import examine
from payagg.domain.payment import Payment
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.dev.fake_providers import Book
from tests.support.provider_world import World
from tests.support.receivers import Receiver

FACTS = ("amount", "currency", "environment", "business_id", "reference")


async def sweep(services: Services) -> None:
    """Everything that a worker does, once."""
    await services.provider_events.retry_due()
    await services.settlement.expire_due()
    await services.reconciler.run_once()
    await services.dispatcher.run_once()


def left_over(url: str) -> list[str]:
    """What somebody still holds or is to do."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT 'a claim' FROM attempts WHERE state = 'CLAIMED'"
            " UNION ALL SELECT 'a delivery' FROM deliveries WHERE status = 'PENDING' OR token IS NOT NULL"
            " UNION ALL SELECT 'an event' FROM inbox WHERE handled_at IS NULL"
        ).fetchall()
    return [str(row[0]) for row in rows]


def wrongs_of_everything(url: str) -> list[str]:
    broken = [f"doctor: {rule.rule}" for rule in examine(url).rules if not rule.is_kept]
    left = left_over(url)
    return broken + ([f"INV7: {left} is left"] if left else [])


async def wrongs_of(
    world: World, merchant: Receiver, book: Book, before: Payment, *, is_provided: bool = True
) -> list[str]:
    """What does not hold of a payment that was paid once, at the provider of that book unless it was simulated."""
    after = await world.read(before)
    charges = [one for reference, one in book.charges.items() if reference.partition(".")[0] == before.reference]
    handed = [one for one in await world.attempts(before) if one.hand_off is not None]
    history = await world.history(before)
    bodies: dict[str, set[bytes]] = {}
    for received in merchant.received:
        if json.loads(received.body)["data"]["reference"] == before.reference:
            bodies.setdefault(received.headers["webhook-id"], set()).add(received.body)
    told = sorted(json.loads(body)["type"] for one in bodies.values() for body in one)
    holds = {
        "INV1: one reference charged twice": all(charge.opened == 1 for charge in charges),
        "INV1: not paid exactly once": book.paid(before.reference) == is_provided,
        "INV1: not one hand-off": len(handed) == is_provided,
        f"INV2: paid, and {after.status.value}": after.status.value == "SUCCESS",
        f"INV3: {history}": history == (["PENDING", "SUCCESS"] if is_provided else ["SUCCESS"]),
        "INV5: a fact changed": all(getattr(before, one) == getattr(after, one) for one in FACTS),
        "INV4: one event id, two bodies": all(len(one) == 1 for one in bodies.values()),
        f"INV4: told of {told}": told == sorted(f"payment.{status.lower()}" for status in history),
    }
    return [f"{before.reference}, {wrong}" for wrong, is_so in holds.items() if not is_so]
