"""Which Pythons have a flaw that matters, and who tells it."""

import pytest
import structlog

from payagg.entrypoints.process import python_flaws
from payagg.entrypoints.process.python_flaws import python_flaw, tell_python_flaw


def test_a_python_with_a_known_flaw_is_told_with_what_mends_it() -> None:
    mended = {11: "3.11.10", 12: "3.12.6"}
    for version in ((3, 11, 7), (3, 11, 9), (3, 12, 0), (3, 12, 5)):
        flaw = python_flaw(version)
        assert flaw is not None
        assert flaw.startswith(f"Python {'.'.join(map(str, version))} has a known flaw, CVE-2024-7592")
        assert mended[version[1]] in flaw
    assert [python_flaw(sound) for sound in ((3, 11, 10), (3, 12, 6), (3, 13, 0), (3, 14, 0))] == [None] * 4


@pytest.mark.parametrize("flaw", [None, "a flaw"])
def test_a_flaw_is_one_line_of_the_log(monkeypatch: pytest.MonkeyPatch, flaw: str | None) -> None:
    monkeypatch.setattr(python_flaws, "python_flaw", lambda: flaw)
    with structlog.testing.capture_logs() as lines:
        tell_python_flaw()
    assert [line["flaw"] for line in lines] == ([] if flaw is None else [flaw])
