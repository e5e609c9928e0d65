"""What a planted defect is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


class EditDoesNotFit(Exception):
    """The product no longer has the text that a defect replaces, or has it more than once."""


@dataclass(frozen=True)
class Defect:
    """`edits`: old text, which stands once in `file` (below src/payagg), and what takes its place; `elsewhere`: the
    same in other files, where two parts keep one rule. `caught_by`: the test that must fail then, as pytest names it
    below tests/; `rule`: what the product promises instead."""

    name: str
    rule: str
    file: str
    edits: Mapping[str, str]
    caught_by: str
    elsewhere: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def planted(self, source: Path) -> dict[str, str]:
        """The texts of the files with the defect in them; `source` is the package's folder. Raises EditDoesNotFit."""
        texts = {}
        for file, edits in {self.file: self.edits, **self.elsewhere}.items():
            text = (source / file).read_text()
            for old, new in edits.items():
                if text.count(old) != 1:
                    raise EditDoesNotFit(f"{self.name}: {file} has {text.count(old)} times: {old}")
                text = text.replace(old, new)
            texts[file] = text
        return texts
