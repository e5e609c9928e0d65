"""The whole site as files: every page in one layout, the style, the script, and what the search looks through."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from html import unescape
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from payagg.entrypoints.http.docs import reference
from payagg.entrypoints.http.docs.markdown import render_page, resolve_links
from payagg.entrypoints.http.docs.pages import MISSING, OPERATING, DocsPage, pictures, text_of, written_pages
from payagg.entrypoints.http.docs.reference import TEMPLATES, Reference

ASSETS = Path(__file__).with_name("assets")
PREFIX = "/docs/"  # of every address
SHOWN_OF_A_SECTION = 400  # characters that the search keeps of each


@dataclass(frozen=True)
class DocsSite:
    document: dict[str, Any]
    pages: list[DocsPage] = field(default_factory=list)

    def __post_init__(self) -> None:
        tags = [
            DocsPage(reference.SECTION, reference.slug_of(tag["name"]), tag["name"]) for tag in self.document["tags"]
        ]
        before = written_pages()
        cut = next((place for place, page in enumerate(before) if page.section == OPERATING), len(before))
        all_of_them = [DocsPage(reference.SECTION, reference.INDEX, "All operations"), *tags]
        self.pages.extend([*before[:cut], *all_of_them, *before[cut:]])
        twice = [slug for slug, times in Counter(page.slug for page in self.pages).items() if times > 1]
        assert not twice, f"two pages are named {twice}"

    def address(self, slug: str) -> str:
        """Where a page of this slug is; the first one's is empty."""
        return (PREFIX + slug).rstrip("/")

    def files(self) -> dict[str, bytes]:
        """By name: pages under their slugs, each text as `<slug>.md` too, `llms.txt` (llmstxt.org) that lists them,
        MISSING for what is no page, the pictures, `style.css`, `site.js`, `search.js`."""
        bodies = {page.slug: self._body(page) for page in self.pages}
        found = {page.slug: self._laid_out(page, bodies[page.slug]) for page in self.pages}
        found[MISSING] = self._laid_out(_MISSING, "<h1>No such page</h1><p>Search, or choose from the menu.</p>")
        for page in self.pages:
            if page.file is not None:
                found[_source_name(page)] = resolve_links(text_of(page.file), page.file, self._source)
        found["llms.txt"] = self._llms()
        found["search.js"] = f"window.SECTIONS = {json.dumps(self._sections(bodies), ensure_ascii=False)};\n"
        found |= {name: (ASSETS / name).read_text(encoding="utf-8") for name in ("style.css", "site.js")}
        return {name: text.encode() for name, text in found.items()} | pictures()

    def _body(self, page: DocsPage) -> str:
        if page.file is not None:
            return render_page(text_of(page.file), page.file, self._address_of)
        if page.slug == reference.INDEX:
            return Reference(self.document).index(self.address)
        return Reference(self.document).page(next(tag for tag in self.document["tags"] if tag["name"] == page.title))

    def _address_of(self, target: str) -> str | None:
        """The address of the page that a text names by its file below docs/, or as `docs/<slug>`; None for no page."""
        if target in pictures():
            return PREFIX + target
        found = (page for page in self.pages if target in (page.file, f"docs/{page.slug}"))
        return next((self.address(page.slug) for page in found), None)

    def _source(self, target: str) -> str | None:
        """As `_address_of`, but the text of a page that has one."""
        page = next((page for page in self.pages if target == page.file), None)
        return self._address_of(target) if page is None else PREFIX + _source_name(page)

    def _llms(self) -> str:
        """What a program reads first: what this is, the API's description, and each text with its first words."""
        lines = ["# payagg", "", "> " + _first_words("guide/index.md"), ""]
        lines += [
            "The API's description as OpenAPI 3.1: /openapi/merchant.json. Its `servers` name the API's address.",
            "A merchant's server sends `Authorization: Bearer` with a secret key. Money is integer kobo.",
            "",
        ]
        texts = [page for page in self.pages if page.section != OPERATING]
        for section, pages in groupby(texts, key=lambda one: one.section):
            rows = [
                f"- [{page.title}]({PREFIX}{_source_name(page)}): {_first_words(page.file)}"
                for page in pages
                if page.file is not None
            ]
            lines += [f"## {section}", "", *rows, ""] if rows else []
        return "\n".join(lines)

    def _laid_out(self, page: DocsPage, body: str) -> str:
        place = self.pages.index(page) if page in self.pages else None
        first_words = _text("".join(re.findall(r"<p>.*?</p>", body, re.DOTALL)[:1]))
        layout = TEMPLATES.get_template("page.html")
        return layout.render(
            page=page,
            description=first_words[:DESCRIPTION_MAX],
            address=self.address,
            files=PREFIX,
            menu=[(section, list(pages)) for section, pages in groupby(self.pages, key=lambda one: one.section)],
            body=Markup(body),  # noqa: S704 - rendered from our own texts
            before=self.pages[place - 1] if place else None,
            after=next(iter(self.pages[place + 1 :]), None) if place is not None else None,
        )

    def _sections(self, bodies: dict[str, str]) -> list[list[str]]:
        """Of each heading: the page, the heading, where it is, and its first words and every name."""
        found = []
        for page in self.pages:
            for part in re.split(r"(?=<h[1-3][ >])", bodies[page.slug]):
                heading = re.match(r'<h[1-3](?: id="([^"]*)")?>(.*?)</h[1-3]>', part, re.DOTALL)
                if heading is not None:
                    place = self.address(page.slug) + (f"#{heading[1]}" if heading[1] else "")
                    rest = part[heading.end() :]
                    # A long table is found by the names in it.
                    names = " ".join(dict.fromkeys(re.findall(r"<code>([\w.]+)</code>", rest)))
                    words = f"{_text(rest)[:SHOWN_OF_A_SECTION]} {names}"
                    found.append([page.title, _text(heading[2]), place, words])
        return found


DESCRIPTION_MAX = 160  # characters that search engines show
_MISSING = DocsPage("", MISSING, "No such page")


def _text(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def _source_name(page: DocsPage) -> str:
    return f"{page.slug or 'index'}.md"


def _first_words(file: str) -> str:
    """The first paragraph of a text, as one line without its links."""
    parts = re.sub(r"\A<!--.*?-->\s*", "", text_of(file)).split("\n\n")
    paragraph = next(part for part in parts if re.match(r"[\w`*\[]", part))
    return " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph).split())
