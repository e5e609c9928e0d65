"""Whether bytes are a PNG or JPEG that is safe to serve as sent: told from the content, proved by decoding it."""

import asyncio
import io
import zlib

from PIL import Image

from payagg.domain.errors import invalid
from payagg.domain.gateway import LOGO_MAX_BYTES, LOGO_MAX_SIDE

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
DECODERS = 2  # at once: one image of the largest size takes some 64 MB while it is decoded


class PillowImages:
    def __init__(self) -> None:
        self._room = asyncio.Semaphore(DECODERS)

    async def kind(self, content: bytes) -> str:
        """`png` or `jpg`; raises VALIDATION_ERROR on `file`. Works in a thread, away from the event loop."""
        async with self._room:
            return await asyncio.to_thread(_kind, content)


def _kind(content: bytes) -> str:
    if len(content) > LOGO_MAX_BYTES:
        raise invalid("file", "Must be at most 2 MB.")
    if content.startswith(PNG):
        kind, name, end = "png", "PNG", _png_end(content)
    elif content.startswith(JPEG):
        kind, name, end = "jpg", "JPEG", _jpeg_end(content)
    else:
        raise invalid("file", "Must be a PNG or JPEG image.")
    if end is None:
        raise invalid("file", "The image is damaged.")
    if end != len(content):
        raise invalid("file", "There is something after the end of the image.")
    flaw = _flaw(content, name)
    if flaw is not None:
        raise invalid("file", flaw)
    return kind


def _png_end(content: bytes) -> int | None:
    """The offset just after IEND, every chunk's checksum being right; None when the file is broken."""
    at = len(PNG)
    while at + 12 <= len(content):
        size = int.from_bytes(content[at : at + 4])
        body, after = content[at + 4 : at + 8 + size], at + 12 + size
        if after > len(content) or zlib.crc32(body) != int.from_bytes(content[after - 4 : after]):
            return None
        if body[:4] == b"IEND":
            return after
        at = after
    return None


def _jpeg_end(content: bytes) -> int | None:
    """The offset just after the end-of-image marker, found by walking segments and scans; None when there is none."""
    at = 2
    while at + 2 <= len(content):
        if content[at] != 0xFF:
            return None
        marker = content[at + 1]
        if marker == 0xFF:  # a fill byte before a marker
            at += 1
        elif marker == 0xD9:
            return at + 2
        else:
            at += 2 + int.from_bytes(content[at + 2 : at + 4])
            if marker == 0xDA:
                at = _scan_end(content, at)
    return None


def _scan_end(content: bytes, at: int) -> int:
    """Where a scan's coded data ends: the first marker that is neither a stuffed zero nor a restart."""
    while True:
        at = content.find(b"\xff", at)
        if at < 0 or at + 1 >= len(content):
            return len(content)
        if content[at + 1] == 0 or 0xD0 <= content[at + 1] <= 0xD7:
            at += 2
        else:
            return at


def _flaw(content: bytes, name: str) -> str | None:
    """What is wrong with the image; its dimensions are looked at before any pixel is decoded."""
    try:
        with Image.open(io.BytesIO(content), formats=(name,)) as image:
            if max(image.size) > LOGO_MAX_SIDE:
                return f"Must be at most {LOGO_MAX_SIDE} pixels a side."
            if getattr(image, "n_frames", 1) != 1:
                return "Must be a single still image."
            image.load()
    except Image.DecompressionBombError:
        return f"Must be at most {LOGO_MAX_SIDE} pixels a side."
    except Exception:  # noqa: BLE001 - decoders fail in many ways, and each means that this is no image
        return "The image cannot be decoded."
    return None
