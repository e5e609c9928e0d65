"""Which pages there are, in the order in which they are read, and where their texts stand. A server loads this alone,
and what renders them with the first page."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import payagg

# In an installed package the texts lie beside it; in a working tree they are the repository's own.
_INSTALLED = Path(payagg.__file__).parent / "docs"
DOCS: Final = _INSTALLED if _INSTALLED.is_dir() else Path(payagg.__file__).parents[2] / "docs"
MISSING = "404"  # the name of the page that is shown for what is none
OPERATING: Final = "Operating"
SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Start": ("guide/index.md", "guide/installing.md", "guide/quick-start.md", "guide/authentication.md"),
    "Take payments": (
        "guide/taking-a-payment.md",
        "guide/testing.md",
        "errors.md",
        "guide/reconciling.md",
        "guide/going-live.md",
    ),
    "Webhooks": ("guide/webhooks.md", "events.md", "verifying-webhooks.md"),
    "Concepts": ("states.md",),
    "Tools": ("guide/clients.md", "guide/harness.md"),
}


@dataclass(frozen=True)
class DocsPage:
    """`file` is below docs/, None for what has no text there; `slug` is its name in addresses, empty for the first."""

    section: str
    slug: str
    title: str
    file: str | None = None


def written_pages() -> list[DocsPage]:
    """The pages that are texts under docs/, those for operators last, where there are any."""
    found = [_page(section, file) for section, files in SECTIONS.items() for file in files]
    operating = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob("operating/*.md"))
    return found + [_page(OPERATING, file) for file in operating]


@cache
def pictures() -> dict[str, bytes]:
    """Each picture by its file's name."""
    return {path.name: path.read_bytes() for path in sorted(DOCS.glob("pictures/*"))}


def text_of(file: str) -> str:
    return (DOCS / file).read_text(encoding="utf-8")


def _page(section: str, file: str) -> DocsPage:
    title = next(line[2:] for line in text_of(file).splitlines() if line.startswith("# "))
    path = Path(file)
    slug = path.parent.name if path.stem == "README" else path.stem
    return DocsPage(section, "" if file == "guide/index.md" else slug, title, file)
