"""Every answer of every HTTP test, in one folder that all pytest processes share."""

import base64
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = "PAYAGG_RECORDED_ANSWERS"
API = "/api/v1"
_PARAMETER = re.compile(r"(?<=[a-z])_([a-z])(?=[a-z_]*\})")
App = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass(frozen=True)
class Answer:
    """`route` is the template of the path below /api/v1, as the interface spells it; None where no route matched."""

    method: str
    route: str | None
    status: int
    media_type: str
    body: bytes
    test: str  # as pytest names it, without parameters

    @property
    def operation(self) -> str:
        return f"{self.method} {self.route}"

    def json(self) -> Any:
        """None for what is not JSON."""
        return json.loads(self.body) if self.media_type == "application/json" and self.body else None


def recorded(app: App) -> App:
    """`app`, keeping what it answers; without a folder to keep it in, `app` itself."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return app
    file = open(Path(folder) / f"{os.getpid()}.jsonl", "a", buffering=1)  # noqa: SIM115 - open as long as the app

    async def recording(scope: Any, receive: Any, send: Any) -> None:
        started: dict[str, Any] = {}
        parts: list[bytes] = []

        async def keep(message: Any) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))
            await send(message)

        method = scope.get("method", "")
        try:
            await app(scope, receive, keep)
        finally:
            if started:
                headers = {name.lower(): value.decode("latin-1") for name, value in started["headers"]}
                template = scope.get("path_template") or None
                answer = Answer(
                    method,
                    _PARAMETER.sub(_camel, template.removeprefix(API)) if template else None,
                    started["status"],
                    headers.get(b"content-type", "").partition(";")[0],
                    b"".join(parts),
                    os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0].partition("[")[0].partition("@")[0],
                )
                file.write(json.dumps(asdict(answer) | {"body": base64.b64encode(answer.body).decode()}) + "\n")

    return recording


def _camel(letter: re.Match[str]) -> str:
    return letter[1].upper()


def answers(folder: Path) -> Iterator[Answer]:
    """What all processes kept so far; equal answers come once."""
    seen = set()
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            if line not in seen:
                seen.add(line)
                kept = json.loads(line)
                yield Answer(**kept | {"body": base64.b64decode(kept["body"])})
