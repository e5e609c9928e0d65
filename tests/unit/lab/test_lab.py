"""The laboratory's one command, its parts and its page of figures."""

import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from lab.__main__ import PARTS, Part
from lab.fuzz.run import LIMITS
from lab.kit import figures
from lab.kit.site import UNLIMITED
from payagg.entrypoints.settings import fields_of, variable
from tests.support.machine import ROOT


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_has_a_module_and_its_needs_are_targets(part: Part) -> None:
    assert callable(importlib.import_module(f"lab.{part.name}.run").main)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(part.needs) <= set(targets)


def test_every_module_that_is_started_by_its_name_exists() -> None:
    files = [file for folder in ("lab", "benchmarks") for file in (ROOT / folder).rglob("*.py")]
    named = {name for file in files for name in re.findall(r'"-m", "([a-z_.]+)', file.read_text())}
    assert {"lab.crashes.child", "lab.kit.loopback_process", "benchmarks.receiver"} <= named
    assert [name for name in named if find_spec(name) is None] == []


def test_what_is_loaded_is_set_by_settings_that_there_are() -> None:
    known = {variable(one) for one in fields_of()}
    assert {*UNLIMITED, *(f"PAYAGG_{name}_LIMIT" for name in LIMITS)} <= known


def test_every_figure_is_of_a_part_and_told_in_words() -> None:
    assert {name.split()[0] for name in figures.figures()} <= {part.name for part in PARTS}
    assert {name.split()[0] for name in figures.WORDS} <= {part.name for part in PARTS}
    assert figures.page().count("\n| ") >= len(figures.figures())


def test_only_a_whole_run_that_holds_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (page := tmp_path / "page").write_text(figures.PAGE.read_text())
    monkeypatch.setattr(figures, "FILE", tmp_path / "figures")
    monkeypatch.setattr(figures, "PAGE", page)
    for whole, wrong in ((True, ["lost"]), (False, []), (True, [])):
        assert not figures.FILE.exists()
        tally = figures.RunSummary("crashes", [])
        tally.line("a crash", wrong)
        assert tally.end(whole=whole) == len(wrong)
    assert figures.figures()["crashes"]["holds"] == 1
