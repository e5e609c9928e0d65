"""Logos of the service written by hand."""

import re
import zlib
from collections.abc import Callable

from payagg_testing.conformance.inbox import Inbox

from lab.defects.services.gateways import HandGateways
from lab.defects.services.http import Picture, Refused, Reply, bad

PNG, JPEG = "image/png", "image/jpeg"


class HandLogos(HandGateways):
    def __init__(self, inbox: Inbox) -> None:
        super().__init__(inbox)
        self.logos: dict[str, tuple[bytes, str]] = {}

    def table(self) -> list[tuple[str, str, Callable[..., Reply]]]:
        return [
            *super().table(),
            ("POST", "/admin/gateways/{}/logo", self.upload_logo),
            ("GET", "/public/gateways/{}/logo", self.show_logo),
        ]

    def upload_logo(self, id: str) -> Reply:
        gateway = self.gateway(id)
        found = re.search(rb'name="file".*?Content-Type: (\S+)\r\n\r\n(.*)\r\n--', self.content, re.DOTALL)
        if found is None:
            raise bad("file")
        content = found[2]
        kind = self.kind_of(content, found[1].decode())
        if kind is None or len(content) > 2 * 1024 * 1024:
            raise bad("file")
        self.logos[id] = content, kind
        gateway["logoUrl"] = f"/api/v1/public/gateways/{id}/logo"
        return 201, {"logoUrl": gateway["logoUrl"]}

    def kind_of(self, content: bytes, claimed: str) -> str | None:
        """As the content says, whatever was claimed."""
        if content.startswith(b"\xff\xd8\xff") and content.endswith(b"\xff\xd9"):
            return JPEG
        is_png = content.startswith(b"\x89PNG\r\n\x1a\n") and content.endswith(
            b"IEND" + zlib.crc32(b"IEND").to_bytes(4)
        )
        return PNG if is_png else None

    def show_logo(self, id: str) -> Reply:
        if id not in self.logos or id not in self.gateways:
            raise Refused(404, "NOT_FOUND")
        content, kind = self.logos[id]
        return 200, Picture(content, self.logo_headers(kind))

    def logo_headers(self, kind: str) -> dict[str, str]:
        cache = {"cache-control": "public, max-age=3600"}
        return {"content-type": kind, "x-content-type-options": "nosniff"} | cache
