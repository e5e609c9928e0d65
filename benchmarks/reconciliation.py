"""How long a day's reconciliation takes, and its memory.

Paid LIVE payments of one day go into a fresh embedded Postgres by SQL; the lines come from a list in memory, a hundred
a page, so that the figures are payagg's own: the provider's pace (five requests a second) comes on top. Of each
thousand payments one lacks its line and one has another amount, and one line is of nobody.
"""

import asyncio
import resource
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import psycopg

from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.system import SystemClock, SystemEntropy
from payagg.application.payments.settlement import Settlement
from payagg.application.ports.providers import LinePage
from payagg.application.reports.reconciliation import ReconciliationRuns
from payagg.domain.audit import Actor, ActorRealm
from payagg.domain.reconciliation import LineKind, ProviderLine
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import Environment

PAGE = 100
FILL = """
SET session_replication_role = replica;
CREATE TEMP TABLE given AS
SELECT n, 'PAY-20250131-' || upper(lpad(to_hex(n * 2654435761::bigint % 16777216), 6, '0')) AS reference,
       timestamptz '2025-01-31 00:00Z' + n * interval '0.5 s' AS at
FROM generate_series(1, {number}) n;
INSERT INTO payments (reference, business_id, environment, amount, currency, status, gateway, sequence, created_at,
                      updated_at, expires_at, settled_at)
SELECT reference, 'biz_' || lpad(to_hex(n % 500), 32, '0'), 'LIVE', 10000 + n % 90000 * 50, 'NGN', 'SUCCESS',
       'provider_a', 2, at, at + interval '90 s', at + interval '1 hour', at + interval '90 s' FROM given;
INSERT INTO attempts (reference, number, gateway_id, gateway, provider_reference, token, state, lease_until,
                      hand_off_kind, hand_off_url, created_at, handed_off_at, asks, last_ask_at, environment)
SELECT reference, 1, 'gw_provider_a', 'provider_a', reference, md5(reference), 'HANDED_OFF', at, 'REDIRECT', '',
       at + interval '30 s', at + interval '31 s', 1, at + interval '90 s', 'LIVE' FROM given;
"""
DAY = date(2025, 1, 31)
AT = datetime(2025, 1, 31, 12, tzinfo=UTC)


class ListedDay:
    """What a provider would list, from the payments' own amounts; lines are made as they are asked for."""

    kinds = (LineKind.CHARGE,)

    def __init__(self, url: str) -> None:
        self._url = url

    async def lines(
        self, kind: LineKind, since: datetime, until: datetime, credentials: Mapping[str, str], environment: Environment
    ) -> AsyncIterator[LinePage]:
        with psycopg.connect(self._url) as connection, connection.cursor("listed") as cursor:
            cursor.execute("SELECT reference, amount FROM payments ORDER BY reference DESC")
            number = 0
            while rows := cursor.fetchmany(PAGE):
                made = []
                for reference, amount in rows:
                    number += 1
                    if number % 1000 == 1:
                        continue
                    told = f"PAY-20250130-{number:06}" if number % 1000 == 2 else reference
                    kobo = amount + (number % 1000 == 3)
                    report = ProviderReport(
                        told, Outcome.SUCCEEDED, "success", frozenset({kobo}), environment=environment
                    )
                    made.append(ProviderLine(LineKind.CHARGE, str(number), kobo, AT, report))
                yield LinePage(made)

    def read_statement(self, content: bytes, environment: Environment) -> LinePage:
        return LinePage([])


class OneAccount:
    """In the place of the gateways: there are credentials, and nothing else is asked."""

    providers: Mapping[str, Any] = {"provider_a": None}

    async def of_slug(self, _tx: Any, _slug: str, _environment: Environment) -> Any:
        return self

    credentials: Mapping[str, str] = {}


async def measured(url: str) -> tuple[float, float, Mapping[str, Any]]:
    """Seconds of a first run and of a second one, and the totals."""
    store = PostgresStore(url, pool_size=2, pgbouncer=False)
    clock, entropy = SystemClock(), SystemEntropy("PAY")
    runs = ReconciliationRuns(
        store,
        clock,
        entropy,
        OneAccount(),  # type: ignore[arg-type]
        Settlement(store, clock, entropy),
        {"provider_a": ListedDay(url)},
    )
    taken = []
    for _ in range(2):
        began = time.perf_counter()
        run, _findings = await runs.reconcile(
            "provider_a", Environment.LIVE, DAY, DAY, by=Actor(ActorRealm.CLI, "benchmark")
        )
        taken.append(time.perf_counter() - began)
    await store.close()
    return taken[0], taken[1], run.totals


def measure(server: str, chosen: Namespace) -> str:
    migrate(server)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(FILL.format(number=chosen.payments).encode())
        connection.execute("VACUUM ANALYZE")
    first, second, totals = asyncio.run(measured(server))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return f"{totals}\n{chosen.payments:,} payments: {first:.1f} s, again {second:.1f} s; peak {peak} MiB"
