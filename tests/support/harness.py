"""The harness's command, `payagg-testing`, in this process."""

import pytest
from payagg_testing.command import main


def harness(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    """Its exit status, and what it wrote."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code, "".join(capsys.readouterr())
