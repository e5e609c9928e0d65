"""Templates, read once: every text that goes into one is escaped, and only another template's outcome is not."""

import base64
import gzip
import hashlib
import re
import zlib
from functools import cache
from pathlib import Path

from markupsafe import Markup, escape


def _format(text: str) -> str:
    """A template, where `$name` is a place for a value, as a format string without its indentation: that is filled in
    C, many times faster than by string.Template."""
    return re.sub(r"\$([a-z_]+)", r"%(\1)s", re.sub(r"\n\s+", "\n", text).replace("%", "%%"))


HERE = Path(__file__).parent
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
ASSETS = {path.name: path.read_bytes() for path in sorted((HERE / "assets").iterdir()) if path.suffix in MEDIA_TYPES}
ZIPPED = {name: gzip.compress(body, mtime=0) for name, body in ASSETS.items()}  # data is dear on a phone
# One digest names them all, so that a module's relative import finds its own generation.
DIGEST = hashlib.sha256(b"\0".join(name.encode() + b"\0" + body for name, body in ASSETS.items())).hexdigest()[:16]
TEMPLATES = {path.stem: _format(path.read_text("utf-8")) for path in (HERE / "templates").glob("*.html")}
# In the page itself: a style sheet of its own would keep the first paint waiting for one more round trip.
SHEET, OPTIONS, GUARD = (
    (HERE / "inline" / name).read_text("utf-8") for name in ("checkout.css", "options.css", "guard.js")
)
STYLE = SHEET + OPTIONS  # the console shows a merchant the options alone
GZIP = 16  # zlib's word for gzip around the data
WINDOW_BITS, MEMORY = 13, 7  # of the compressor: copying a small one costs a few microseconds


def fill(template: str, /, **values: object) -> Markup:
    """The filled template; raises KeyError for a place without its value."""
    return Markup(TEMPLATES[template] % {place: escape(value) for place, value in values.items()})  # noqa: S704


def of_content(text: str) -> str:
    """The source expression by which a content policy admits this very text in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


class Head:
    """The part that is the same of every page, compressed once; `document` goes on from a copy of that compressor."""

    def __init__(self, assets: str, script: str | None, imports: tuple[str, ...]) -> None:
        # The imports are named beside the script, so that a slow phone fetches all of them at once.
        tags = [f'<link rel="modulepreload" href="{escape(assets)}/{name}">' for name in imports]
        tags += [f'<script type="module" src="{escape(assets)}/{script}"></script>'] if script else []
        scripts = Markup("\n").join(map(Markup, tags))
        guard = Markup(GUARD) if script else ""  # noqa: S704 - our own file
        self._text = str(fill("page", style=Markup(STYLE), guard=guard, scripts=scripts, assets=assets))  # noqa: S704
        self._zip = zlib.compressobj(6, zlib.DEFLATED, GZIP + WINDOW_BITS, MEMORY)
        self._zipped = self._zip.compress(self._text.encode()) + self._zip.flush(zlib.Z_SYNC_FLUSH)

    def document(self, title: str, content: Markup, extra: Markup, *, zipped: bool) -> bytes:
        """The whole page, gzip when `zipped`. Nothing secret stands in it beside what a caller sent, so its size gives
        nothing away."""
        rest = f"{extra}<title>{escape(title)}</title>\n</head>\n<body>\n{content}</body>\n</html>\n"
        if not zipped:
            return (self._text + rest).encode()
        compressor = self._zip.copy()
        return self._zipped + compressor.compress(rest.encode()) + compressor.flush()


head = cache(Head)
