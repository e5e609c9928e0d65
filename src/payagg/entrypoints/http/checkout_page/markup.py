"""Templates, read once: every text inserted is escaped, except another template's output."""

import base64
import hashlib
import re
import zlib
from functools import cache
from pathlib import Path

from markupsafe import Markup, escape

from payagg.entrypoints.http.server.page_assets import PageAssets


def _format(text: str) -> str:
    """A template with `$name` places, converted to a format string without indentation: C fills it many times faster
    than string.Template."""
    return re.sub(r"\$([a-z_]+)", r"%(\1)s", re.sub(r"\n\s+", "\n", text).replace("%", "%%"))


HERE = Path(__file__).parent
ASSETS = PageAssets(HERE / "assets")
TEMPLATES = {path.stem: _format(path.read_text("utf-8")) for path in (HERE / "templates").glob("*.html")}
# Inline: a separate style sheet would delay the first paint by one round trip.
SHEET, OPTIONS, GUARD = (
    (HERE / "inline" / name).read_text("utf-8") for name in ("checkout.css", "options.css", "guard.js")
)
STYLE = SHEET + OPTIONS  # the console shows a merchant the options alone
GZIP = 16  # zlib's flag for a gzip container
WINDOW_BITS, MEMORY = 13, 7  # of the compressor: copying a small one costs a few microseconds


def fill(template: str, /, **values: object) -> Markup:
    """The filled template; raises KeyError for a place without its value."""
    return Markup(TEMPLATES[template] % {place: escape(value) for place, value in values.items()})  # noqa: S704


def of_content(text: str) -> str:
    """The source expression by which a content policy admits this very text in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


class Head:
    """The part common to every page, compressed once; `document` continues from a copy of that compressor."""

    def __init__(self, assets: str, script: str | None, imports: tuple[str, ...]) -> None:
        # The imports are preloaded beside the script, so a slow phone fetches them at once.
        tags = [f'<link rel="modulepreload" href="{escape(assets)}/{name}">' for name in imports]
        tags += [f'<script type="module" src="{escape(assets)}/{script}"></script>'] if script else []
        scripts = Markup("\n").join(map(Markup, tags))
        guard = Markup(GUARD) if script else ""  # noqa: S704 - our own file
        self._plain = fill("page", style=Markup(STYLE), guard=guard, scripts=scripts, assets=assets).encode()  # noqa: S704
        self._zip = zlib.compressobj(6, zlib.DEFLATED, GZIP + WINDOW_BITS, MEMORY)
        self._zipped = self._zip.compress(self._plain) + self._zip.flush(zlib.Z_SYNC_FLUSH)

    def document(self, title: str, content: Markup, extra: Markup, *, zipped: bool) -> bytes:
        """The whole page, gzip when `zipped`. It holds no secret beside caller input, so its size reveals nothing
        (BREACH)."""
        rest = f"{extra}<title>{escape(title)}</title>\n</head>\n<body>\n{content}</body>\n</html>\n".encode()
        if not zipped:
            return self._plain + rest
        compressor = self._zip.copy()
        return self._zipped + compressor.compress(rest) + compressor.flush()


head = cache(Head)
