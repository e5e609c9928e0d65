"""The product and its tests in a folder of their own, where a tool may break the product and run tests against it."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from xml.etree import ElementTree

from lab.kit.places import a_folder
from tests.support.machine import NODE, ROOT

# Of pytest's plugins those that our tests use: loading all that are installed takes longer than most tests.
PLUGINS = ("-p", "no:cacheprovider", "-p", "anyio.pytest_plugin", "-p", "_hypothesis_pytestplugin")
_edits = count(1)


@dataclass(frozen=True)
class Ran:
    """What pytest said of the tests it ran. `failures`: the first line of each."""

    passed: int
    failures: Sequence[str]
    others: int  # errors outside a test's own lines, and skipped ones
    output: str


def place(root: Path, file: str) -> Path:
    """Where a file is that is named below src/payagg, or in the harness from payagg_testing on."""
    return root / ("testing" if file.startswith("payagg_testing/") else "src/payagg") / file


class Copy:
    """What needs no copy is linked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in os.listdir(ROOT):
            if name in ("src", "testing", "tests"):
                ignored = shutil.ignore_patterns("__pycache__", "node_modules")
                shutil.copytree(ROOT / name, folder / name, ignore=ignored)
            elif name != ".git":
                (folder / name).symlink_to(ROOT / name)
        (folder / NODE.relative_to(ROOT) / "node_modules").symlink_to(NODE / "node_modules")

    @contextmanager
    def planted(self, texts: Mapping[str, str]) -> Iterator[None]:
        """Files, named as `place` takes them, have these texts until the block is left."""
        whole = {file: place(self.folder, file).read_text() for file in texts}
        try:
            self._write(texts)
            yield
        finally:
            self._write(whole)

    def _write(self, texts: Mapping[str, str]) -> None:
        """Each text gets a time of its own, so that no compiled file of the one before is used."""
        for file, text in texts.items():
            path = place(self.folder, file)
            path.write_text(text)
            at = path.stat().st_mtime + next(_edits)
            os.utime(path, (at, at))

    def run(self, tests: Sequence[str], *options: str, timeout: float | None = None) -> Ran:
        """Runs tests, named below tests/, in this copy; raises TimeoutError after `timeout` seconds."""
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        command = ["-m", "pytest", "-q", f"--junit-xml={report}", *PLUGINS, *options]
        _, said = self.python(*command, *(f"tests/{test}" for test in tests), timeout=timeout)
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
        failures = [str(one.get("message", "")).partition("\n")[0] for case in cases for one in case.iter("failure")]
        others = sum(1 for case in cases for kind in ("error", "skipped") for _ in case.iter(kind))
        return Ran(len(cases) - len(failures) - others, failures, others, said)

    def python(self, *arguments: str, timeout: float | None = None) -> tuple[int, str]:
        """Runs Python in this copy; its exit status and output. Raises TimeoutError after `timeout` seconds."""
        path = os.pathsep.join(str(self.folder / name) for name in ("src", "testing", ""))
        environ = os.environ | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, *arguments]
        with (self.folder / "output").open("w+") as output:
            # A session of its own, so that what was started ends with it.
            ran = subprocess.Popen(
                command, env=environ, cwd=self.folder, stdout=output, stderr=output, start_new_session=True
            )
            try:
                ran.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(ran.pid, signal.SIGKILL)
                ran.wait()
                raise TimeoutError from None
            output.seek(0)
            return ran.returncode, output.read()


@contextmanager
def a_copy() -> Iterator[Copy]:
    with a_folder("copy") as folder:
        yield Copy(folder)
