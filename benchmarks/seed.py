"""Rows for a benchmark, by the statements of seed.sql: 1,000 businesses with a sandbox key each, past payments."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from payagg.domain.payment_search import PaymentCursor

_named = re.split(r"^-- name: (.+)\n", Path(__file__).with_name("seed.sql").read_text(), flags=re.MULTILINE)
STATEMENTS = dict(zip(_named[1::2], _named[2::2], strict=True))
BUSINESSES, OPEN = 1000, 2_000
FIRST_DAY = date(2025, 1, 1)
WEEKS, A_WEEK = 12, 20_000
# The same in SQL, of a number `n`.
_NAME = (
    f"'PAY-' || to_char(date '{FIRST_DAY}' + 7 * (((n) - 1) / {A_WEEK} % {WEEKS})::int, 'YYYYMMDD')"
    " || '-' || upper(lpad(to_hex(n), 6, '0'))"
)


def secret(number: int) -> str:
    """The sandbox secret key of business `number`, counted from 1; seed.sql agrees."""
    return f"ssk_sand_{number:048x}"


def reference(number: int) -> str:
    """The reference of past payment `number`, counted from 1: of the first of WEEKS weeks, where there are few."""
    day = FIRST_DAY + timedelta(days=7 * ((number - 1) // A_WEEK % WEEKS))
    return f"PAY-{day:%Y%m%d}-{number:06X}"


def owner(number: int) -> int:
    """The business of past payment `number`."""
    return number % BUSINESSES + 1


def past(number: int, most: int) -> tuple[int, str]:
    """Business and reference of one of so many past payments, one after the other as `number` grows."""
    place = number % most + 1
    return owner(place), reference(place)


def cursor(number: int) -> str:
    """The place of past payment `number` in every list."""
    return PaymentCursor(datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=number), reference(number)).text


def open_reference(number: int) -> str:
    """The reference of open payment `number`, counted from 1: handed to the simulator, which says nothing yet."""
    return f"PAY-20250102-{number:06X}"


def businesses(url: str) -> None:
    _run(url, "businesses", "api keys", last=BUSINESSES)
    _tidied(url, "businesses", "api_keys")


def endpoints(url: str) -> None:
    """One endpoint and one owner for each business."""
    _run(url, "endpoints", "owners", last=BUSINESSES)


def payments(url: str, first: int, last: int) -> None:
    """Past payments first..last, settled, with their transitions."""
    _run(url, "settled payments", "their transitions", first=first, last=last)
    _tidied(url, "payments", "transitions")


def _past(url: str, first: int, last: int, *, names: tuple[str, ...]) -> None:
    _run(url, *names, first=first, last=last)


# What past payments leave; two of them may be loaded at once.
LOADS: tuple[Callable[[str, int, int], None], ...] = (
    payments,
    partial(_past, names=("events", "deliveries", "counts of deliveries")),
    *(partial(_past, names=(f"their {what}",)) for what in ("keys", "attempts")),
)


def handed_over(url: str, prefix: str, number: int, *, is_provided: bool = False) -> None:
    """Payments at the simulator, which says nothing of them, or at provider_a."""
    at = ("'provider_a'", "'gw_provider_a'", "NULL", "'REDIRECT'")
    if not is_provided:
        at = ("'sandbox'", "NULL", "'no_answer'", "'SIMULATOR'")
    words: dict[str, Any] = dict(zip(("gateway", "gateway_id", "scenario", "kind"), at, strict=True))
    _run(url, "pending payments", "their moves", "their hand-offs", reference=_after(prefix), last=number, **words)


def due_deliveries(url: str, number: int) -> None:
    """Deliveries that are due, over all endpoints."""
    now, reference = "(extract(epoch FROM now()) * 1000)", _after("PAY-20240501-")
    _run(url, "events", "deliveries", reference=reference, last=number, start=now, standing="'PENDING', 0, now()")


def _after(prefix: str) -> str:
    return f"'{prefix}' || upper(lpad(to_hex(n), 6, '0'))"


def _run(
    url: str,
    *names: str,
    reference: str = _NAME,
    first: int = 1,
    last: int = 0,
    start: str = "(extract(epoch FROM now()) * 1000 - 10000000)",  # the past's ids lie within the last three hours
    standing: str = "'DELIVERED', 1, NULL",
    **words: Any,
) -> None:
    """Each in order, in one transaction; triggers are off, for the machines are not what is measured."""
    id = f"lpad(to_hex(({start} + n)::bigint), 12, '0') || lpad(to_hex(n), 20, '0')"
    words |= {"reference": reference, "id": id, "standing": standing}
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        for name in names:
            connection.execute(STATEMENTS[name].format(first=first, last=last, **words).encode())


def _tidied(url: str, *tables: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for table in tables:
            connection.execute(f"VACUUM ANALYZE {table}".encode())
