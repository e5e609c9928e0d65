"""`payagg reconcile` as an operator runs it, on a real database and a file; and what `doctor` names of it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from tests.support.processes import Command, one_line

NOW = datetime.now(UTC)
DAY = NOW - timedelta(days=2)
REFERENCE = f"PAY-{DAY:%Y%m%d}-ABCDEF"


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
    day = f"{DAY:%Y-%m-%d}"
    unreconciled = f"days of provider_a without a reconciliation (`payagg reconcile`): {day}"
    assert unreconciled in run("doctor").stdout
    file = tmp_path / "export.csv"
    file.write_text(f"Reference,Amount,Currency,Status\n{REFERENCE},1500.00,NGN,success\n")
    command = ("reconcile", "--gateway", "provider_a", "--from", day, "--file", str(file))
    for effect in (f"PAID_THERE {REFERENCE} CHARGE", None):
        done = run(*command)
        assert done.returncode == 0, done.stderr
        assert ("MOVED" in done.stdout) is (effect is not None)
        assert effect is None or effect in done.stdout
    assert "1 payments of 1,500.00 NGN here, 1 lines of 1,500.00 NGN there" in done.stdout
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT status FROM payments").fetchone() == ("SUCCESS",)
    told = run("doctor")
    assert unreconciled not in told.stdout
    assert "_ONLY" not in told.stdout
    assert told.returncode == 0, told.stdout
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE reconciliation_runs SET started_at = %s", [DAY])
    assert unreconciled in run("doctor").stdout, "runs of an unfinished day"


@pytest.mark.usefixtures("handed_off")
def test_findings_that_no_anomaly_tells_of_are_named_by_doctor(database_url: str, run: Command, tmp_path: Path) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE payments SET status = 'SUCCESS', settled_at = updated_at")
    file = tmp_path / "export.csv"
    command = ("reconcile", "--gateway", "provider_a", "--from", f"{DAY:%Y-%m-%d}", "--file", str(file))
    for amount, is_here_only, is_unreadable in (("odd", True, True), ("1500.00", False, False)):
        file.write_text(f"Reference,Amount,Currency,Status\n{REFERENCE},{amount},NGN,success\n")
        assert run(*command).returncode == 0
        told = run("doctor").stdout
        assert ("1 HERE_ONLY in reconciliations of provider_a in 30 days" in told) is is_here_only
        assert (f": {REFERENCE} (rec_" in told) is is_here_only
        assert ("1 UNREADABLE in reconciliations of provider_a in 30 days" in told) is is_unreadable


def test_what_an_operator_can_mend_is_one_line(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "export.csv"
    file.write_text("Reference,Amount,Currency,Status,Odd\n")
    command = ("reconcile", "--gateway", "provider_a", "--from", "2026-01-31")
    for arguments, line in (
        ((*command, "--file", str(file)), "file: Has an unknown column 'odd'."),
        ((*command, "--file", str(tmp_path)), "file: Cannot be read: Is a directory."),
        (command, "gateway: Has no credentials for LIVE."),
        (("reconcile", "--gateway", "gtb", "--from", "2026-01-31"), "gateway: Must be one of provider_a, provider_b."),
    ):
        assert line in one_line(run(*arguments))
