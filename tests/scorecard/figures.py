"""What long commands measured, one JSON file each below `tests/figures/`, for the scorecard to read with its date."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "figures"


def note(name: str, **figures: Any) -> None:
    """Writes what the command `name` measured today; the file is committed, as the documents are."""
    FOLDER.mkdir(exist_ok=True)
    whole = {"date": datetime.now(UTC).date().isoformat(), **figures}
    (FOLDER / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n", "utf-8")


def noted(name: str) -> dict[str, Any] | None:
    """What was written last, None where nothing ever was."""
    file = FOLDER / f"{name}.json"
    return dict(json.loads(file.read_text("utf-8"))) if file.exists() else None
