"""The generated documents are current, and the check notices when they are not."""

from payagg.entrypoints.cli.docs import main
from tests.support.machine import ROOT


def test_the_committed_documents_are_current() -> None:
    assert main(["--check", "--into", str(ROOT)]) == 0
