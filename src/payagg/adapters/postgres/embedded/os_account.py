"""The account of the embedded Postgres: our own, or an unprivileged one when we are root, which Postgres refuses."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from payagg.adapters.postgres.embedded import EmbeddedPostgresError

ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"}
PREFERRED = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """How to run a Postgres program: `prefix` comes before its path, `identity` goes to subprocess.

    `owner` is the user id that must own the data folder, None when that is ourselves.
    """

    owner: int | None = None
    group: int = -1
    prefix: tuple[str, ...] = ()
    identity: dict[str, Any] = field(default_factory=dict)

    def own(self, folder: Path) -> None:
        if self.owner is not None:
            os.chown(folder, self.owner, self.group)

    def reaches(self, folder: Path, initdb: Path) -> bool:
        """Whether this account can enter `folder` and work with the programs and files of `initdb`, tried for real."""
        attempt = ["/bin/sh", "-c", 'cd "$1" && exec "$2" --show --pgdata="$1"', "sh", str(folder), str(initdb)]
        return self.run(attempt).returncode == 0

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - programs of our own choice
            [*self.prefix, *command],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=ENVIRONMENT,
            cwd="/",
            **self.identity,
        )


def choose_account(folder: Path, initdb: Path, data: Path) -> Account:
    """The first account that can work in `folder` (ours, already made) and run `initdb`; raises EmbeddedPostgresError.

    An existing data folder decides by its owner. No parent folder is ever opened up to make an account fit.
    """
    existing = data.stat() if data.exists() else None
    if os.geteuid() != 0:
        if existing and existing.st_uid != os.geteuid():
            raise EmbeddedPostgresError(
                f"{data} belongs to {_name(existing.st_uid)}, not to you: "
                "run as that account or choose another PAYAGG_STATE_DIR."
            )
        return Account()
    candidates = _accounts_of_root(existing.st_uid if existing else None)
    for candidate in candidates:
        candidate.own(folder)
        if candidate.reaches(folder, initdb):
            return candidate
    raise EmbeddedPostgresError(
        f"Postgres refuses to run as root and no other account can reach {folder}: run payagg as an ordinary user, "
        "move it below a folder that others may enter, or set PAYAGG_DATABASE_URL."
    )


def _accounts_of_root(owner: int | None) -> list[Account]:
    """Plainly another account; that account with the right to pass closed folders; root seen as that account."""
    entries = [entry for entry in map(_entry, PREFERRED if owner in (None, 0) else (owner,)) if entry]
    accounts = []
    for entry in entries:
        uid, gid = entry.pw_uid, entry.pw_gid
        if owner != 0:
            accounts.append(Account(uid, gid, (), {"user": uid, "group": gid, "extra_groups": []}))
            if setpriv := shutil.which("setpriv"):
                # Without the last one access(2) would deny what open(2) allows, and Postgres asks it.
                rights = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--securebits=+no_setuid_fixup")
                accounts.append(
                    Account(uid, gid, (setpriv, f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *rights))
                )
    unshare = shutil.which("unshare")
    if unshare and owner in (None, 0) and entries:
        # Outside the user namespace this is still root without its powers, so root owns the files.
        mapped = (unshare, "--user", f"--map-user={entries[0].pw_uid}", f"--map-group={entries[0].pw_gid}")
        accounts.append(Account(0, 0, mapped))
    return accounts


def _entry(account: str | int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(account) if isinstance(account, int) else pwd.getpwnam(account)
    except KeyError:
        return None


def _name(uid: int) -> str:
    entry = _entry(uid)
    return entry.pw_name if entry else f"user {uid}"
