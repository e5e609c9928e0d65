"""Who may connect to the embedded Postgres, and by which path."""

import os
import tempfile
from pathlib import Path

from payagg.adapters.postgres.embedded.os_account import Account, allowed_accounts

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
