"""After the last test: no answer leaked, each fits the description, and a whole run provoked every code and route."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.answers.recorder import FOLDER

SHOWN = 50
BY_DAY = "not release"  # tests of a release carry no rule's marker, so nothing is missing without them
_findings = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """The first process makes the folder; the workers inherit its name."""
    if not hasattr(config, "workerinput"):
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="payagg-answers-")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workerinput"):
        return
    folder = Path(os.environ[FOLDER])
    # A run that failed says so itself, and a run of some tests cannot provoke everything.
    if any(folder.iterdir()) and session.exitstatus == pytest.ExitCode.OK:
        from tests.support.answers.judge import judged

        config.stash[_findings] = judged(folder, whole=_is_whole(config))
        if config.stash[_findings]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    shutil.rmtree(folder)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Last, and counted in the line that ends the run: where all passed, nothing else says why it failed."""
    findings = config.stash.get(_findings, [])
    if findings:
        terminalreporter.stats["findings"] = findings
        terminalreporter.section(f"the recorded answers: {len(findings)} findings", red=True)
        for finding in findings[:SHOWN]:
            terminalreporter.line(finding)


def _is_whole(config: pytest.Config) -> bool:
    chosen = config.getoption("rule") or config.option.keyword or config.option.markexpr not in ("", BY_DAY)
    narrowed = chosen or config.getoption("lf", default=False)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed
