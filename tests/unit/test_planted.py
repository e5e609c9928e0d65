"""Every planted defect still fits the product, names a test that exists, and stands in the document."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import payagg
from tests.interface.test_table import named_in
from tests.planted.defect import Defect, EditDoesNotFit
from tests.planted.run import DEFECTS, DOCUMENT, row
from tests.support.product_copy import ROOT

SOURCE = Path(payagg.__file__).parent


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name.replace(" ", "-"))
def test_a_planted_defect_fits_the_product(defect: Defect) -> None:
    for file, text in defect.planted(SOURCE).items():
        if file.endswith(".py"):
            ast.parse(text)


def test_an_edit_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(EditDoesNotFit):
        Defect("none", "none", "domain/payment.py", {"no such text": ""}, "").planted(SOURCE)


def test_every_test_that_must_fail_exists() -> None:
    inherited = named_in(SOURCE / "testing" / "contracts" / "provider.py")

    def exists(test: str) -> bool:
        file, *_, name = test.split("::")
        path = ROOT / "tests" / file
        return path.exists() and name in named_in(path) | inherited

    assert [defect.caught_by for defect in DEFECTS if not exists(defect.caught_by)] == []


def test_no_defect_stands_twice() -> None:
    assert [name for name, times in Counter(defect.name for defect in DEFECTS).items() if times > 1] == []


def test_the_document_has_every_defect_and_no_other() -> None:
    told = [line.rpartition(" | ")[0] for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    rows = [line + " |" for line in told if not line.startswith(("| Defect", "| ---"))]
    assert rows == [row(defect) for defect in DEFECTS]
