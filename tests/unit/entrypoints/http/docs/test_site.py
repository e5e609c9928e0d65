"""The documentation's site: every page, link and anchor."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from html import unescape

import pytest

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.http.docs.markdown import render_page
from payagg.entrypoints.http.docs.pages import DOCS, MISSING, OPERATING, SECTIONS, pictures
from payagg.entrypoints.http.docs.reference import samples
from payagg.entrypoints.http.docs.site import DocsSite
from payagg.entrypoints.http.server.errors import help_link
from tools.openapi.document import document

DOCUMENT = document(api_routes())
OPERATIONS = [(path, method, item[method]) for path, item in DOCUMENT["paths"].items() for method in item]


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return DocsSite(DOCUMENT).files()


def pages_in(files: dict[str, bytes]) -> dict[str, str]:
    """Each page by its slug."""
    return {name: body.decode() for name, body in files.items() if "." not in name}


def broken_links(files: dict[str, bytes]) -> Iterator[str]:
    pages = pages_in(files)
    places = {name: set(re.findall(r' id="([^"]*)"', page)) for name, page in pages.items()}
    for name, page in pages.items():
        for link in re.findall(r'\b(?:href|src)="([^"]*)"', page):
            to, _, place = link.partition("#")
            if re.match(r"[a-z]+:|/openapi", link):
                continue
            file = to.removeprefix("/docs").removeprefix("/") if to else name
            if file not in files or (place and place not in places.get(file, ())):
                yield f"{name}: {link}"


def test_every_link_and_anchor_of_the_site_leads_somewhere(files: dict[str, bytes]) -> None:
    assert list(broken_links(files)) == []
    for page in DocsSite(DOCUMENT).pages:
        if page.section != OPERATING:  # what merchants read links to pages alone
            assert b"<a>" not in files[page.slug], page.slug
    guides = {f"guide/{path.name}" for path in (DOCS / "guide").glob("*.md")}
    assert guides <= {file for section in SECTIONS.values() for file in section}


def test_no_page_loads_anything_from_elsewhere(files: dict[str, bytes]) -> None:
    own = {f"/docs/{name}" for name in pictures()}
    for name, page in pages_in(files).items():
        loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]*)"', page)
        assert set(loaded) - own == {"/docs/style.css", "/docs/site.js"}, name
        assert " style=" not in page


def test_the_reference_shows_every_operation_event_and_code(files: dict[str, bytes]) -> None:
    whole = "".join(page for name, page in pages_in(files).items() if name.startswith("reference"))
    sent = [item["post"] for item in DOCUMENT["webhooks"].values()]
    for operation in [operation for _, _, operation in OPERATIONS] + sent:
        assert f'id="{operation["operationId"]}"' in whole
    for code in set(ErrorCode) - {ErrorCode.METHOD_NOT_ALLOWED, ErrorCode.MISDIRECTED_REQUEST}:
        assert f"<code>{code.name}</code>" in whole
    entries = re.findall(r'<h2 id="([^"]+)"', files["errors"].decode())
    assert [help_link(code) for code in ErrorCode] == [f'</docs/errors#{entry}>; rel="help"' for entry in entries]


def test_the_text_of_a_page_cannot_become_markup() -> None:
    page = render_page("# A <b>\n\n<script>alert(1)</script> `<i>`\n\n```text\n<u>\n```\n", "errors.md", str)
    assert not re.search(r"<(?:b|script|i|u)>", page)


def test_the_samples_of_every_operation_are_programs() -> None:
    shown = [samples(*operation, "http://127.0.0.1:8000/api/v1") for operation in OPERATIONS]
    for sample in shown:
        assert "{" not in sample["bash"].partition("\n")[0], "a parameter without a value"
        ast.parse(sample.get("python", ""))
    bash = shutil.which("bash")
    assert bash is not None
    script = "\n".join(sample["bash"] for sample in shown)
    checked = subprocess.run([bash, "-n"], input=script, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_the_search_knows_every_page_and_every_operation(files: dict[str, bytes]) -> None:
    index = unescape(files["search.js"].decode())
    for name in pages_in(files).keys() - {MISSING}:
        assert f'"{f"/docs/{name}".rstrip("/")}' in index, name
    for _, _, operation in OPERATIONS:
        assert f"#{operation['operationId']}" in index
