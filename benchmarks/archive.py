"""`python -m benchmarks.archive [--payments 100000]`: what an archived payment weighs here and there, and how fast it goes.

Payments of one past day, each paid through a provider at its first attempt after two transitions and three calls, as
most are, go into a fresh embedded Postgres by SQL; `payagg archive` writes them to a folder of the same disk, and in
a second run removes them. The table is written between the markers of docs/operating/archive.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg

from benchmarks.deployment import OWN
from benchmarks.harness import postgres, write_between
from payagg.adapters.postgres.migrations.upgrade import migrate

DOCUMENT = OWN / "docs" / "operating" / "archive.md"
FIGURES = ("<!-- figures: written by `python -m benchmarks.archive` -->", "<!-- figures: end -->")
HISTORY = ("transitions", "attempts", "provider_calls")
FILL = """
SET session_replication_role = replica;
CREATE TEMP TABLE given AS
SELECT n, 'PAY-20250131-' || upper(lpad(to_hex(n * 2654435761::bigint % 16777216), 6, '0')) AS reference,
       timestamptz '2025-01-31 00:00Z' + n * interval '0.5 s' + random() * interval '0.4 s' AS at,
       CASE WHEN n % 3 = 0 THEN 'provider_b' ELSE 'provider_a' END AS gateway
FROM generate_series(1, {number}) n;
INSERT INTO payments (reference, business_id, environment, amount, currency, status, gateway, sequence, created_at,
                      updated_at, expires_at, settled_at)
SELECT reference, 'biz_' || lpad(to_hex(n % 500), 32, '0'), 'LIVE', 10000 + n % 90000 * 50, 'NGN', 'SUCCESS', gateway,
       2, at, at + interval '90 s', at + interval '1 hour', at + interval '90 s' FROM given;
INSERT INTO transitions
SELECT reference, 1, 'INITIATED', 'PENDING', 'PROCESS', 'payer', NULL, at + interval '31 s' FROM given
UNION ALL
SELECT reference, 2, 'PENDING', 'SUCCESS', 'SUCCEED', 'event', reference, at + interval '90 s' FROM given
ORDER BY 1, 2;
INSERT INTO attempts (reference, number, gateway_id, gateway, provider_reference, token, state, lease_until,
                      hand_off_kind, hand_off_url, created_at, handed_off_at, asks, last_ask_at, environment)
SELECT reference, 1, 'gw_' || lpad(to_hex(1), 32, '0'), gateway, reference, md5(reference), 'HANDED_OFF', at, 'REDIRECT', '',
       at + interval '30 s', at + interval '31 s', 1, at + interval '90 s', 'LIVE' FROM given;
INSERT INTO provider_calls
SELECT reference, 'pcl_' || lpad(to_hex((extract(epoch FROM at) * 1000)::bigint + step), 12, '0') || substr(md5(n::text || step), 1, 20),
       1, gateway, CASE step WHEN 0 THEN 'start_charge' ELSE 'fetch_charge' END,
       CASE step WHEN 0 THEN 'REDIRECT' WHEN 1 THEN 'PENDING' ELSE 'SUCCEEDED' END,
       CASE step WHEN 0 THEN NULL WHEN 1 THEN 'ongoing' ELSE 'success' END, 100 + (n * 37 + step) % 900,
       CASE step WHEN 1 THEN 'reconciler' ELSE 'verify' END, at + (30 + step * 30) * interval '1 s'
FROM given, generate_series(0, 2) step;
DROP TABLE given;
"""
SIZES = "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class WHERE relname = ANY(%s)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--payments", type=int, default=100_000)
    number = parser.parse_args().payments
    with postgres() as url, tempfile.TemporaryDirectory(prefix="payagg-archive-") as folder:
        migrate(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(FILL.format(number=number).encode())
            connection.execute("VACUUM ANALYZE")
        before = sizes(url)
        seconds, memory = archived(url, folder)
        files = {path: path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()}
        removing, memory_removing = archived(url, folder, "--remove")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM FULL")
        after = sizes(url)
    assert not any(after[table][0] > 100_000 for table in HISTORY), "everything was removed"
    here = sum(sum(before[table]) for table in HISTORY)
    stays = sum(after["archived_payments"])
    rows = [
        ("rows of its history in Postgres, with indexes", f"{here / number:,.0f} bytes"),
        ("what stays of them in `archived_payments`", f"{stays / number:,.0f} bytes"),
        ("the same in Parquet, with the payment itself", f"{sum(files.values()) / number:,.0f} bytes"),
        (
            "written, read back and recorded",
            f"{number / seconds:,.0f} payments a second, {7 * number / seconds:,.0f} rows",
        ),
        ("read back, compared and removed", f"{number / removing:,.0f} payments a second"),
        ("most memory of the command", f"{max(memory, memory_removing) >> 20:,} MiB"),
    ]
    lines = ["| Of a payment | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    write_between("\n".join(lines), DOCUMENT, FIGURES)
    print("\n".join(lines))


def sizes(url: str) -> dict[str, tuple[int, int]]:
    with psycopg.connect(url) as connection:
        found = connection.execute(SIZES, [[*HISTORY, "payments", "archived_payments"]]).fetchall()
    return {name: (rows, indexes) for name, rows, indexes in found}


def archived(url: str, folder: str, *words: str) -> tuple[float, int]:
    """Seconds that the command took, and the most memory that it had, in bytes."""
    environment = {**os.environ, "PAYAGG_DATABASE_URL": url, "PAYAGG_ARCHIVE_STORE": folder}
    began, most = time.monotonic(), 0
    command = [sys.executable, "-m", "payagg", "archive", "--before", "2025-02-01", *words]
    process = subprocess.Popen(command, env=environment)
    while process.poll() is None:
        try:
            most = max(most, psutil.Process(process.pid).memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.05)
    if process.wait():
        raise SystemExit("the archive failed")
    return time.monotonic() - began, most


if __name__ == "__main__":
    main()
