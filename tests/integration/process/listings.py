"""The listings of a Markdown text, and a reader's shell to run them in."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.machine import NODE, program

PATIENCE = 300  # seconds; Go compiles what it uses of its library
INTERPRETERS = {"python": ("python", "listing.py"), "js": ("node", "listing.mjs"), "php": ("php", "listing.php")}
_FENCE = re.compile(r"^```(\w+)(?: (\w+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Listing:
    """`use` is the word after the language: how it differs from a listing that is simply run."""

    language: str
    use: str
    code: str


def listings(path: Path) -> Iterator[Listing]:
    for language, use, code in _FENCE.findall(path.read_text(encoding="utf-8")):
        yield Listing(language, use, code)


@dataclass
class ReadersShell:
    """One folder and one environment, kept from listing to listing. `printed` is what the last one wrote."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    printed: str = ""

    def __post_init__(self) -> None:
        (self.folder / "node_modules").symlink_to(NODE / "node_modules")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PAYAGG_")}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        modules = os.pathsep.join([str(self.folder), *sys.path])
        self.environment = {**kept, "PATH": path, "PYTHONPATH": modules, **self.environment}

    def run(self, listing: Listing) -> None:
        """Raises AssertionError with what it wrote when it fails."""
        match listing.language:
            case "bash":
                # What it exports is there for the next one.
                self._ran([program("bash"), "-c", f"set -euo pipefail\n{listing.code}\nenv -0 >.environment\n"])
                pairs = (self.folder / ".environment").read_text().split("\0")
                self.environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
            case language:
                interpreter, file = INTERPRETERS[language]
                (self.folder / file).write_text(listing.code)
                self._ran([program(interpreter), file])

    def _ran(self, command: list[str]) -> None:
        place: dict[str, Any] = {"cwd": self.folder, "env": self.environment}
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, **place)
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
        self.printed = done.stdout


def shape(node: Any) -> Any:
    """Names and types of a JSON value, so that an example can be compared with an answer."""
    if isinstance(node, dict):
        return {name: shape(inner) for name, inner in node.items()}
    return [shape(inner) for inner in node[:1]] if isinstance(node, list) else type(node).__name__


def is_refusal(printed: str) -> bool:
    try:
        return json.loads(printed.strip().splitlines()[-1])["success"] is False
    except (json.JSONDecodeError, IndexError, KeyError, TypeError):
        return False
