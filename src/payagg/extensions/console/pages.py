"""Rendering: auto-escaped templates, the headers of every page, and assets."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from litestar import Response
from markupsafe import Markup, escape

from payagg.application.reports.anomalies import age_of, facts_of
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.checkout_page.markup import OPTIONS
from payagg.entrypoints.http.checkout_page.words import LAGOS, naira
from payagg.entrypoints.http.server.page_assets import PageAssets

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
ASSETS = PageAssets(HERE / "assets", {"options.css": OPTIONS})
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), usb=()",
    "X-Robots-Tag": "noindex, nofollow",
}


def instant(text: str | None) -> str:
    """An instant of the API (RFC 3339) for people, in Lagos time."""
    if not text:
        return "never"
    return f"{datetime.fromisoformat(text).astimezone(LAGOS):%d %b %Y, %H:%M:%S}"


def of(message: str, label: str | None) -> str:
    """What the API refused, said of the field as its label names it: "Must be set." is "Name must be set."."""
    if not label:
        return message
    name = label.partition(" (")[0]
    return f"{name} m{message[1:]}" if message.startswith("Must ") else message


def words(name: str) -> str:
    """A name of the API for people: `UNDER_REVIEW` is "under review", `providerId` "provider id"."""
    return re.sub("([a-z])([A-Z])", r"\1 \2", name).replace("_", " ").lower()


def day(on: date) -> str:
    return f"{on:%d %b}"


def credential(name: str) -> str:
    """A credential's name for people: `sandboxSecretKey` is "Secret key", `liveBaseUrl` is "Address"."""
    _, *parts = re.findall("[A-Z]?[a-z]+", name)
    return " ".join(parts).capitalize().replace("Base url", "Address")


def age(seconds: int) -> str:
    return age_of(timedelta(seconds=seconds))


def label_cells(rows: Markup, headings: Sequence[str]) -> Markup:
    """The rows of a table, each cell with its column's heading, which a narrow screen shows above it. Text is escaped,
    so every `<td` here is a cell's."""
    column = -1

    def cell(found: re.Match[str]) -> str:
        nonlocal column
        column = -1 if found[1] == "r" else column + 1
        return f'{found[0]} data-label="{escape(headings[column])}"' if found[1] == "d" else found[0]

    return Markup(re.sub(r"<t([rdh])\b", cell, rows))  # noqa: S704 - a template's own output


@cache
def _templates() -> "Environment":
    """Each compiles in milliseconds when first shown: all of them took a ninth of a process's start. The library is
    loaded with the first: 1 MiB, and many processes show none."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "money": naira,
        "of": of,
        "instant": instant,
        "day": day,
        "words": words,
        "credential": credential,
        "age": age,
        "facts": partial(facts_of, money=naira),
        "labelled": label_cells,
    }
    return made


def root_of(use_cases: Services) -> str:
    """The deployment's path prefix behind its proxy; empty for most."""
    return urlsplit(use_cases.settings.base_url).path.rstrip("/")


def render_page(use_cases: Services, template: str, facts: Mapping[str, Any], status: int = 200) -> Response[bytes]:
    """The page `template`, with every value escaped."""
    root = root_of(use_cases)
    shown = {"root": root, "assets": f"{root}/console/assets/{ASSETS.digest}", "problem": None, "done": None, **facts}
    body = _templates().get_template(f"{template}.html").render(shown)
    return Response(body.encode(), status_code=status, media_type="text/html", headers=HEADERS)


def see_other(use_cases: Services, path: str) -> Response[bytes]:
    """The browser continues with a GET of `path` (RFC 9110, 15.4.4), so a reload repeats nothing."""
    headers = {"Location": root_of(use_cases) + path, "Cache-Control": "no-store"}
    return Response(b"", status_code=303, media_type="text/plain", headers=headers)
