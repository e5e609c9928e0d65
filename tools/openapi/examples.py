"""Examples of requests, answers, refusals and events, recorded from a run.

`examples.json` holds what a merchant, a payer, an administrator and a provider sent and were answered in
`tests/support/answers/story.py`; `python -m tools.documents` writes it and `--check` compares it.
"""

import json
from pathlib import Path
from typing import Any

from payagg.domain.errors import ErrorCode

FILE = Path(__file__).with_name("examples.json")


def load_examples() -> dict[str, Any]:
    """`operations` by id: the `request`, and each success by its status; `errors` by code; `events` by type."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def error_examples(recordings: dict[str, Any], codes: set[ErrorCode]) -> dict[str, Any]:
    """The component of each of these codes: the recorded answer, else the code's default message."""
    return {
        code.name: {
            "summary": code.message,
            "value": recordings["errors"].get(code.name)
            or {"success": False, "error": {"code": code.name, "message": code.message}},
        }
        for code in ErrorCode
        if code in codes
    }


def place(whole: dict[str, Any], recordings: dict[str, Any]) -> None:
    """Puts the examples where they belong, in place."""
    for path in whole["paths"].values():
        for operation in path.values():
            known = recordings["operations"].get(operation["operationId"], {})
            _show(operation.get("requestBody"), known.get("request"))
            for status, answer in operation["responses"].items():
                _show(answer, known.get(status))
    for kind, item in whole["webhooks"].items():
        _show(item["post"]["requestBody"], recordings["events"].get(kind))


def _show(body: dict[str, Any] | None, example: Any) -> None:
    if body is not None and example is not None:
        for media_type, media in body.get("content", {}).items():
            if media_type == "application/json" or media_type.startswith("text/"):
                media["example"] = example
