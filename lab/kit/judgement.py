"""What must hold whatever failed before: INV1 to INV8, read from the database, the providers' books and the merchant's
webhooks, and held against what the buyers were told."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import psycopg
from psycopg.rows import dict_row

from lab.kit.buyer import FINAL, Buyer, Purchase
from payagg.adapters.postgres.doctor import examine
from payagg.application.payments.expiry import sweep_expired
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.dev.fake_providers import Book
from payagg.entrypoints.dev.fake_providers.book import FakeCharge
from tests.support.receivers import Receiver

EVERYTHING = """
SELECT p.reference, p.idempotency_key, p.status, p.amount, p.currency, p.environment, p.business_id,
       ARRAY(SELECT to_status FROM transitions t WHERE t.reference = p.reference ORDER BY t.sequence) AS history,
       (SELECT count(*) FROM attempts a WHERE a.reference = p.reference AND a.hand_off_url IS NOT NULL) AS hand_offs
FROM payments p
"""
LEFT = """
SELECT 'a claim' FROM attempts WHERE state = 'CLAIMED'
UNION ALL SELECT 'a delivery' FROM deliveries WHERE status = 'PENDING' OR token IS NOT NULL
UNION ALL SELECT 'an event' FROM inbox WHERE handled_at IS NULL
"""


async def sweep(services: Services) -> None:
    """Everything that a worker does, once."""
    await services.provider_events.retry_due()
    await sweep_expired(services.settlement)
    await services.reconciler.run_once()
    await services.dispatcher.run_once()


def left_over(url: str) -> list[str]:
    """What somebody still holds or is to do."""
    with psycopg.connect(url) as connection:
        return [str(what) for (what,) in connection.execute(LEFT)]


def stored_in(url: str) -> int:
    """How many payments there are."""
    with psycopg.connect(url) as connection:
        return len(connection.execute("SELECT FROM payments").fetchall())


def paid_in(url: str) -> set[str]:
    """The references that the database calls paid."""
    with psycopg.connect(url) as connection:
        return {
            reference for (reference,) in connection.execute("SELECT reference FROM payments WHERE status = 'SUCCESS'")
        }


def wrongs(
    url: str,
    buyers: Sequence[Buyer],
    books: Mapping[str, Book] | None = None,
    merchant: Receiver | None = None,
    *,
    is_quiet: bool = False,
) -> list[str]:
    """What does not hold. `books` are the providers' by slug: without one nobody looks for charges, without a merchant
    for webhooks. `is_quiet`: nothing may be left to do, and every payment is paid and told."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        rows = {row["reference"]: row for row in connection.execute(EVERYTHING)}
    wrong = [f"doctor: {rule.rule}" for rule in examine(url).rules if not rule.is_kept]
    wrong += [f"INV7: {what} is left" for what in left_over(url)] if is_quiet else []
    wrong += [one for buyer in buyers for one in buyer.false]
    keys = Counter(row["idempotency_key"] for row in rows.values())
    wrong += [f"INV6: the key {key} has {number} payments" for key, number in keys.items() if number > 1]
    # An initiation without an answer may have been stored all the same.
    wrong += [
        f"the key {key}: nobody asked for it" for key in keys.keys() - {key for one in buyers for key in one.asked}
    ]
    bodies: defaultdict[str, dict[str, set[bytes]]] = defaultdict(lambda: defaultdict(set))  # by reference and event id
    for received in merchant.received if merchant is not None else ():
        bodies[json.loads(received.body)["data"]["reference"]][received.headers["webhook-id"]].add(received.body)
    wrong += [f"the merchant is told of {one}, which is not ours" for one in bodies.keys() - rows.keys()]
    charges = {slug: _by_reference(book) for slug, book in (books or {}).items()}
    for buyer in buyers:
        for one in buyer.purchases:
            row = rows.get(one.reference)
            if row is None:
                wrong.append(f"INV8: {one.reference} was acknowledged and is gone")
                continue
            history = (["PENDING"] if one.sent_to else []) + [FINAL]
            status, hand_offs, told = row["status"], row["hand_offs"], row["history"]
            facts = tuple(row[name] for name in ("amount", "currency", "environment", "business_id"))
            holds = {
                f"INV1: {hand_offs} hand-offs": hand_offs <= 1,
                f"INV2: told as {one.status}, and {status}": one.status != FINAL or status == FINAL,
                f"INV5: a fact changed: {facts}": facts == (one.amount, "NGN", "SANDBOX", buyer.business),
            }
            if is_quiet:
                holds[f"INV1: {hand_offs} hand-offs to {one.sent_to}"] = hand_offs == bool(one.sent_to)
                holds[f"INV2: paid, and {status}"] = status == FINAL
                holds[f"INV3: {told}"] = told == history
            if one.slug in charges:
                holds |= _charged(charges[one.slug][one.reference], one)
            if merchant is not None:
                holds |= _told(bodies[one.reference], told, is_quiet=is_quiet)
            wrong += [f"{one.reference}, {what}" for what, is_so in holds.items() if not is_so]
    return wrong


def _by_reference(book: Book) -> defaultdict[str, list[FakeCharge]]:
    """The charges of each payment, over all of its attempts' references."""
    found = defaultdict[str, list[FakeCharge]](list)
    for charge in book.charges.values():
        found[charge.reference.partition(".")[0]].append(charge)
    return found


def _charged(charges: Sequence[FakeCharge], one: Purchase) -> dict[str, bool]:
    paid = sum(charge.paid for charge in charges)
    return {
        "INV1: one reference charged twice": all(charge.opened == 1 for charge in charges),
        f"INV1: paid {paid} times": paid == one.is_paid,
    }


def _told(bodies: Mapping[str, set[bytes]], history: list[str], *, is_quiet: bool) -> dict[str, bool]:
    told = sorted(json.loads(body)["type"] for one in bodies.values() for body in one)
    expected = sorted(f"payment.{status.lower()}" for status in history)
    success = told.count("payment.success") == expected.count("payment.success")
    return {
        "INV4: one event id, two bodies": all(len(one) == 1 for one in bodies.values()),
        f"INV4: told of {told}": told == expected if is_quiet else success,
    }
