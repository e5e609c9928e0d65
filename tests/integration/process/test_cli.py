"""The small commands, each run as an operator runs it, and the serving process."""

import getpass
import json
import re
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psycopg
import pytest

from payagg.adapters.postgres.store import PostgresStore
from tests.support.assembly import TOKENS, services_over
from tests.support.http_world import an_api, bearer
from tests.support.ports import free_port
from tests.support.postgres_world import execute
from tests.support.processes import (
    PATIENCE,
    SECRETS,
    Command,
    a_token,
    environment,
    one_line,
    payagg,
    succeeded,
)


def a_business(run: Command) -> str:
    return str(json.loads(succeeded(run("business", "create", "--name", "Ada's", "--owner", "ada")))["id"])


def test_a_business_is_created_changed_and_given_members(database_url: str, run: Command) -> None:
    business, made = partial(run, "business"), a_business(run)
    assert json.loads(business("set", made, "--kyc", "PENDING").stdout)["kyc"] == "PENDING"
    # All of it is refused, or nothing.
    told = business("set", made, "--kyc", "APPROVED", "--status", "SUSPENDED")
    assert "KYC cannot move from PENDING to APPROVED" in one_line(told)
    stored = execute(database_url, "SELECT id, name, status, kyc_status FROM businesses")
    assert stored == [(made, "Ada's", "ACTIVE", "PENDING")]
    assert "keeps at least one OWNER" in one_line(business("member", made, "--sub", "ada", "--remove"))
    succeeded(business("member", made, "--sub", "bo", "--role", "OWNER"))
    assert json.loads(business("member", made, "--sub", "ada", "--remove").stdout) == {"id": made, "sub": "ada"}
    assert execute(database_url, "SELECT subject, role FROM members") == [("bo", "OWNER")]


@pytest.mark.rule("audit.3")
def test_what_a_command_changes_is_in_the_audit_trail_with_its_account_and_host(run: Command) -> None:
    made = a_business(run)
    run("business", "set", made, "--kyc", "PENDING")
    run("business", "set", made, "--kyc", "APPROVED")  # refused: no entry
    newest, *older = succeeded(run("audit", "--business", made)).splitlines()
    who = f"cli:{getpass.getuser()} from {socket.gethostname()}"
    assert newest.endswith(f"{who}  business.update {made}  kycStatus: NOT_SUBMITTED -> PENDING")
    assert len(older) == 2
    assert any(line.endswith(f"{who}  member.set ada of {made}  role: none -> OWNER") for line in older)
    page = json.loads(run("audit", "--json", "--limit", "1").stdout)
    (entry,) = page["entries"]
    found = entry["realm"], entry["action"], entry["requestId"], page["hasMore"]
    assert found == ("cli", "business.update", None, True)
    assert run("audit", "--after", page["nextCursor"]).stdout.splitlines() == older
    more = f"There is more: --after {page['nextCursor']}"
    assert run("audit", "--limit", "1").stdout.splitlines() == [newest, more]
    for filters, number in (
        (("--action", "member.set", "--object", "ada"), 1),
        (("--subject", "nobody"), 0),
        (("--from", "2020-01-01T00:00:00Z", "--to", "2999-01-01T00:00:00+01:00"), 3),
    ):
        assert len(run("audit", *filters).stdout.splitlines()) == number
    assert "from: Must be" in one_line(run("audit", "--from", "x"))
    assert "payment.erase" in run("audit", "--action", "payer.erase").stderr


@pytest.mark.rule("access.9")
def test_each_token_that_is_issued_is_in_the_audit_trail(run: Command) -> None:
    made = run("token", "admin", "--sub", "root", "--role", "SUPPORT", "--ttl", "600", **SECRETS)
    assert (made.returncode, made.stderr) == (0, "")
    claims = TOKENS.read(made.stdout.strip())
    found = claims["sub"], claims["type"], claims["role"], claims["exp"] - claims["iat"]
    assert found == ("root", "admin", "SUPPORT", 600)
    other = run("token", "merchant", "--sub", "ada", "--no-email-verified", **SECRETS).stdout.strip()
    merchant = TOKENS.read(other)
    assert (merchant["type"], merchant["emailVerified"], merchant["exp"] - merchant["iat"]) == ("merchant", False, 3600)
    of_other, of_admin = run("audit", "--action", "token.issue", **SECRETS).stdout.splitlines()
    for fact in (
        *(f"cli:{getpass.getuser()}", f"token.issue {claims['jti']}  ", "subject: none -> root"),
        *("role: none -> SUPPORT", "realm: none -> admin", "expiresAt: none -> 20"),
    ):
        assert fact in of_admin
    assert f"token.issue {merchant['jti']}  " in of_other
    assert "role" not in of_other
    assert other not in of_other + of_admin


@pytest.mark.rule("access.9")
def test_a_token_is_issued_at_once_where_its_database_does_not_answer(database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection and says nothing
        silence, nobody = (f"postgresql://x@127.0.0.1:{port}/x" for port in (silent.getsockname()[1], free_port()))
        for url, why in (
            (silence, "no answer within 0.5 s"),
            (nobody, "nobody answers at 127.0.0.1:"),
            (database_url.replace("?", "_none?"), ": create it, or correct the name"),
        ):
            known = {"PAYAGG_DATABASE_URL": url, **SECRETS}
            began = time.monotonic()
            made = payagg("token", "admin", "--sub", "root", "--role", "ADMIN", **known)
            assert time.monotonic() - began < PATIENCE / 4
            assert TOKENS.read(made.stdout.strip())["sub"] == "root"
            assert made.stderr.startswith("payagg: The token is not in the audit trail: ")
            assert why in made.stderr
            assert made.stderr.count("\n") == 1


@pytest.mark.rule("access.12")
async def test_a_revoked_token_is_refused_by_every_server_at_once(run: Command, store: PostgresStore) -> None:
    revoke = partial(run, "token", "revoke", **SECRETS)
    lost, other = (a_token("admin", "--sub", "ada", "--role", "SUPPORT") for _ in range(2))
    async with an_api(services_over(store)) as first, an_api(services_over(store)) as second:

        async def asked(token: str) -> list[int]:
            answers = [await one.client.get("/admin/gateways", headers=bearer(token)) for one in (first, second)]
            return [answer.status_code for answer in answers]

        assert await asked(lost) == await asked(other) == [200, 200]
        succeeded(revoke("--id", str(TOKENS.read(lost)["jti"])))
        assert (await asked(lost), await asked(other)) == ([401, 401], [200, 200])
        succeeded(revoke("--sub", "ada"))
        assert await asked(other) == [401, 401]
    assert len(run("audit", "--action", "token.revoke", **SECRETS).stdout.splitlines()) == 2
    assert revoke().returncode == 2


def test_a_token_that_servers_would_refuse_is_not_issued(tmp_path: Path) -> None:
    bounded = SECRETS | {"PAYAGG_TOKEN_LIFETIME_MAX": "600"}
    issued = succeeded(payagg("token", "merchant", "--sub", "ada", "--ttl", "600", **bounded))
    assert TOKENS.read(issued.strip())["emailVerified"] is True
    assert "--ttl must be at most 600" in one_line(payagg("token", "merchant", "--sub", "ada", **bounded))
    for sub in ("", "a\nb"):
        assert "sub: Must " in one_line(payagg("token", "merchant", "--sub", sub, "--ttl", "600", **bounded))
    unsigned = payagg("token", "merchant", "--sub", "ada", PAYAGG_STATE_DIR=str(tmp_path / "none"))
    assert "PAYAGG_JWT_KEY" in one_line(unsigned)


def test_wrong_usage_is_status_2() -> None:
    for wrong in ("", "token admin --sub x", "serve --port 0", "business set b --kyc X"):
        assert payagg(*wrong.split()).returncode == 2


@pytest.mark.parametrize("arguments", ["migrate", "doctor", "explain PAY-20250101-ABCDEF"])
def test_a_database_that_is_down_or_of_another_encoding_is_one_line_without_a_password(
    bytes_database: str, arguments: str
) -> None:
    down = "postgresql://payagg:hidden-word@127.0.0.1:1/payagg"
    for url, words in (
        (down, "nobody answers at 127.0.0.1:1"),
        (bytes_database, "its encoding is SQL_ASCII: make it with"),
    ):
        told = one_line(payagg(*arguments.split(), PAYAGG_DATABASE_URL=url))
        assert words in told
        assert "hidden-word" not in told


@pytest.fixture(scope="module")
def bytes_database(postgres: str) -> str:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE bytes_one TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
    return postgres.replace("/payagg?", "/bytes_one?")


def test_a_schema_that_is_behind_is_refused_until_migrated(empty_url: str) -> None:
    assert "payagg migrate" in one_line(payagg("doctor", PAYAGG_DATABASE_URL=empty_url))
    for command in ("migrate", "migrate", "doctor"):
        succeeded(payagg(command, PAYAGG_DATABASE_URL=empty_url))


def test_openapi_prints_the_description_without_a_database() -> None:
    described = json.loads(payagg("openapi").stdout)
    assert described["openapi"].startswith("3.1")
    assert "/payments/initiate" in described["paths"]


def test_explain_refuses_what_is_no_reference_and_what_is_unknown(run: Command) -> None:
    assert "required form" in one_line(run("explain", "PAY-1"))
    assert "No such payment" in one_line(run("explain", "PAY-20250101-ABCDEF"))


AN_ANOMALY = "INSERT INTO anomalies VALUES ('anm_1', 'PAY-20250101-ABCDEF', 'LATE_SUCCESS', 'verify', '{}', now())"
PAYMENTS = """INSERT INTO payments (reference, business_id, environment, amount, currency, status, sequence,
    created_at, updated_at, expires_at, settled_at, gateway)
    SELECT 'PAY-20250101-ABCD' || 10 + n, 'biz', 'SANDBOX', 100, 'NGN', 'SUCCESS', 1, now(), now(), now(), now(),
    'sandbox' FROM generate_series(1, 20) n"""


OLDER = """INSERT INTO anomalies
    SELECT 'anm_0' || n, NULL, 'UNKNOWN_REFERENCE', 'event:provider_a', '{}', now() FROM generate_series(1, 100) n"""
REFUSED = """INSERT INTO refused_events (provider, environment, fault, slot, path, digest, size, headers, received_at)
    SELECT 'provider_a', 'LIVE', 'WRONG_SECRET', n, '/provider_a/live',
    decode(repeat('0d0e', 16), 'hex'), 2, '{}', now() FROM generate_series(1, 21) n"""
AN_HOUR_AGO = "UPDATE refused_events SET received_at = received_at - interval '1 hour'"


def test_doctor_warns_without_failing_and_fails_where_a_money_rule_is_broken(database_url: str, run: Command) -> None:
    execute(database_url, AN_ANOMALY, OLDER, REFUSED)
    told = succeeded(run("doctor"))
    assert "BROKEN" not in told
    assert "LATE_SUCCESS PAY-20250101-ABCDEF" in told
    # Of what is too long to list it says how much there is, or that there may be more.
    assert ("\n101 anomalies" in told, told.count("UNKNOWN_REFERENCE - from")) == (True, 99)
    shown = told.count("WRONG_SECRET at /webhooks/provider_a/live: 2 bytes")
    assert ("\nAt least 20 events refused" in told, shown, told.count("0d0e" * 16)) == (True, 20, 20)
    assert not [line for line in told.splitlines() if line.startswith("warning")]
    # The triggers would not let this in; whoever switched them off is whom the doctor is for.
    execute(database_url, "SET session_replication_role = replica", PAYMENTS, AN_HOUR_AGO)
    broken = run("doctor")
    assert (broken.returncode, "WRONG_SECRET" in broken.stdout) == (1, False)
    for words in (
        "BROKEN  a final payment has exactly one final transition",
        "BROKEN  transitions and notices are numbered",
        "PAY-20250101-ABCD11",
        "There may be more.",
        "What to do: `payagg explain REFERENCE`",
    ):
        assert words in broken.stdout


def test_anomalies_are_listed_and_worked_off(database_url: str, run: Command) -> None:
    newer = "anm_" + "2" * 32
    other = f"INSERT INTO anomalies VALUES ('{newer}', NULL, 'UNKNOWN_REFERENCE', 'event:provider_a', '{{}}', now())"
    execute(database_url, AN_ANOMALY, other)

    def ids(*arguments: str) -> list[str]:
        return [line.split()[0] for line in succeeded(run("anomalies", *arguments)).splitlines()]

    assert ids("list") == [newer, "anm_1"]
    assert ids("list", "--kind", "LATE_SUCCESS", "--status", "OPEN") == ["anm_1"]
    more = f"There is more: --after {newer}"
    assert succeeded(run("anomalies", "list", "--limit", "1")).splitlines()[1:] == [more]
    assert ids("list", "--limit", "1", "--after", newer) == ["anm_1"]
    assert "after: Must be an anomaly's id" in one_line(run("anomalies", "list", "--after", newer[:-1]))
    mistyped = run("anomalies", "list", "--reference", "pay-20250101-abcdef")
    assert "reference: The reference is not in the required form." in one_line(mistyped)
    assert ids("acknowledge", "anm_1", "--by", "ada") == ["anm_1"]
    assert ids("assign", "anm_1", "--to", "ben", "--by", "ada") == ["anm_1"]
    assert ids("list", "--assignee", "ben", "--severity", "MONEY_TO_GIVE_BACK") == ["anm_1"]
    noted = run("anomalies", "note", "anm_1", "--text", "Asked.", "--by", "ada")
    assert re.search(r"ACKNOWLEDGED +MONEY_TO_GIVE_BACK +0 m +ben +LATE_SUCCESS PAY-20250101-ABCDEF", noted.stdout)
    assert ids("assign", "anm_1", "--nobody", "--by", "ada") == ["anm_1"]
    assert ids("close", "anm_1", "--by", "ada", "--reason", "Refunded by hand.") == ["anm_1"]
    assert ids("list", "--status", "CLOSED") == ["anm_1"]
    told = run("doctor").stdout
    assert (newer in told, "anm_1" in told) == (True, False)


@pytest.mark.parametrize(
    ("target", "said"),
    [("| true", ""), ("> /dev/full", "payagg: Nothing more can be written: No space left on device.\n")],
    ids=["reader gone", "disk full"],
)
def test_an_answer_that_nobody_takes_fails_in_one_line_at_most(target: str, said: str) -> None:
    """As an operator's shell runs it: a short answer is written at the command's end."""
    script = f'set -- "$0" -m payagg keygen; set -o pipefail; "$@" {target}'
    own = {name: value for name, value in environment().items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["bash", "-c", script, sys.executable], check=False, capture_output=True, text=True, env=own, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (1, said)
