"""The small commands, each run as an operator runs it, and the serving process."""

import getpass
import json
import re
import socket
import time
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.entrypoints.process.python_flaws import python_flaw
from tests.support.assembly import TOKENS, services_over
from tests.support.http_world import an_api, bearer
from tests.support.ports import free_port
from tests.support.processes import PATIENCE, SECRETS, Command, one_line, payagg, serving, started, wait_until


def a_business(run: Command, *arguments: str) -> str:
    made = run("business", "create", "--name", "Ada's", "--owner", "ada", *arguments)
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["id"])


def stored(database_url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(query.encode()).fetchall()


def execute(database_url: str, *statements: str) -> None:
    with psycopg.connect(database_url) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_a_business_is_created_changed_and_given_members(database_url: str, run: Command) -> None:
    business, made = partial(run, "business"), a_business(run)
    assert json.loads(business("set", made, "--kyc", "PENDING").stdout)["kyc"] == "PENDING"
    # All of it is refused, or nothing.
    told = business("set", made, "--kyc", "APPROVED", "--status", "SUSPENDED")
    assert "KYC cannot move from PENDING to APPROVED" in one_line(told)
    assert stored(database_url, "SELECT id, name, status, kyc_status FROM businesses") == [
        (made, "Ada's", "ACTIVE", "PENDING")
    ]
    assert "keeps at least one OWNER" in one_line(business("member", made, "--sub", "ada", "--remove"))
    assert business("member", made, "--sub", "bo", "--role", "OWNER").returncode == 0
    gone = business("member", made, "--sub", "ada", "--remove")
    assert json.loads(gone.stdout) == {"id": made, "sub": "ada"}
    assert stored(database_url, "SELECT subject, role FROM members") == [("bo", "OWNER")]


@pytest.mark.rule("audit.3")
def test_what_a_command_changes_is_in_the_audit_trail_with_its_account_and_host(run: Command) -> None:
    made = a_business(run)
    run("business", "set", made, "--kyc", "PENDING")
    run("business", "set", made, "--kyc", "APPROVED")  # refused: no entry
    told = run("audit", "--business", made)
    assert told.returncode == 0, told.stderr
    newest, *older = told.stdout.splitlines()
    who = f"cli:{getpass.getuser()} from {socket.gethostname()}"
    assert newest.endswith(f"{who}  business.update {made}  kycStatus: NOT_SUBMITTED -> PENDING")
    assert len(older) == 2
    assert any(line.endswith(f"{who}  member.set ada of {made}  role: none -> OWNER") for line in older)
    page = json.loads(run("audit", "--json", "--limit", "1").stdout)
    (entry,) = page["entries"]
    assert (entry["realm"], entry["action"], entry["requestId"]) == ("cli", "business.update", None)
    assert page["hasMore"]
    rest = run("audit", "--after", page["nextCursor"])
    assert rest.stdout.splitlines() == older
    first = run("audit", "--limit", "1").stdout
    assert first.splitlines() == [newest, f"There is more: --after {page['nextCursor']}"]
    for filters, number in (
        (("--action", "member.set", "--object", "ada"), 1),
        (("--subject", "nobody"), 0),
        (("--from", "2020-01-01T00:00:00Z", "--to", "2999-01-01T00:00:00+01:00"), 3),
    ):
        assert len(run("audit", *filters).stdout.splitlines()) == number
    assert "from: Must be" in one_line(run("audit", "--from", "x"))


def test_tokens_carry_what_was_asked_for() -> None:
    admin = TOKENS.read(payagg("token", "admin", "--sub", "root", "--role", "SUPPORT", **SECRETS).stdout.strip())
    assert (admin["sub"], admin["type"], admin["role"]) == ("root", "admin", "SUPPORT")
    assert admin["exp"] - admin["iat"] == 3600
    for more, is_verified in ((), True), (("--no-email-verified",), False):
        merchant = TOKENS.read(payagg("token", "merchant", "--sub", "ada", *more, **SECRETS).stdout.strip())
        assert (merchant["type"], merchant["emailVerified"]) == ("merchant", is_verified)


@pytest.mark.rule("access.9")
def test_each_token_that_is_issued_is_in_the_audit_trail(run: Command) -> None:
    made = run("token", "admin", "--sub", "root", "--role", "SUPPORT", "--ttl", "600", **SECRETS)
    assert (made.returncode, made.stderr) == (0, "")
    claims = TOKENS.read(made.stdout.strip())
    other = run("token", "merchant", "--sub", "ada", **SECRETS).stdout.strip()
    told = run("audit", "--action", "token.issue", **SECRETS).stdout.splitlines()
    assert f"cli:{getpass.getuser()}" in told[1]
    assert f"token.issue {claims['jti']}  " in told[1]
    for fact in ("subject: none -> root", "role: none -> SUPPORT", "realm: none -> admin", "expiresAt: none -> 20"):
        assert fact in told[1]
    assert f"token.issue {TOKENS.read(other)['jti']}  " in told[0]
    assert "role" not in told[0]
    assert other not in "".join(told)


@pytest.mark.rule("access.9")
def test_a_token_is_issued_at_once_where_its_database_does_not_answer(database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection and says nothing
        urls = [f"postgresql://x@127.0.0.1:{port}/x" for port in (silent.getsockname()[1], free_port())]
        for url in (*urls, database_url.replace("?", "_none?")):
            known = {"PAYAGG_DATABASE_URL": url, **SECRETS}
            began = time.monotonic()
            made = payagg("token", "admin", "--sub", "root", "--role", "ADMIN", **known)
            assert time.monotonic() - began < PATIENCE / 4
            assert TOKENS.read(made.stdout.strip())["sub"] == "root"
            assert made.stderr.startswith("payagg: The token is not in the audit trail: ")
            assert made.stderr.count("\n") == 1


@pytest.mark.rule("access.12")
async def test_a_revoked_token_is_refused_by_every_server_at_once(run: Command, store: PostgresStore) -> None:
    def issued(subject: str) -> str:
        return payagg("token", "admin", "--sub", subject, "--role", "SUPPORT", **SECRETS).stdout.strip()

    lost, other = issued("ada"), issued("ada")
    async with an_api(services_over(store)) as first, an_api(services_over(store)) as second:

        async def asked(token: str) -> list[int]:
            answers = [await one.client.get("/admin/gateways", headers=bearer(token)) for one in (first, second)]
            return [answer.status_code for answer in answers]

        assert await asked(lost) == await asked(other) == [200, 200]
        assert run("token", "revoke", "--id", str(TOKENS.read(lost)["jti"]), **SECRETS).returncode == 0
        assert (await asked(lost), await asked(other)) == ([401, 401], [200, 200])
        assert run("token", "revoke", "--sub", "ada", **SECRETS).returncode == 0
        assert await asked(other) == [401, 401]
    told = run("audit", "--action", "token.revoke", **SECRETS).stdout
    assert len(told.splitlines()) == 2
    assert run("token", "revoke", **SECRETS).returncode == 2
    both = run("token", "revoke", "--id", "x", "--issued-before", "2020-01-01T00:00:00Z", **SECRETS)
    assert "--issued-before goes with --sub" in one_line(both)


def test_a_token_that_servers_would_refuse_is_not_issued(tmp_path: Path) -> None:
    bounded = SECRETS | {"PAYAGG_TOKEN_LIFETIME_MAX": "600"}
    assert payagg("token", "merchant", "--sub", "ada", "--ttl", "600", **bounded).returncode == 0
    assert "--ttl must be at most 600" in one_line(payagg("token", "merchant", "--sub", "ada", **bounded))
    unsigned = payagg("token", "merchant", "--sub", "ada", PAYAGG_STATE_DIR=str(tmp_path / "none"))
    assert "PAYAGG_JWT_KEY" in one_line(unsigned)


def test_wrong_usage_is_status_2() -> None:
    for wrong in (
        (),
        ("token", "admin", "--sub", "x"),
        ("serve", "--port", "0"),
        ("business", "set", "b", "--kyc", "X"),
    ):
        assert payagg(*wrong).returncode == 2


def test_a_database_that_is_down_is_one_line_without_its_password() -> None:
    url = "postgresql://payagg:hidden-word@127.0.0.1:1/payagg"
    for arguments in (("migrate",), ("doctor",), ("explain", "PAY-20250101-ABCDEF")):
        told = one_line(payagg(*arguments, PAYAGG_DATABASE_URL=url))
        assert "nobody answers at 127.0.0.1:1" in told
        assert "hidden-word" not in told


def test_a_database_of_another_encoding_is_refused_in_one_line(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE bytes_one TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
    url = postgres.replace("/payagg?", "/bytes_one?")
    for arguments in (("migrate",), ("doctor",), ("explain", "PAY-20250101-ABCDEF")):
        assert "its encoding is SQL_ASCII: make it with" in one_line(payagg(*arguments, PAYAGG_DATABASE_URL=url))


def test_a_schema_that_is_behind_is_refused_until_migrated(empty_url: str) -> None:
    assert "payagg migrate" in one_line(payagg("doctor", PAYAGG_DATABASE_URL=empty_url))
    for command in ("migrate", "migrate", "doctor"):
        assert payagg(command, PAYAGG_DATABASE_URL=empty_url).returncode == 0


def test_openapi_prints_the_description_without_a_database() -> None:
    described = json.loads(payagg("openapi").stdout)
    assert described["openapi"].startswith("3.1")
    assert "/payments/initiate" in described["paths"]
    payers = json.loads(payagg("openapi", "--audience", "payer").stdout)
    assert all(path.startswith("/public/") for path in payers["paths"])


def test_explain_refuses_what_is_no_reference_and_what_is_unknown(run: Command) -> None:
    assert "required form" in one_line(run("explain", "PAY-1"))
    assert "No such payment" in one_line(run("explain", "PAY-20250101-ABCDEF"))


A_PAYMENT = """INSERT INTO payments (reference, business_id, environment, amount, currency, status, sequence,
    created_at, updated_at, expires_at, settled_at, gateway) VALUES
    ('PAY-20250101-ABCDEF', 'biz', 'SANDBOX', 100, 'NGN', 'SUCCESS', 1, now(), now(), now(), now(), 'sandbox')"""


def test_doctor_warns_without_failing_and_fails_where_a_money_rule_is_broken(database_url: str, run: Command) -> None:
    execute(
        database_url,
        "INSERT INTO anomalies VALUES ('anm_1', 'PAY-20250101-ABCDEF', 'LATE_SUCCESS', 'provider_a', '{}', now())",
    )
    told, flaw = run("doctor"), python_flaw()
    assert told.returncode == 0
    assert "BROKEN" not in told.stdout
    assert "LATE_SUCCESS PAY-20250101-ABCDEF" in told.stdout
    warnings = [line for line in told.stdout.splitlines() if line.startswith("warning")]
    assert warnings == ([f"warning {flaw}"] if flaw else [])
    # The triggers would not let this in; whoever switched them off is whom the doctor is for.
    execute(database_url, "SET session_replication_role = replica", A_PAYMENT)
    told = run("doctor")
    assert told.returncode == 1
    assert "BROKEN  a final payment has exactly one final transition" in told.stdout
    assert "BROKEN  transitions and notices are numbered" in told.stdout
    assert "PAY-20250101-ABCDEF" in told.stdout
    assert "What to do: `payagg explain REFERENCE`" in told.stdout


def test_anomalies_are_listed_and_worked_off(database_url: str, run: Command) -> None:
    execute(
        database_url,
        "INSERT INTO anomalies VALUES ('anm_1', 'PAY-20250101-ABCDEF', 'LATE_SUCCESS', 'verify', '{}', now())",
        "INSERT INTO anomalies VALUES ('anm_2', NULL, 'UNKNOWN_REFERENCE', 'event:provider_a', '{}', now())",
    )

    def ids(*arguments: str) -> list[str]:
        done = run("anomalies", *arguments)
        assert done.returncode == 0, done.stderr
        return [line.split()[0] for line in done.stdout.splitlines()]

    assert ids("list") == ["anm_2", "anm_1"]
    assert ids("list", "--kind", "LATE_SUCCESS", "--status", "OPEN") == ["anm_1"]
    assert ids("acknowledge", "anm_1", "--by", "ada") == ["anm_1"]
    assert ids("assign", "anm_1", "--to", "ben", "--by", "ada") == ["anm_1"]
    assert ids("list", "--assignee", "ben", "--severity", "MONEY_TO_GIVE_BACK") == ["anm_1"]
    noted = run("anomalies", "note", "anm_1", "--text", "Asked.", "--by", "ada")
    assert re.search(r"ACKNOWLEDGED +MONEY_TO_GIVE_BACK +0 m +ben +LATE_SUCCESS PAY-20250101-ABCDEF", noted.stdout)
    assert ids("assign", "anm_1", "--nobody", "--by", "ada") == ["anm_1"]
    assert ids("close", "anm_1", "--by", "ada", "--reason", "Refunded by hand.") == ["anm_1"]
    assert ids("list", "--status", "CLOSED") == ["anm_1"]
    told = run("doctor")
    assert "anm_2" in told.stdout
    assert "anm_1" not in told.stdout


def test_a_server_does_not_start_without_its_secrets(run: Command) -> None:
    for missing, command in (("PAYAGG_JWT_KEY", "serve"), ("PAYAGG_ENCRYPTION_KEYS", "worker")):
        settings = {name: value for name, value in SECRETS.items() if name != missing}
        assert missing in one_line(run(command, **settings))


def test_one_process_serves_with_its_gateways_and_stops_cleanly(database_url: str) -> None:
    with serving(database_url) as (_, origin):
        token = payagg("token", "admin", "--sub", "root", "--role", "ADMIN", **SECRETS).stdout.strip()
        listed = httpx.get(
            f"{origin}/api/v1/admin/gateways", headers={"Authorization": f"Bearer {token}"}, trust_env=False
        )
        assert [one["slug"] for one in listed.json()["data"]] == ["builtin", "provider_a", "provider_b"]
        assert "server" not in listed.headers


def test_a_worker_without_http_stops_cleanly(database_url: str) -> None:
    with started("worker", PAYAGG_DATABASE_URL=database_url):
        wait_until(lambda: stored(database_url, "SELECT count(*) FROM gateways") == [(3,)])
