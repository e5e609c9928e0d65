"""What of all that was acknowledged is not so: by the database, the provider's book and the merchant's webhooks."""

from collections import Counter
from collections.abc import Sequence

import psycopg

from lab.kit.buyer import FINAL, Buyer
from payagg.entrypoints.dev.fake_providers import Book
from tests.support.receivers import Receiver


def paid_in(url: str) -> set[str]:
    """The references that the database calls paid."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT reference FROM payments WHERE status = 'SUCCESS'").fetchall()
    return {reference for (reference,) in rows}


def losses(url: str, buyers: Sequence[Buyer], book: Book | None = None, merchant: Receiver | None = None) -> list[str]:
    """Once everything is quiet. Without a book nobody looks for charges, without a merchant for webhooks."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT reference, status, idempotency_key FROM payments").fetchall()
    status = {reference: word for reference, word, _ in rows}
    wrong = [one for buyer in buyers for one in buyer.false]
    wrong += [f"the key {key} has {n} payments" for key, n in Counter(key for *_, key in rows).items() if n > 1]
    heard = Counter[str]() if merchant is None else merchant.told("payment.success")
    for buyer in buyers:
        for one in buyer.purchases:
            if one.reference not in status:
                wrong.append(f"{one.reference} was acknowledged and is gone")
            elif one.status == FINAL != status[one.reference]:
                wrong.append(f"{one.reference} was told as paid and is {status[one.reference]}")
            if book is not None and one.sent_to and book.paid(one.reference) != 1:
                wrong.append(f"{one.reference} was charged {book.paid(one.reference)} times")
            if merchant is not None and heard[one.reference] != (status.get(one.reference) == FINAL):
                wrong.append(f"the merchant heard {heard[one.reference]} times that {one.reference} is paid")
    # An initiation without an answer may have been stored all the same.
    asked = {key for buyer in buyers for key in buyer.asked}
    wrong += [f"{reference} is there, and nobody asked for it" for reference, _, key in rows if key not in asked]
    wrong += [f"the merchant heard of {one}, which is not ours" for one in heard.keys() - status.keys()]
    return wrong
