"""Logos: uploaded by an administrator, replaced, shown to all as they were sent, and nothing else taken for one."""

import base64
import zlib
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from payagg_testing.conformance.base import ConformanceMachine
from payagg_testing.conformance.expectation import matches
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.statements import ADMIN, tries

PNG, JPEG = "image/png", "image/jpeg"
GIF = base64.b64decode("R0lGODdhAQABAIAAAAAAAAAAACwAAAAAAQABAAAIBAABBAQAOw==")
_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAFA3PEY8MlBGQUZaVVBfeMiCeG5uePWvuZHI////////////////////////////////////////////////"
    "////wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AP//Z"
)
BOUNDARY = "conformance-boundary"
FORM_TYPE = f"multipart/form-data; boundary={BOUNDARY}"
MEGABYTE = 1024 * 1024
UPLOADS_MAX = 4  # in a history: a service decodes each


def png(shade: int, padding: int = 0) -> bytes:
    """One grey pixel, of 0 to 255; `padding` bytes in a chunk that readers pass over make it larger."""
    parts = [
        _chunk(b"IHDR", (1).to_bytes(4) * 2 + bytes([8, 0, 0, 0, 0])),
        _chunk(b"paDd", bytes(padding)) if padding else b"",
        _chunk(b"IDAT", zlib.compress(bytes([0, shade]))),
        _chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def jpeg(comment: str) -> bytes:
    """One pixel; the comment makes it another file."""
    words = comment.encode()
    return _JPEG[:2] + b"\xff\xfe" + (len(words) + 2).to_bytes(2) + words + _JPEG[2:]


def _chunk(name: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4) + name + data + zlib.crc32(name + data).to_bytes(4)


def form(content: bytes, filename: str, media_type: str, part: str = "file") -> bytes:
    """The body of a multipart form with one file, to be sent as FORM_TYPE."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{part}"; filename="{filename}"\r\n'
    return f"{head}Content-Type: {media_type}\r\n\r\n".encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()


# What an upload is called, and what it holds. The last are of the right type and yet none.
BAD_FILES: list[tuple[str, bytes, str]] = [
    ("a GIF", GIF, "image/gif"),
    ("a GIF that is called a PNG", GIF, PNG),
    ("a page that is called a PNG", b"<html><script>alert(1)</script></html>", PNG),
    ("an SVG", b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "image/svg+xml"),
    ("nothing", b"", PNG),
    ("half a PNG", png(7)[:40], PNG),
    ("a PNG of more than 2 MB", png(7, 2 * MEGABYTE), PNG),
]


class LogoConformance(ConformanceMachine):
    title = "logos"

    needs = (ADMIN,)

    def __init__(self) -> None:
        super().__init__()
        self.id = ""
        self.is_deleted = False
        self.shown: tuple[bytes, str] | None = None  # what everybody sees, and its type
        self.uploads = 0

    def teardown(self) -> None:
        if self.id and not self.is_deleted:
            self.target.service.send(ServiceCall("DELETE", f"/admin/gateways/{self.id}", self.target.admin_token))

    @initialize()
    @tries("gateways.25")
    def create(self) -> None:
        body = {"slug": f"logo-{self.nonce}", "name": "With a logo"}
        self.id = self.admin("creates a gateway", "POST", "", 201, body=body).data["id"]
        self.fetch()

    @precondition(lambda self: self.uploads < UPLOADS_MAX)
    @rule(is_other=st.sampled_from([True, True, False]), is_large=st.sampled_from([False] * 7 + [True]))
    @tries("gateways.24", "limits.22")
    def upload(self, is_other: bool, is_large: bool) -> None:
        """Another file each time, often of the other type than the one before."""
        self.uploads += 1
        was_png = self.shown is not None and self.shown[1] == PNG
        is_png = was_png is not is_other
        padding = MEGABYTE * 3 // 2 if is_large else 0
        content = png(self.uploads, padding) if is_png else jpeg(f"{self.nonce} {self.uploads}")
        name, kind = ("logo.png", PNG) if is_png else ("logo.jpg", JPEG)
        status = 404 if self.is_deleted else 201
        url = f"/api/v1/public/gateways/{self.id}/logo"
        data = {"logoUrl": url} if status == 201 else None
        self.send(f"uploads a {kind} of {len(content)} bytes", form(content, name, kind), status, data=data)
        if status == 201:
            self.shown = content, kind
            self.admin("reads the gateway", "GET", f"/{self.id}", 200, data={"logoUrl": url})
        self.fetch()

    @precondition(lambda self: self.uploads < UPLOADS_MAX)
    @rule(bad=st.sampled_from(BAD_FILES))
    @tries("limits.12", "limits.13")
    def upload_badly(self, bad: tuple[str, bytes, str]) -> None:
        """What was there stays."""
        self.uploads += 1
        words, content, kind = bad
        statuses = (404, 400) if self.is_deleted else (400,)
        if len(content) > 2 * MEGABYTE:
            statuses = (*statuses, 413)
        self.send(f"uploads {words}", form(content, "logo.png", kind), *statuses)
        self.fetch()

    @precondition(lambda self: not self.is_deleted)
    @rule()
    def upload_no_file(self) -> None:
        self.send("uploads a form with another part", form(png(9), "logo.png", PNG, part="picture"), 400)
        self.admin("uploads JSON", "POST", f"/{self.id}/logo", 400, body={"file": "logo.png"})
        self.fetch()

    @rule(pick=st.integers(0, 1))
    def upload_without_the_right(self, pick: int) -> None:
        content, path = form(png(8), "logo.png", PNG), f"/admin/gateways/{self.id}/logo"
        headers = {"Content-Type": FORM_TYPE}
        self.ask("a stranger", "uploads a logo", "POST", path, 401, content=content, headers=headers)
        tokens = [merchant.token for merchant in self.merchants if merchant.token is not None]
        if tokens:
            token, who = tokens[pick % len(tokens)], f"owner {pick % len(tokens) + 1}"
            self.ask(who, "uploads a logo", "POST", path, 403, bearer=token, content=content, headers=headers)
        self.fetch()

    @precondition(lambda self: self.uploads and not self.is_deleted)
    @rule(sure=st.sampled_from([False, False, True]))
    def delete(self, sure: bool) -> None:
        """With the gateway its logo is gone."""
        if sure:
            self.admin("deletes the gateway", "DELETE", f"/{self.id}", 200)
            self.is_deleted, self.shown = True, None
            self.fetch()

    def send(self, what: str, content: bytes, *statuses: int, data: dict[str, Any] | None = None) -> None:
        headers = {"Content-Type": FORM_TYPE}
        self.admin(what, "POST", f"/{self.id}/logo", *statuses, content=content, headers=headers, data=data)

    def fetch(self) -> None:
        who, path = "anybody", f"/public/gateways/{self.id}/logo"
        if self.shown is None:
            self.ask(who, "fetches the logo that is not there", "GET", path, 404)
            return
        content, kind = self.shown
        shown = {
            "content-type": kind,
            "cache-control": matches(r"(?=.*\bpublic\b)(?=.*\bmax-age=3600\b).*"),
            "x-content-type-options": "nosniff",
        }
        self.ask(who, "fetches the logo", "GET", path, 200, file=content, shown=shown)
