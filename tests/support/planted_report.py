"""After the last test: which planted defects were found, by which invariant, and after how many histories."""

from collections.abc import Iterator

import pytest

PROPERTY = "planted"  # the name under which a test notes what it found: defect, invariant, histories


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = sorted(_rows(terminalreporter))
    if rows:
        terminalreporter.section(f"planted defects: {len(rows)} found")
        for defect, invariant, histories, seconds in rows:
            terminalreporter.line(f"{defect:<50} {invariant:<6} {histories:>4} histories {seconds:>6.1f} s")


def _rows(terminalreporter: pytest.TerminalReporter) -> Iterator[tuple[str, str, int, float]]:
    for report in terminalreporter.stats.get("passed", []):
        for name, found in report.user_properties:
            if name == PROPERTY:
                defect, invariant, histories = found
                yield defect, invariant, histories, report.duration
