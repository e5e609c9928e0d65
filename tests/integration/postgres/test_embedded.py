"""The embedded Postgres: shared, stopped by its last user, and able to start after whatever happened to it."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from payagg.adapters.postgres.embedded import data_folder
from payagg.adapters.postgres.embedded.os_account import SOCKET, SOCKET_PATH_MAX, SPARE
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres, EmbeddedPostgresError

pytestmark = pytest.mark.release
INSTALLED = data_folder.find_package()
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
START_AND_DIE = """
import os, signal, sys
from pathlib import Path
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.start()
os.kill(os.getpid(), signal.SIGKILL)
"""
START_AND_STOP = """
import sys
from pathlib import Path
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres, EmbeddedPostgresError
try:
    with EmbeddedPostgres(Path(sys.argv[1])):
        print("ran")
except EmbeddedPostgresError as error:
    print(error)
"""
CONNECT = """
import sys
import psycopg
try:
    psycopg.connect(sys.argv[1]).close()
    print("connected")
except psycopg.OperationalError as error:
    print(error)
"""


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "state"
    yield folder
    if folder.exists():
        EmbeddedPostgres(folder).destroy()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A stopped server's data, with a word in it; each test leaves them so."""
    folder = tmp_path_factory.mktemp("stopped") / "state"
    with EmbeddedPostgres(folder) as server, psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE kept (word text); INSERT INTO kept VALUES ('here')")
    yield folder
    EmbeddedPostgres(folder).destroy()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared") / "state"


@pytest.fixture(scope="module")
def running(shared: Path) -> Iterator[EmbeddedPostgres]:
    """On `shared`, for what neither stops it nor changes its folder."""
    with EmbeddedPostgres(shared) as server:
        yield server
    EmbeddedPostgres(shared).destroy()


def asked(server: EmbeddedPostgres, query: str) -> object:
    with psycopg.connect(server.url, autocommit=True) as connection:
        found = connection.execute(query.encode()).fetchone()
        return found[0] if found else None


def postmaster(state: Path) -> int:
    return int((state / "postgres" / "postmaster.pid").read_text().splitlines()[0])


def is_alive(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def run_python(
    code: str, argument: Path | str, account: pwd.struct_passwd | None = None
) -> "subprocess.CompletedProcess[str]":
    """Another process of ours; under `account` it may still read this Python, wherever it is installed."""
    before: list[str] = []
    if account is not None:
        reach = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--securebits=+no_setuid_fixup"]
        before = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", *reach]
    command = [*before, sys.executable, "-c", code, str(argument)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env=env)


def as_account(account: pwd.struct_passwd, command: list[str]) -> "subprocess.CompletedProcess[str]":
    identity: dict[str, Any] = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    return subprocess.run(command, check=False, capture_output=True, text=True, env={"LC_ALL": "C"}, **identity)


def test_what_was_written_is_there_after_a_stop_and_durable_unless_said_otherwise(state: Path) -> None:
    for durable, settings in ((True, "onon"), (False, "offoff")):
        with EmbeddedPostgres(state, durable=durable) as server:
            pid = postmaster(state)
            assert asked(server, "SELECT word FROM kept") == "here"
            query = "SELECT current_setting('fsync') || current_setting('synchronous_commit')"
            assert asked(server, query) == settings
        assert not is_alive(pid)


def test_only_the_last_user_stops_the_server(state: Path) -> None:
    first, second = EmbeddedPostgres(state), EmbeddedPostgres(state)
    first.start()
    pid = postmaster(state)
    second.start()
    assert postmaster(state) == pid
    first.stop()
    assert asked(second, "SELECT 1") == 1
    second.stop()
    assert not is_alive(pid)


def test_a_folder_that_is_reached_by_a_link_has_the_same_server_and_is_not_destroyed_in_use(
    running: EmbeddedPostgres, shared: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(shared)
    pid = postmaster(shared)
    with EmbeddedPostgres(link) as second:
        assert (postmaster(shared), asked(second, "SELECT 1")) == (pid, 1)
    with pytest.raises(EmbeddedPostgresError, match="Another payagg uses"):
        EmbeddedPostgres(shared).destroy()
    assert asked(running, "SELECT 1") == 1


@pytest.mark.parametrize("lost", ["the starter", "its socket", "the server"])
def test_what_was_left_by_a_starter_that_was_killed_is_found_or_started_again(state: Path, lost: str) -> None:
    assert run_python(START_AND_DIE, state).returncode == -signal.SIGKILL
    orphan = postmaster(state)
    assert is_alive(orphan)
    if lost == "its socket":
        for name in (SOCKET, f"{SOCKET}.lock"):
            (state / "run" / name).unlink()
    if lost == "the server":
        os.kill(orphan, signal.SIGKILL)
        while is_alive(orphan):
            time.sleep(0.01)
    with EmbeddedPostgres(state) as server:
        assert asked(server, "SELECT word FROM kept") == "here"
        assert (postmaster(state) == orphan) is (lost == "the starter")
    assert not is_alive(orphan)


def test_a_pid_file_that_names_another_program_is_stale(state: Path) -> None:
    with EmbeddedPostgres(state):
        left = (state / "postgres" / "postmaster.pid").read_text()
    _, _, rest = left.partition("\n")
    (state / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{rest}")
    with EmbeddedPostgres(state) as server:
        assert asked(server, "SELECT 1") == 1


def test_an_interrupted_first_start_is_repeated_and_broken_data_are_reported(fresh: Path) -> None:
    half = fresh / "postgres.init-1"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    (fresh / "postgres").mkdir()
    with EmbeddedPostgres(fresh) as server:
        assert asked(server, "SELECT 1") == 1
    assert not half.exists()
    for file, content, words in (
        ("global/pg_control", b"", r"did not start: .*pg_control"),
        ("PG_VERSION", b"17\n", "made by Postgres 17, this is 18"),
    ):
        (fresh / "postgres" / file).write_bytes(content)
        with pytest.raises(EmbeddedPostgresError, match=words) as raised:
            EmbeddedPostgres(fresh).start()
        assert "\n" not in str(raised.value)


def test_a_folder_that_is_no_database_is_left_alone(fresh: Path) -> None:
    (fresh / "postgres").mkdir(parents=True)
    (fresh / "postgres" / "letter.txt").write_text("dear reader")
    with pytest.raises(EmbeddedPostgresError, match="not a Postgres data folder"):
        EmbeddedPostgres(fresh).start()
    assert (fresh / "postgres" / "letter.txt").read_text() == "dear reader"
    (fresh / "postgres" / "letter.txt").unlink()


def test_a_path_too_long_for_a_socket_gets_a_short_folder(fresh: Path) -> None:
    deep = fresh / ("d" * SOCKET_PATH_MAX)
    with EmbeddedPostgres(deep) as server:
        assert asked(server, "SELECT 1") == 1
        first = server.url
    with EmbeddedPostgres(deep) as server:
        assert server.url == first
    EmbeddedPostgres(deep).destroy()


def test_the_application_owns_its_database_and_is_no_superuser_nor_reached_by_a_network(
    running: EmbeddedPostgres,
) -> None:
    assert asked(running, "SELECT current_setting('listen_addresses')") == ""
    assert asked(running, "SELECT current_user") == "payagg"
    rights = "rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
    assert asked(running, f"SELECT {rights} FROM pg_roles WHERE rolname = current_user") is False
    assert asked(running, "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'payagg'") == "payagg"
    for stolen in ("COPY (SELECT 1) TO PROGRAM 'id'", "SELECT pg_read_file('/etc/hostname')"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            asked(running, stolen)


@AS_ROOT
def test_root_runs_it_under_an_id_that_is_nobodys_and_without_rights(running: EmbeddedPostgres, shared: Path) -> None:
    owner = (shared / "postgres").stat().st_uid
    assert owner in SPARE
    with pytest.raises(KeyError):
        pwd.getpwuid(owner)
    lines = Path(f"/proc/{postmaster(shared)}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    assert status["Uid"].split() == status["Gid"].split() == [str(owner)] * 4
    assert status["Groups"].split() == []
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    if shutil.which("setpriv"):
        assert status["NoNewPrivs"] == "1"


@AS_ROOT
def test_another_account_neither_connects_nor_reads_the_data() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        state = Path(folder) / "state"
        with EmbeddedPostgres(state) as server:
            nobody = pwd.getpwnam("nobody")
            for denied in (state / "postgres" / "PG_VERSION", state / "postgres.hba", state / "run" / SOCKET):
                assert as_account(nobody, ["cat", str(denied)]).stderr.endswith("Permission denied\n")
            # With every folder and the socket open to all, the server itself refuses.
            for opened in (state, state / "run", state / "run" / SOCKET):
                opened.chmod(0o777)
            for role in ("payagg", "postgres"):
                told = run_python(CONNECT, server.url.replace("payagg@", f"{role}@"), account=nobody).stdout
                assert f'Peer authentication failed for user "{role}"' in told


@AS_ROOT
def test_root_runs_it_below_a_folder_closed_to_others_and_leaves_it_closed(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    before = os.umask(0o077)  # closes what is made, too
    try:
        with EmbeddedPostgres(closed / "state") as server:
            assert asked(server, "SELECT 1") == 1
    finally:
        os.umask(before)
    assert closed.stat().st_mode & 0o777 == 0o700
    EmbeddedPostgres(closed / "state").destroy()


@AS_ROOT
def test_programs_below_a_closed_folder_are_copied_to_where_the_account_reaches_them(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Path(tempfile.mkdtemp())
    cache.chmod(0o755)
    closed = tmp_path / "closed"
    shutil.copytree(INSTALLED, closed / INSTALLED.name, symlinks=True)
    shutil.copytree(INSTALLED.with_name(f"{INSTALLED.name}.libs"), closed / f"{INSTALLED.name}.libs")
    closed.chmod(0o700)
    monkeypatch.setattr(data_folder, "CACHE", cache / "payagg")
    monkeypatch.setattr(data_folder, "find_package", lambda: closed / INSTALLED.name)
    for _ in range(2):
        with EmbeddedPostgres(state) as server:
            assert asked(server, "SELECT 1") == 1
            executable = os.readlink(f"/proc/{postmaster(state)}/exe")
            assert Path(executable).is_relative_to(cache)
    shutil.rmtree(cache)


@AS_ROOT
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv gives this test an ordinary account")
def test_an_ordinary_user_runs_it_and_is_told_of_anothers_data() -> None:
    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        own, others = Path(folder) / "own", Path(folder) / "others"
        own.mkdir()
        os.chown(own, nobody.pw_uid, nobody.pw_gid)
        assert run_python(START_AND_STOP, own / "state", account=nobody).stdout == "ran\n"
        with EmbeddedPostgres(others):
            pass
        told = run_python(START_AND_STOP, others, account=nobody).stdout
        assert told.startswith(f"{others}/postgres belongs to ")
        assert told.count("\n") == 1
        EmbeddedPostgres(others).destroy()
