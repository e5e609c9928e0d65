"""Whether bytes are a PNG or JPEG that is safe to serve as sent: told from the content, proved by decoding it.

Decoding is work of the sender's choice, so a process of its own does it (`python -m payagg.adapters.images`, bytes on
stdin, `{"kind"}` or `{"flaw"}` on stdout), with bounds on its memory and time, and is killed at the latter.
"""

import asyncio
import io
import json
import os
import resource
import sys
import zlib
from contextlib import suppress

from PIL import Image

from payagg.domain.errors import invalid
from payagg.domain.gateway import LOGO_MAX_BYTES, LOGO_MAX_SIDE

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
DECODERS = 2  # at once
SECONDS = 10.0  # for one image, the start of the process included
MEMORY = 1 << 29  # bytes of one process; the largest image takes some 200 MB
# In a progressive JPEG each scan goes over the whole picture again: encoders write about ten.
SCANS_MAX = 50
TOO_COSTLY = "The image takes too long to decode."


class PillowImages:
    def __init__(self, seconds: float = SECONDS) -> None:
        self._room = asyncio.Semaphore(DECODERS)
        self._seconds = seconds

    async def kind(self, content: bytes) -> str:
        """`png` or `jpg`; raises VALIDATION_ERROR on `file`."""
        if len(content) > LOGO_MAX_BYTES:
            raise invalid("file", "Must be at most 2 MB.")
        async with self._room:
            judged = await self._judged(content)
        if "flaw" in judged:
            raise invalid("file", judged["flaw"])
        return judged["kind"]

    async def _judged(self, content: bytes) -> dict[str, str]:
        # -P: what lies in the working folder is no module of ours.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", __spec__.name),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        )
        try:
            async with asyncio.timeout(self._seconds):
                said, _ = await process.communicate(content)
        except TimeoutError:
            return {"flaw": TOO_COSTLY}
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        # Nothing is said by one that the kernel ended, for its time or its memory.
        return json.loads(said) if said else {"flaw": TOO_COSTLY}


def judge(content: bytes) -> dict[str, str]:
    """The kind, or what is wrong, as it is told to the sender."""
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


def _jpeg_end(content: bytes) -> tuple[int | None, int]:
    """The offset just after the end-of-image marker, found by walking segments and scans; None when there is none. And
    how many scans there are before."""
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


def main() -> None:
    seconds = int(SECONDS)
    for what, bound in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError):  # macOS has no bound of memory
            resource.setrlimit(what, (bound, bound))
    json.dump(judge(sys.stdin.buffer.read()), sys.stdout)


if __name__ == "__main__":
    main()
