"""The kind of a picture, detected from its content and verified by decoding.

`python -m payagg.adapters.image_decoder SECONDS`, with the bytes on stdin and `{"kind"}` or `{"flaw"}` on stdout,
bounds its own memory and time.
"""

import io
import json
import math
import resource
import sys
from contextlib import suppress

from PIL import Image

from payagg.domain.gateway import LOGO_MAX_SIDE

# By its first bytes: the kind, Pillow's name of it, and the bytes at its end.
KINDS = {
    b"\x89PNG\r\n\x1a\n": ("png", "PNG", b"\0\0\0\0IEND\xaeB`\x82"),
    b"\xff\xd8\xff": ("jpg", "JPEG", b"\xff\xd9"),
}
CHECKSUM = 4  # bytes, of a PNG's end
MEMORY = 1 << 29  # bytes; the largest image takes some 200 MB
# Each scan of a progressive JPEG covers the whole picture: encoders write about ten. Coded data never holds the mark by
# which one begins; other data of a JPEG may by chance, once in 64 KB.
SCAN, SCANS_MAX = b"\xff\xda", 50


def judge(content: bytes) -> dict[str, str]:
    """The kind, or the flaw, in words for the sender."""
    found = next((own for first, own in KINDS.items() if content.startswith(first)), None)
    if found is None:
        return {"flaw": "Must be a PNG or JPEG image."}
    kind, name, end = found
    if name == "JPEG" and content.count(SCAN) > SCANS_MAX:
        return {"flaw": f"Must have at most {SCANS_MAX} scans."}
    flaw = _flaw(content, name, end)
    return {"kind": kind} if flaw is None else {"flaw": flaw}


def _flaw(content: bytes, name: str, end: bytes) -> str | None:
    """The image's flaw; dimensions are checked before any pixel is decoded."""
    file = io.BytesIO(content)
    try:
        with Image.open(file, formats=(name,)) as image:
            # Opened, a file is read up to the coded data, past any thumbnail. From there on nothing looks like the end
            # but the end.
            at = content.find(end, file.tell())
            if at >= 0 and at + len(end) != len(content):
                return "There is something after the end of the image."
            if max(image.size) > LOGO_MAX_SIDE:
                return f"Must be at most {LOGO_MAX_SIDE} pixels a side."
            if getattr(image, "n_frames", 1) != 1:
                return "Must be a single still image."
            image.load()
        with Image.open(file, formats=(name,)) as image:
            image.verify()  # a PNG's checksums, up to its first end
        if name == "PNG" and file.tell() + CHECKSUM != len(content):
            return "There is something after the end of the image."
    except Image.DecompressionBombError:
        return f"Must be at most {LOGO_MAX_SIDE} pixels a side."
    except Exception:  # noqa: BLE001 - decoders fail in many ways, and each means an invalid image
        at = -1
    return "The image is damaged." if at < 0 else None


def main() -> None:
    seconds = math.ceil(float(sys.argv[1]))
    for what, bound in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError):  # macOS has no memory limit
            resource.setrlimit(what, (bound, bound))
    json.dump(judge(sys.stdin.buffer.read()), sys.stdout)


if __name__ == "__main__":
    main()
