"""`payagg reconcile` as an operator runs it, on a real database and a file; and what `doctor` names of it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres_world import execute
from tests.support.processes import Command, one_line, succeeded

NOW = datetime.now(UTC)
DAY = NOW - timedelta(days=2)
REFERENCE = f"PAY-{DAY:%Y%m%d}-ABCDEF"
FROM_DAY = ("reconcile", "--gateway", "provider_a", "--from", f"{DAY:%Y-%m-%d}")


@pytest.fixture
def handed_off(database_url: str) -> None:
    """A LIVE payment of two days ago whose payer was sent to provider_a, which has credentials that nobody reads."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "INSERT INTO payments (reference, business_id, environment, amount, currency, status, gateway, sequence,"
            " created_at, updated_at, expires_at) VALUES (%s, 'biz_1', 'LIVE', 150000, 'NGN', 'INITIATED',"
            " 'provider_a', 0, %s, %s, %s)",
            [REFERENCE, DAY, DAY, NOW + timedelta(hours=1)],
        )
        connection.execute(
            "INSERT INTO attempts (reference, number, gateway_id, gateway, provider_reference, token, state,"
            " lease_until, hand_off_kind, hand_off_url, created_at, handed_off_at, asks, environment) VALUES"
            " (%s, 1, 'gw_a', 'provider_a', %s, 't', 'HANDED_OFF', %s, 'REDIRECT', 'https://p.example/', %s, %s, 0,"
            " 'LIVE')",
            [REFERENCE, REFERENCE, DAY, DAY, DAY],
        )
        connection.execute(
            "INSERT INTO gateways (id, slug, name, display_order, is_built_in, status, credentials, created_at,"
            " updated_at) VALUES ('gw_a', 'provider_a', 'A', 0, false, 'ACTIVE', 'sealed', now(), now())"
        )


@pytest.mark.usefixtures("handed_off")
def test_a_statement_settles_what_was_paid_and_its_day_is_reconciled(
    database_url: str, run: Command, tmp_path: Path
) -> None:
    unreconciled = f"days of provider_a without a reconciliation (`payagg reconcile`): {DAY:%Y-%m-%d}"
    assert unreconciled in run("doctor").stdout
    file = tmp_path / "export.csv"
    file.write_text(f"Reference,Amount,Currency,Status\n{REFERENCE},1500.00,NGN,success\n")
    first, again = (succeeded(run(*FROM_DAY, "--file", str(file))) for _ in range(2))
    assert f"PAID_THERE {REFERENCE} CHARGE" in first
    moved = "1,500.00 NGN here, 1,500.00 NGN there MOVED"
    assert (moved in first, "MOVED" in again) == (True, False)
    assert "1 payments of 1,500.00 NGN here, 1 lines of 1,500.00 NGN there" in again
    assert execute(database_url, "SELECT status FROM payments") == [("SUCCESS",)]
    told = succeeded(run("doctor"))
    assert (unreconciled in told, "_ONLY" in told) == (False, False)
    execute(database_url, "UPDATE reconciliation_runs SET started_at = %s", values=[DAY])
    assert unreconciled in run("doctor").stdout, "runs of an unfinished day"


@pytest.mark.usefixtures("handed_off")
def test_findings_that_no_anomaly_tells_of_are_named_by_doctor(database_url: str, run: Command, tmp_path: Path) -> None:
    unguarded = "SET session_replication_role = replica"
    execute(database_url, unguarded, "UPDATE payments SET status = 'SUCCESS', settled_at = updated_at")
    file = tmp_path / "export.csv"
    found = [f"1 {bucket} in reconciliations of provider_a in 30 days" for bucket in ("HERE_ONLY", "UNREADABLE")]
    for amount, is_found in (("odd", True), ("1500.00", False)):
        file.write_text(f"Reference,Amount,Currency,Status\n{REFERENCE},{amount},NGN,success\n")
        succeeded(run(*FROM_DAY, "--file", str(file)))
        told = run("doctor").stdout
        assert {words in told for words in (*found, f": {REFERENCE} (rec_")} == {is_found}


def test_what_an_operator_can_mend_is_one_line(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "export.csv"
    file.write_text("Reference,Amount,Currency,Status,Odd\n")
    for arguments, line in (
        (("--file", str(file)), "file: Has an unknown column 'odd'."),
        (("--file", str(tmp_path)), "file: Cannot be read: Is a directory."),
        ((), "gateway: Has no credentials for LIVE, or none that open here."),
        (("--gateway", "gtb"), "gateway: Must be one of provider_a, provider_b."),
    ):
        assert line in one_line(run(*FROM_DAY, *arguments))
