"""Markdown to HTML with markdown-it-py: anchors on headings, links between pages, code with its language."""

import posixpath
import re
from collections.abc import Callable, Mapping
from html import escape
from itertools import groupby
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name

LANGUAGES = {
    "bash": "Shell",
    "python": "Python",
    "js": "Node",
    "ts": "TypeScript",
    "php": "PHP",
    "go": "Go",
    "text": "Text",
}
_FORMATTER = HtmlFormatter(nowrap=True, classprefix="t-")
# The address of what a link names, a file below docs/ or `docs/<slug>`; None for what is no page.
Address = Callable[[str], str | None]


def anchor(heading: str) -> str:
    """As GitHub makes it, so that links work in both."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def render_page(text: str, file: str, address: Address) -> str:
    """The body of the page that `file` holds, its path below docs/."""
    return "".join(_blocks(_parser(file, address), re.sub(r"\A<!--.*?-->\s*", "", text)))


def resolve_links(text: str, file: str, address: Address) -> str:
    """The text itself, its links to other files led to where they are served."""

    def link(found: re.Match[str]) -> str:
        to, place = found[1], found[2] or ""
        page = address(posixpath.normpath(posixpath.join("/", posixpath.dirname(file), to))[1:])
        return f"]({page}{place})" if page is not None else "]()"

    return re.sub(r"\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)", link, text)


def code(source: str, language: str) -> str:
    """One listing. Scrolls by itself, so that no page is wider than its screen."""
    lexer = get_lexer_by_name({"ts": "typescript", "php": "php"}.get(language, language or "text"))
    if language == "php" and not source.lstrip().startswith("<?php"):
        lexer = get_lexer_by_name("php", startinline=True)
    shown = highlight(source, lexer, _FORMATTER)
    return f'<pre tabindex="0"><code>{shown}</code></pre>'


def choices(listings: Mapping[str, str]) -> str:
    """The same in several languages: the first is open."""
    return "".join(
        f'<details class="code" data-language="{language}"{" open" if place == 0 else ""}>'
        f"<summary>{LANGUAGES.get(language, language)}</summary>{code(source, language)}</details>"
        for place, (language, source) in enumerate(listings.items())
    )


def _blocks(parser: MarkdownIt, text: str) -> list[str]:
    """Programs that follow each other are one choice of language; an answer in JSON is none, and stands below them."""
    tokens = parser.parse(text)
    found = []
    for is_program, group in groupby(tokens, key=lambda token: token.type == "fence" and token.info != "json"):
        listings = list(group)
        languages = [token.info.partition(" ")[0] for token in listings]
        if is_program and len(listings) > 1 and len(set(languages)) == len(languages):
            found.append(choices({name: token.content for name, token in zip(languages, listings, strict=True)}))
        else:
            found.append(parser.renderer.render(listings, parser.options, {}))
    return found


def _parser(file: str, address: Address) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table"])

    def heading(tokens: list[Token], index: int, *_: Any) -> str:
        name = escape(anchor(tokens[index + 1].content))
        return f'<{tokens[index].tag} id="{name}">'

    def link(tokens: list[Token], index: int, *_: Any) -> str:
        to = str(tokens[index].attrs["href"])
        if not re.match(r"[a-z]+:|#", to):
            path, hash_, place = to.partition("#")
            page = address(posixpath.normpath(posixpath.join("/", posixpath.dirname(file), path))[1:])
            if page is None:
                return "<a>"  # a file of the repository: named, and nowhere to be fetched from
            to = page + hash_ + place
        return f'<a href="{escape(to)}">'

    def image(tokens: list[Token], index: int, *_: Any) -> str:
        name = posixpath.basename(str(tokens[index].attrs["src"]))
        return f'<img src="{escape(address(name) or "")}" alt="{escape(tokens[index].content)}">'

    def fence(tokens: list[Token], index: int, *_: Any) -> str:
        language, source = tokens[index].info.partition(" ")[0], tokens[index].content
        # A browser draws Mermaid with 3 MB of script alone, and each diagram's table says all of it.
        return "" if language == "mermaid" else code(source, language)

    rules: dict[str, Any] = parser.renderer.rules  # type: ignore[attr-defined]
    rules |= {
        "heading_open": heading,
        "link_open": link,
        "image": image,
        "fence": fence,
        "table_open": lambda *_: '<div class="table" tabindex="0"><table>',
        "table_close": lambda *_: "</table></div>",
    }
    return parser
