"""What an operator meets before anything serves: secrets, settings, the database that is not there."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from payagg.entrypoints.process.interpreter import interpreter
from payagg.entrypoints.settings import fields_of, variable
from tests.support.ports import free_port
from tests.support.postgres_rules import admitted_by
from tests.support.processes import (
    SECRETS,
    environment,
    is_ready,
    one_line,
    payagg,
    started,
    succeeded,
    wait_until,
)

COMMANDS = (("serve", "--port", str(free_port())), ("worker",), ("migrate",), ("doctor",))


def test_the_keys_that_are_made_start_a_server_s_commands(tmp_path: Path) -> None:
    made, file = succeeded(payagg("keygen")), tmp_path / "env"
    file.write_text(made)
    # As a shell reads the file, and as Compose and systemd do: single quotes keep every character.
    script = f"set -a; . {file}; exec {sys.executable} -m payagg token admin --sub root --role ADMIN"
    token = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, env=environment())
    assert token.stdout.count(".") == 2, token.stderr
    assert payagg("keygen").stdout != made
    names = {line.partition("=")[0] for line in made.splitlines() if not line.startswith("#")}
    assert names == {"PAYAGG_JWT_ALGORITHM", "PAYAGG_JWT_KEY", "PAYAGG_ENCRYPTION_KEYS", "PAYAGG_METRICS_TOKEN"}


def test_config_shows_what_is_in_force_and_no_secret(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("hush-hush-hush-hush-hush\n")
    url = "postgresql://ada:hidden-word@db.example:6432/money"
    given = {"PAYAGG_DATABASE_URL": url, "PAYAGG_METRICS_TOKEN_FILE": str(token), "PAYAGG_POOL_SIZE": "7", **SECRETS}
    shown = succeeded(payagg("config", **given))
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in shown.splitlines()}
    assert lines.keys() == {"Python", *(variable(one) for one in fields_of())}
    assert lines.items() >= {
        ("Python", interpreter()),
        ("PAYAGG_DATABASE_URL", "money at db.example:6432 as ada  (environment)"),
        ("PAYAGG_METRICS_TOKEN", f"set  ({token})"),
        ("PAYAGG_POOL_SIZE", "7  (environment)"),
        ("PAYAGG_CHECKOUT_TTL", "3600  (default)"),
        ("PAYAGG_ENCRYPTION_KEYS", "set: k1  (environment)"),
    }
    for secret in ("hidden-word", "hush-hush", SECRETS["PAYAGG_JWT_KEY"], SECRETS["PAYAGG_ENCRYPTION_KEYS"][3:]):
        assert secret not in shown


def test_config_fails_where_a_server_would_not_start() -> None:
    assert payagg("config", PAYAGG_POOL_SIZE="7").returncode == 0  # secrets may be given later
    for wrong, words in (
        ({"PAYAGG_JWT_ALGORITHM": "RS256"}, "PAYAGG_JWT_KEY"),
        ({"PAYAGG_BASE_URL": "http://pay.example.ng"}, "PAYAGG_BASE_URL must be https"),
    ):
        told = payagg("config", **(SECRETS | wrong))
        assert (told.returncode, words in told.stderr, "PAYAGG_POOL_SIZE" in told.stdout) == (1, True, True)


def test_a_server_for_others_needs_its_own_address() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        assert "PAYAGG_BASE_URL is required to serve on" in one_line(payagg("serve", "--host", host, **SECRETS))


@contextmanager
def a_locked_role(postgres: str) -> Iterator[str]:
    """The URL of a database whose role `locked` must know its password."""
    with admitted_by(postgres, "local all locked scram-sha-256") as connection:
        connection.execute("CREATE ROLE locked LOGIN PASSWORD 'right-word'")
        try:
            yield postgres.replace("//payagg@", "//locked:wrong-word@")
        finally:
            connection.execute("DROP ROLE locked")


@contextmanager
def a_server_without_tls() -> Iterator[int]:
    """The port of one that answers every request for TLS with the protocol's no."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.recv(8)
                    client.sendall(b"N")

        threading.Thread(target=refuse, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.long
def test_four_reasons_why_there_is_no_database_are_four_lines(postgres: str, tmp_path: Path) -> None:
    folder = parse_qs(urlsplit(postgres).query)["host"][0]
    with a_locked_role(postgres) as locked, a_server_without_tls() as port, socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and does not listen
        nobody = free.getsockname()[1]
        ada = "postgresql://ada:wrong-word@127.0.0.1"
        cases = {
            locked: f"{folder} refuses the password of locked",
            postgres.replace("/payagg?", "/absent?"): f"{folder} has no database absent",
            f"{ada}:{port}/money?sslmode=require": f"127.0.0.1:{port} and we do not agree on TLS",
            f"{ada}:{nobody}/money": f"nobody answers at 127.0.0.1:{nobody}",
        }
        for command, (url, words) in zip(COMMANDS, cases.items(), strict=True):
            told = one_line(payagg(*command, PAYAGG_DATABASE_URL=url, **SECRETS))
            assert words in told
            assert "wrong-word" not in told


def test_a_server_names_its_database_and_takes_its_address_from_a_file(database_url: str, tmp_path: Path) -> None:
    name, port, file = urlsplit(database_url).path.strip("/"), free_port(), tmp_path / "base_url"
    assert f"The database is {name} at " in payagg("doctor", PAYAGG_DATABASE_URL=database_url).stdout
    file.write_text("https://pay.example\n")
    settings = {"PAYAGG_DATABASE_URL": database_url, "PAYAGG_BASE_URL_FILE": str(file)}
    command = ("serve", "--host", "0.0.0.0", "--port", str(port))
    with started(*command, stderr=subprocess.PIPE, **settings) as process:
        assert process.stderr is not None
        line = json.loads(process.stderr.readline())
        assert (line["event"].partition(" at ")[0], line["level"]) == (f"The database is {name}", "warning")
        wait_until(lambda: is_ready(port))
        told = httpx.get(f"http://127.0.0.1:{port}", trust_env=False).json()["data"]
        assert told["api"] == "https://pay.example/api/v1"


def test_a_state_folder_that_cannot_be_is_one_line() -> None:
    for place, reason in ((f"/tmp/{'a' * 300}", "File name too long"), ("/dev/null", "File exists")):
        told = payagg("doctor", PAYAGG_STATE_DIR=place)
        fault = f"payagg: The embedded Postgres cannot use {place} ({reason}): choose another PAYAGG_STATE_DIR.\n"
        assert (told.returncode, told.stderr) == (1, fault)


def test_a_server_refuses_weak_keys_before_it_looks_for_a_database() -> None:
    for command, name, weak, words in (
        ("serve", "PAYAGG_ENCRYPTION_KEYS", "k1:" + "A" * 43 + "=", "has a weak key"),
        ("worker", "PAYAGG_JWT_KEY", "a" * 40, "is too regular"),
    ):
        assert f"{name} {words}" in one_line(payagg(command, **SECRETS | {name: weak}))
