"""The data folder of the embedded Postgres, with the roles and the database of the application in it."""

import os
import re
import shutil
from pathlib import Path

from payagg.adapters.postgres.embedded import EmbeddedPostgresError
from payagg.adapters.postgres.embedded.os_account import APPLICATION, SUPERUSER, Account
from payagg.adapters.postgres.embedded.programs import MAJOR

# The superuser's first statements; the application's role owns its database. That database is the one initdb made: a
# copy takes a second on a slow disk.
FIRST_STATEMENTS = (
    f"CREATE ROLE {APPLICATION} LOGIN",
    f"ALTER DATABASE postgres RENAME TO {APPLICATION}",
    f"ALTER DATABASE {APPLICATION} OWNER TO {APPLICATION}",
)
# The built-in C.UTF-8 behaves the same on every machine, whatever its locales.
LOCALE = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")


def make_data_folder(data: Path, account: Account, binaries: Path) -> None:
    """Builds it under another name, unless it exists, then renames it: an interrupted start leaves nothing incomplete.

    Raises EmbeddedPostgresError, also for data of another major version.
    """
    for leftover in data.parent.glob("postgres.init-*"):
        shutil.rmtree(leftover)
    if data.exists():
        version = (data / "PG_VERSION").read_text().strip()
        if version != str(MAJOR):
            raise EmbeddedPostgresError(
                f"{data} was made by Postgres {version}, this is {MAJOR}: dump it with the old version, "
                "or choose another PAYAGG_STATE_DIR (`payagg dev --fresh` starts over)."
            )
        return
    stage = data.parent / f"postgres.init-{os.getpid()}"
    stage.mkdir(mode=0o700)
    fresh, maker = stage / "data", account.maker()
    fresh.mkdir(mode=0o700)
    if maker is not None:
        os.chown(fresh, maker, account.gid)
    seen = account.visible_path(fresh)
    login = [f"--username={SUPERUSER}", "--auth-local=peer", "--auth-host=reject"]
    done = account.run([str(binaries / "initdb"), f"--pgdata={seen}", *LOCALE, *login], maker)
    if done.returncode == 0:
        alone = [str(binaries / "postgres"), "--single", "-c", "exit_on_error=on", "-D", seen, "template1"]
        done = account.run(alone, maker, "".join(f"{statement}\n" for statement in FIRST_STATEMENTS))
    if done.returncode != 0:
        shutil.rmtree(stage, ignore_errors=True)
        raise EmbeddedPostgresError(f"The embedded Postgres could not be created: {reason(done.stderr)}")
    account.own_all(fresh)
    fresh.rename(data)
    stage.rmdir()


def reason(output: str) -> str:
    """The line of a Postgres program's output that gives the reason."""
    if "No space left on device" in output:
        return "no space is left on its disk."
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"FATAL|PANIC|error:|could not", line)]
    return (telling or lines or ["it said nothing."])[-1 if not telling else 0]
