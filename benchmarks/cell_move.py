"""`python -m benchmarks.cell_move`: how fast a business moves between two cells, and for how long its keys are closed.

Two databases of one embedded Postgres with its default durability, each payment with two transitions, an attempt, two
events and two deliveries of the past. The table is written between the markers of docs/operating/moving-a-business.md.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

import psycopg

from benchmarks.deployment import OWN
from benchmarks.harness import postgres, write_between
from payagg.adapters.postgres.doctor import examine
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.security import AesVault
from payagg.adapters.system import DatabaseClock, SystemEntropy
from payagg.application.cell_move import CellMove
from payagg.domain.audit import Actor, ActorRealm

DOCUMENT = OWN / "docs" / "operating" / "moving-a-business.md"
MARKERS = ("<!-- figures: written by `make cell-move` -->", "<!-- figures: end -->")
SIZES = (0, 1_000, 10_000)
SHOP = "biz_moving"
REFERENCE = "'PAY-20250101-' || upper(lpad(to_hex(n), 6, '0'))"
FILL = (
    f"INSERT INTO businesses VALUES ('{SHOP}', 'Moving', 'ACTIVE', 'APPROVED', now(), now())",
    f"INSERT INTO members VALUES ('{SHOP}', 'owner', 'OWNER')",
    f"""INSERT INTO api_keys (id, business_id, environment, name, public_key, secret_hash, secret_last4, status,
        created_at) VALUES ('key_1', '{SHOP}', 'SANDBOX', 'bench', 'spk_sand_1', sha256('1'), 'abcd', 'ACTIVE', now())""",
    f"""INSERT INTO payments (reference, business_id, environment, amount, currency, status, gateway, customer_email,
        customer_name, metadata, idempotency_key, sequence, created_at, updated_at, expires_at, settled_at)
        SELECT {REFERENCE}, '{SHOP}', 'SANDBOX', 150000, 'NGN', 'SUCCESS', 'sandbox', 'payer@example.com', 'Ada Obi',
        '{{"order": "1"}}', 'order ' || n, 2, now(), now(), now(), now() FROM generate_series(1, %(count)s) n""",
    f"""INSERT INTO idempotency_keys SELECT '{SHOP}', 'SANDBOX', 'order ' || n, {REFERENCE}
        FROM generate_series(1, %(count)s) n""",
    f"""INSERT INTO transitions SELECT {REFERENCE}, s, CASE s WHEN 1 THEN 'INITIATED' ELSE 'PENDING' END,
        CASE s WHEN 1 THEN 'PENDING' ELSE 'SUCCESS' END, CASE s WHEN 1 THEN 'PROCESS' ELSE 'SUCCEED' END, 'bench', NULL,
        now() FROM generate_series(1, %(count)s) n, generate_series(1, 2) s""",
    f"""INSERT INTO attempts (reference, number, gateway, provider_reference, token, state, lease_until, hand_off_kind,
        hand_off_url, created_at, handed_off_at, asks) SELECT {REFERENCE}, 1, 'sandbox', {REFERENCE}, 'token',
        'HANDED_OFF', now(), 'SIMULATOR', 'https://pay.example', now(), now(), 0 FROM generate_series(1, %(count)s) n""",
    f"""INSERT INTO events (reference, sequence, id, type, business_id, environment, body, created_at)
        SELECT {REFERENCE}, s, 'evt_' || n || '_' || s, CASE s WHEN 1 THEN 'payment.pending' ELSE 'payment.success' END,
        '{SHOP}', 'SANDBOX', convert_to(json_build_object('id', n, 'data', json_build_object('reference', {REFERENCE},
        'amount', 150000, 'currency', 'NGN', 'environment', 'SANDBOX', 'filler', repeat('x', 400)))::text, 'UTF8'), now()
        FROM generate_series(1, %(count)s) n, generate_series(1, 2) s""",
    f"""INSERT INTO deliveries (reference, id, event_id, event_type, sequence, business_id, environment, url, lane,
        status, attempts, created_at) SELECT {REFERENCE}, 'dlv_' || n || '_' || s, 'evt_' || n || '_' || s,
        'payment.success', s, '{SHOP}', 'SANDBOX', 'https://shop.example/hook', 'own', 'DELIVERED', 1, now()
        FROM generate_series(1, %(count)s) n, generate_series(1, 2) s""",
)


@dataclass(frozen=True)
class TimedMove(CellMove):
    """Notes how long each batch is in the outbox."""

    away: list[float] = field(default_factory=list)

    async def _deliver(self, business_id: str, gateways: Mapping[str, str]) -> int:
        begun = time.perf_counter()
        done = await super()._deliver(business_id, gateways)
        if done:
            self.away.append(time.perf_counter() - begun)
        return done


@contextmanager
def database(server: str, name: str) -> Iterator[str]:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        url = server.replace("/payagg?", f"/{name}?")
        migrate(url)
        yield url
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def fill(url: str, count: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in FILL:
            connection.execute(statement.encode(), {"count": count} if "%(count)s" in statement else None)
        connection.commit()
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE")


async def moved(source_url: str, target_url: str, count: int) -> str:
    """One row of the table."""
    source, target = (PostgresStore(url, pool_size=1, pgbouncer=False) for url in (source_url, target_url))
    try:
        clock = DatabaseClock(source.now)
        await clock.synchronise()
        vault, by = AesVault((("k1", bytes(32)),)), Actor(ActorRealm.CLI, "bench")
        move = TimedMove(source, target, clock, SystemEntropy("PAY"), vault, "PAY", "PBX", {}, lambda _: None)
        begun = time.perf_counter()
        done = await move.run(SHOP, by=by)
        seconds = time.perf_counter() - begun
    finally:
        await source.close()
        await target.close()
    if done.payments != count:
        raise SystemExit(f"{done.payments} of {count} payments moved.")
    for url in (source_url, target_url):
        broken = [finding.rule for finding in examine(url).rules if not finding.is_kept]
        if broken:
            raise SystemExit(f"broken after the move: {broken}")
    rate = f"{count / seconds:,.0f}" if count else "-"
    away = f"{median(move.away) * 1000:.0f} ms" if move.away else "-"
    return f"| {count:,} | {seconds:.1f} s | {rate} | {done.closed.total_seconds():.1f} s | {away} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cell_move", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="payments of the business")
    options = parser.parse_args()
    rows = ["| Payments | Move | A second | Keys closed for | One payment away for |", "|---|---|---|---|---|"]
    with postgres() as server:
        for count in options.sizes:
            with database(server, "source") as source_url, database(server, "target") as target_url:
                fill(source_url, count)
                rows.append(asyncio.run(moved(source_url, target_url, count)))
                print(rows[-1], flush=True)
    if tuple(options.sizes) == SIZES:
        write_between("\n".join(rows), DOCUMENT, MARKERS)


if __name__ == "__main__":
    main()
