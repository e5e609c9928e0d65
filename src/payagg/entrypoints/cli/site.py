"""`make site`: writes the documentation as files for any web server, or to open as they are."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from payagg.entrypoints.http.api.openapi.audiences import Audience, described_for
from payagg.entrypoints.http.api.openapi.document import document
from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.http.docs.site import DocsSite
from payagg.entrypoints.settings import Settings

_LINK = re.compile(r'\b(?:href|src)="([^"]*)"')


def render_files(settings: Settings) -> dict[str, bytes]:
    """Every file by its name; links between them are relative."""
    whole = document(api_routes(settings), settings)
    named = {}
    for name, body in DocsSite(whole, prefix="", suffix=".html").files().items():
        is_page = "." not in name
        named[f"{name or 'index'}.html" if is_page else name] = _beside(body) if is_page else body
    named["openapi.json"] = json.dumps(whole).encode()
    return named | {f"openapi/{one.word}.json": json.dumps(described_for(one, whole)).encode() for one in Audience}


def _beside(page: bytes) -> bytes:
    """The OpenAPI files are beside the pages, not at a server's root."""
    return page.replace(b'href="/openapi', b'href="openapi')


def broken_links(files: dict[str, bytes]) -> Iterator[str]:
    """Broken links within the site, one line each."""
    places = {
        name: set(re.findall(r' id="([^"]*)"', body.decode())) for name, body in files.items() if name.endswith(".html")
    }
    for name in sorted(name for name in files if name.endswith(".html")):
        for link in _LINK.findall(files[name].decode()):
            if re.match(r"[a-z]+:", link):
                continue
            to, _, place = link.partition("#")
            if (to or name) not in files or (place and place not in places.get(to or name, ())):
                yield f"{name}: {link}"


def main(arguments: Sequence[str] | None = None) -> int:
    """1 when a link is broken, each named on standard error; then nothing is written."""
    parser = argparse.ArgumentParser(prog="python -m payagg.entrypoints.cli.site", description="Write the site.")
    parser.add_argument("--into", type=Path, default=Path("build/site"), help="the folder to write to (build/site)")
    into: Path = parser.parse_args(arguments).into
    files = render_files(Settings())
    broken = list(broken_links(files))
    for line in broken:
        sys.stderr.write(f"A link leads nowhere: {line}\n")
    if not broken:
        for name, body in files.items():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            (into / name).write_bytes(body)
        sys.stdout.write(f"{len(files)} files in {into}; open {into / 'index.html'}\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
