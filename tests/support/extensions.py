"""The extensions that documents and lists of the whole product name, and that are not in the product any more."""

import re

from payagg.entrypoints.extensions import NAMES
from tests.support.machine import ROOT

DESCRIBED = re.findall(r"^\| `([a-z]+)` \| ", (ROOT / "docs" / "architecture.md").read_text("utf-8"), re.MULTILINE)
REMOVED = set(DESCRIBED) - set(NAMES)


def is_removed(place: str) -> bool:
    """Whether a file or test stood in the folder of a removed extension."""
    return not REMOVED.isdisjoint(re.split("[/:]", place))
