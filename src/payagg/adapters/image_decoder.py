"""The kind of a picture, detected from its content and verified by decoding.

`python -m payagg.adapters.image_decoder SECONDS`, with the bytes on stdin and `{"kind"}` or `{"flaw"}` on stdout,
bounds its own memory and time.
"""

import io
import json
import math
import resource
import sys
import zlib
from contextlib import suppress

from PIL import Image

from payagg.domain.gateway import LOGO_MAX_SIDE

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
MEMORY = 1 << 29  # bytes; the largest image takes some 200 MB
# Each scan of a progressive JPEG covers the whole picture: encoders write about ten.
SCANS_MAX = 50


def judge(content: bytes) -> dict[str, str]:
    """The kind, or the flaw, in words for the sender."""
    if content.startswith(PNG):
        kind, name, end, scans = "png", "PNG", _png_end(content), 1
    elif content.startswith(JPEG):
        kind, name, (end, scans) = "jpg", "JPEG", _jpeg_end(content)
    else:
        return {"flaw": "Must be a PNG or JPEG image."}
    if end is None:
        return {"flaw": "The image is damaged."}
    if end != len(content):
        return {"flaw": "There is something after the end of the image."}
    if scans > SCANS_MAX:
        return {"flaw": f"Must have at most {SCANS_MAX} scans."}
    flaw = _flaw(content, name)
    return {"kind": kind} if flaw is None else {"flaw": flaw}


def _png_end(content: bytes) -> int | None:
    """The offset just after IEND, all checksums verified; None when the file is broken."""
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


def _jpeg_end(content: bytes) -> tuple[int | None, int]:
    """The offset just after the end-of-image marker, None without one, and the number of scans before it."""
    at, scans = 2, 0
    while at + 2 <= len(content):
        if content[at] != 0xFF:
            break
        marker = content[at + 1]
        if marker == 0xFF:  # a fill byte before a marker
            at += 1
        elif marker == 0xD9:
            return at + 2, scans
        else:
            at += 2 + int.from_bytes(content[at + 2 : at + 4])
            if marker == 0xDA:
                scans += 1
                at = _scan_end(content, at)
    return None, scans


def _scan_end(content: bytes, at: int) -> int:
    """The end of a scan's coded data: the first marker that is neither a stuffed zero nor a restart."""
    while True:
        at = content.find(b"\xff", at)
        if at < 0 or at + 1 >= len(content):
            return len(content)
        if content[at + 1] == 0 or 0xD0 <= content[at + 1] <= 0xD7:
            at += 2
        else:
            return at


def _flaw(content: bytes, name: str) -> str | None:
    """The image's flaw; dimensions are checked before any pixel is decoded."""
    try:
        with Image.open(io.BytesIO(content), formats=(name,)) as image:
            if max(image.size) > LOGO_MAX_SIDE:
                return f"Must be at most {LOGO_MAX_SIDE} pixels a side."
            if getattr(image, "n_frames", 1) != 1:
                return "Must be a single still image."
            image.load()
    except Image.DecompressionBombError:
        return f"Must be at most {LOGO_MAX_SIDE} pixels a side."
    except Exception:  # noqa: BLE001 - decoders fail in many ways, and each means an invalid image
        return "The image cannot be decoded."
    return None


def main() -> None:
    seconds = math.ceil(float(sys.argv[1]))
    for what, bound in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError):  # macOS has no memory limit
            resource.setrlimit(what, (bound, bound))
    json.dump(judge(sys.stdin.buffer.read()), sys.stdout)


if __name__ == "__main__":
    main()
