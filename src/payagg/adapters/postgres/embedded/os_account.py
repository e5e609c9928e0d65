"""The operating system account of the embedded Postgres: our own, or a spare one for root, which Postgres refuses;
and who may connect."""

import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from payagg.adapters.postgres.embedded import EmbeddedPostgresError

ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"}
# User ids that neither systemd (uids-gids) nor Debian's policy assigns, within a container's usual map.
SPARE = range(61_100, 61_184)
# initdb needs its account's name, which a spare id lacks.
NAMED = ("nobody", "daemon", "bin")
OPEN_FILES = Path("/proc/self/fd")


@dataclass
class Account:
    """The account that runs the Postgres programs; `uid` None = our own.

    Started by root under another account they get their files as open descriptors, and reach them whatever the modes of
    the folders above are. `close` closes ours.
    """

    uid: int | None = None
    gid: int = -1
    descriptors: list[int] = field(default_factory=list)

    def visible_path(self, path: Path, otherwise: str = "") -> str:
        """The path by which the programs reach `path`, which exists; `otherwise` when they need no descriptor."""
        if self.uid is None or not OPEN_FILES.exists():
            return otherwise or str(path)
        self.descriptors.append(os.open(path, os.O_RDONLY))
        return str(OPEN_FILES / str(self.descriptors[-1]))

    def close(self) -> None:
        while self.descriptors:
            os.close(self.descriptors.pop())

    def own(self, path: Path) -> None:
        if self.uid is not None:
            os.chown(path, self.uid, self.gid)

    def own_all(self, folder: Path) -> None:
        """`folder` and its content, without following links."""
        if self.uid is not None:
            for _, folders, files, at in os.fwalk(folder):
                os.chown(at, self.uid, self.gid)
                for name in (*folders, *files):
                    os.chown(name, self.uid, self.gid, dir_fd=at, follow_symlinks=False)

    def maker(self) -> int | None:
        """The account that creates the data folder: one with a name. With our group, so the kernel protects our
        processes from others of that account."""
        return next(map(_uid, filter(_has, NAMED)), self.uid) if self.uid in SPARE else self.uid

    def process_options(self, uid: int | None = None) -> dict[str, Any]:
        """The arguments of subprocess to run a program under this account, or under `uid` in this account's group.

        Leaving root clears the capabilities.
        """
        plain = {"env": ENVIRONMENT, "cwd": "/"}
        if self.uid is None:
            return plain
        identity = {"user": uid or self.uid, "group": self.gid, "extra_groups": []}
        return plain | identity | {"pass_fds": self.descriptors}

    def run(self, command: list[str], uid: int | None = None, said: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own programs
            command,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            input=said,
            **self.process_options(uid),
        )


def choose_account(state: Path, data: Path) -> Account:
    """Our own account; for root the state folder's owner, and a spare id in place of root itself.

    Raises EmbeddedPostgresError.
    """
    found = data.stat() if data.exists() else None
    if os.geteuid() != 0:
        if found and found.st_uid != os.geteuid():
            raise EmbeddedPostgresError(
                f"{data} belongs to {_name(found.st_uid)}, not to you: "
                "run as that account or choose another PAYAGG_STATE_DIR."
            )
        return Account()
    folder = state.stat()
    if folder.st_uid != 0:
        return Account(folder.st_uid, folder.st_gid)
    spare = found.st_uid if found and found.st_uid in SPARE else next(uid for uid in SPARE if not _has(uid))
    return Account(spare, spare)


def allowed_accounts(state: Path) -> set[str]:
    """The accounts that may connect: ours, the state folder's, and root, which no rule could keep out."""
    return {_name(uid) for uid in (0, os.geteuid() or state.stat().st_uid)}


def no_new_rights() -> tuple[str, ...]:
    """The prefix of the server's command, if the system has it: its child processes gain no rights by setuid files."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--no-new-privs") if setpriv and os.geteuid() == 0 else ()


def _has(account: str | int) -> bool:
    try:
        pwd.getpwuid(account) if isinstance(account, int) else pwd.getpwnam(account)
    except KeyError:
        return False
    return True


def _uid(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def _name(uid: int) -> str:
    return pwd.getpwuid(uid).pw_name if _has(uid) else f"user {uid}"


APPLICATION, SUPERUSER = "payagg", "postgres"  # database roles
SOCKET = ".s.PGSQL.5432"
SOCKET_PATH_MAX = 100  # bytes; the kernel's limit is 104 on macOS, 108 on Linux


def socket_folder(state: Path) -> Path:
    """`run`, or a short link to it when its path is too long for a socket: the link is in a folder of mode 0700,
    recorded beside `run`."""
    run = state / "run"
    if len(os.fsencode(run / SOCKET)) <= SOCKET_PATH_MAX:
        return run
    record, owner = state / "postgres.socket", state.stat()
    if record.exists():
        recorded = Path(record.read_text().strip())
        short = recorded / "run"
        if not recorded.is_symlink() and short.is_symlink() and recorded.stat().st_uid == owner.st_uid:
            return short
    folder = Path(tempfile.mkdtemp(prefix="payagg-", dir="/tmp"))  # TMPDIR itself may be too long
    (folder / "run").symlink_to(run)
    if os.geteuid() == 0:
        os.chown(folder, owner.st_uid, owner.st_gid)
    record.write_text(f"{folder}\n")
    return folder / "run"


def write_rules(state: Path, account: Account) -> dict[str, str]:
    """Who may connect (pg_hba and pg_ident), in files that the server reads and cannot write: peers whom the kernel
    identifies as one of the allowed accounts."""
    ours = [f'payagg "{name}" {role}' for name in sorted(allowed_accounts(state)) for role in (APPLICATION, SUPERUSER)]
    texts = {"hba_file": [f"local all {APPLICATION},{SUPERUSER} peer map=payagg"], "ident_file": ours}
    paths = {}
    for setting, lines in texts.items():
        path = state / f"postgres.{setting.partition('_')[0]}"
        with open(path, "w", opener=private) as file:
            if account.uid is not None:
                os.fchown(file.fileno(), 0, account.gid)
                os.fchmod(file.fileno(), 0o640)
            file.write("\n".join((*lines, "")))
        paths[setting] = account.visible_path(path)
    return paths


def private(path: str, flags: int) -> int:
    """An opener for files that are ours alone."""
    return os.open(path, flags, 0o600)
