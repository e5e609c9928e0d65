"""The one table of defects: an edit of the product each, and the detectors that must notice it.

It stands in the TOML files beside this one. A table's name says what is wrong. A key that ends in `.py` or `.sql` is a
file below src/payagg, with old text, which stands there once, and new text, in turn; the others are detectors.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What each is given: a test as pytest names it below tests/, an invariant, and machines of the harness, over the
# application on the in-memory store and over the domain's rules alone.
DETECTORS = ("test", "simulation", "harness", "rules")


class EditDoesNotFit(Exception):
    """The product no longer has the text that a defect replaces, or has it more than once."""


@dataclass(frozen=True)
class Defect:
    """`edits`: for each file below src/payagg, old and new texts in turn. `detectors`: what each must notice it by."""

    name: str
    edits: Mapping[str, list[str]]
    detectors: Mapping[str, list[str]]

    @classmethod
    def read(cls, name: str, entry: Mapping[str, Any]) -> "Defect":
        noticed = {kind: entry[kind] for kind in DETECTORS if kind in entry}
        detectors = {kind: by if isinstance(by, list) else [by] for kind, by in noticed.items()}
        return cls(name, {file: texts for file, texts in entry.items() if file not in DETECTORS}, detectors)

    def planted(self, source: Path) -> dict[str, str]:
        """The texts of the files with the defect in them; `source` is the package's folder. Raises EditDoesNotFit."""
        planted = {}
        for file, edits in self.edits.items():
            text = (source / file).read_text()
            for old, new in zip(edits[::2], edits[1::2], strict=True):
                if text.count(old) != 1:
                    raise EditDoesNotFit(f"{self.name}: {file} has {text.count(old)} times: {old}")
                text = text.replace(old, new)
            planted[file] = text
        return planted


def _read() -> Iterator[Defect]:
    for area in sorted(Path(__file__).parent.glob("*.toml")):
        for name, entry in tomllib.loads(area.read_text()).items():
            yield Defect.read(name, entry)


DEFECTS = tuple(_read())
