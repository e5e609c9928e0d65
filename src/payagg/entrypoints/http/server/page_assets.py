"""Scripts, styles and pictures of pages."""

import gzip
import hashlib
from pathlib import Path

from litestar import Response

MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class PageAssets:
    """The files of `folder`, and `more` by name. One digest for all of them, so that a module's relative import finds
    its own generation."""

    def __init__(self, folder: Path, more: dict[str, str] | None = None) -> None:
        self.files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in MEDIA_TYPES}
        self.files |= {name: text.encode() for name, text in (more or {}).items()}
        self._zipped = {name: gzip.compress(body, mtime=0) for name, body in self.files.items()}  # mobile data is dear
        named = b"\0".join(name.encode() + b"\0" + body for name, body in self.files.items())
        self.digest = hashlib.sha256(named).hexdigest()[:16]

    def answer(self, digest: str, name: str, accepted: str) -> Response[bytes]:
        """A file of this generation, cached for ever; for another one the present file, uncached, so an open page keeps
        working. `accepted`: the request's Accept-Encoding."""
        body = self.files.get(name)
        if body is None:
            return Response(b"Not found", status_code=404, media_type="text/plain")
        cache = "public, max-age=31536000, immutable" if digest == self.digest else "no-store"
        headers = {"Cache-Control": cache, "Cross-Origin-Resource-Policy": "same-origin", "Vary": "Accept-Encoding"}
        if takes_gzip(accepted):
            body = self._zipped[name]
            headers["Content-Encoding"] = "gzip"
        return Response(body, media_type=MEDIA_TYPES[Path(name).suffix], headers=headers)


def takes_gzip(accepted: str) -> bool:
    return "gzip" in (coding.strip() for coding in accepted.split(","))
