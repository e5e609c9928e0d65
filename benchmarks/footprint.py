"""What a paid payment leaves in the database, in bytes: rows and indexes by table, and the write-ahead log that it cost.

The log is told twice: right after a checkpoint, when the first change of each page writes the page whole, and without
such pages, which is the cost where checkpoints are far apart.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import psycopg
import uvloop

from benchmarks import journey_calls as calls
from benchmarks import seed
from benchmarks.client import Connection, connected, share
from benchmarks.deployment import OWN, Deployment
from benchmarks.harness import count, wait_for, whole_pages_off
from benchmarks.journey import receiver

CONNECTIONS = 16
Sizes = dict[str, tuple[int, int]]  # bytes of a table's rows and of its indexes
SIZES = """
SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
INDEXES = """
SELECT c.relname, pg_relation_size(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = 'public'::regnamespace
"""
LOG = "SELECT wal_records, wal_fpi, wal_bytes FROM pg_stat_wal"


def measure(server: str, secrets: dict[str, str], number: int) -> dict[str, Any]:
    """The bytes of `number` journeys, each with a webhook delivered, divided by `number`."""
    with ExitStack() as stack:
        payagg = Deployment(stack, "footprint", OWN, server, secrets)
        target = receiver(stack)
        payagg.endpoints(f"{target}/hook")
        payagg.serve()
        payagg.configure_provider()
        stack.enter_context(payagg.worker())

        def journeys(first: int) -> None:
            before = count(target)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_journeys(payagg.port, first, number))
            wait_for(target, before + number)
            time.sleep(3)  # for the worker to write down what it delivered

        journeys(0)  # what is made once, and the room that a table's first rows leave
        with psycopg.connect(payagg.url, autocommit=True) as connection:
            sizes, indexes = _sizes(connection), _indexes(connection)
            whole = _logged(connection, lambda: journeys(number))
            grown, grown_indexes = _sizes(connection), _indexes(connection)
            with whole_pages_off(payagg.url):
                bare = _logged(connection, lambda: journeys(2 * number))
    tables = {
        name: [round((rows - sizes[name][0]) / number), round((own - sizes[name][1]) / number)]
        for name, (rows, own) in grown.items()
        if (rows, own) != sizes[name]
    }
    return {
        "bytes of rows and of indexes": tables,
        "in all": [sum(rows for rows, _ in tables.values()), sum(own for _, own in tables.values())],
        "bytes by index": {
            name: round((size - indexes[name]) / number)
            for name, size in sorted(grown_indexes.items())
            if size != indexes[name]
        },
        "log after a checkpoint": {name: round(value / number, 1) for name, value in whole.items()},
        "log without whole pages": {name: round(value / number, 1) for name, value in bare.items()},
    }


async def _journeys(port: int, first: int, number: int) -> None:
    async def one(connection: Connection, order: int) -> None:
        await calls.whole(connection, order % seed.BUSINESSES + 1, f"{time.time_ns()}-{order}")

    async with connected(port, CONNECTIONS) as connections:
        await share(connections, range(first, first + number), one)


def _sizes(connection: psycopg.Connection[Any]) -> Sizes:
    return {name: (rows, own) for name, rows, own in connection.execute(SIZES).fetchall()}


def _indexes(connection: psycopg.Connection[Any]) -> dict[str, int]:
    found: dict[str, int] = dict(connection.execute(INDEXES).fetchall())
    return found


def _logged(connection: psycopg.Connection[Any], work: Callable[[], None]) -> dict[str, float]:
    """What the write-ahead log took up while `work` ran, from a checkpoint on."""
    connection.execute("CHECKPOINT")
    before = connection.execute(LOG).fetchone()
    work()
    time.sleep(1)  # sessions tell what they wrote now and then
    after = connection.execute(LOG).fetchone()
    assert before is not None
    assert after is not None
    names = ("records", "whole pages", "bytes")
    return {name: float(late) - float(early) for name, early, late in zip(names, before, after, strict=True)}
