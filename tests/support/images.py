"""Images for tests, good and hostile."""

import io
import struct
import zlib
from collections.abc import Callable

from PIL import Image

PNG_HEAD = b"\x89PNG\r\n\x1a\n"


def an_image(kind: str = "PNG", size: tuple[int, int] = (16, 16), colour: str = "red", **options: object) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, kind, **options)
    return file.getvalue()


def an_animation(kind: str) -> bytes:
    file = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    frames[0].save(file, kind, save_all=True, append_images=frames[1:])
    return file.getvalue()


def a_png_that_claims(width: int, height: int) -> bytes:
    """A small file whose header, checksum right, promises a picture of another size."""
    content = bytearray(an_image())
    content[16:24] = struct.pack(">II", width, height)
    content[29:33] = zlib.crc32(bytes(content[12:29])).to_bytes(4, "big")
    return bytes(content)


def a_png_of(size: int) -> bytes:
    """A true PNG of exactly `size` bytes: an ancillary chunk fills it up."""
    plain = an_image()
    head, tail = plain[:33], plain[33:]  # the header chunk ends at 33
    body = b"prVt" + b"\0" * (size - len(plain) - 12)
    chunk = struct.pack(">I", len(body) - 4) + body + zlib.crc32(body).to_bytes(4, "big")
    return head + chunk + tail


def a_jpeg_of_scans(scans: int, size: tuple[int, int] = (16, 16)) -> bytes:
    """A true progressive JPEG whose last scan comes again and again: each costs a decoder a pass over the picture."""
    plain = an_image("JPEG", size, progressive=True)
    last, end = plain.rindex(b"\xff\xda"), len(plain) - 2
    return plain[:end] + plain[last:end] * (scans - plain.count(b"\xff\xda")) + plain[end:]


# Made when they are asked for: each of many processes that collect the tests would make them all.
HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "an svg": lambda: b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
    "html": lambda: b"<!doctype html><script>alert(1)</script>",
    "a gif": lambda: an_image("GIF"),
    "a webp": lambda: an_image("WEBP"),
    "a bare png signature": lambda: PNG_HEAD,
    "html behind a png signature": lambda: PNG_HEAD + b"<script>alert(1)</script>",
    "html behind a jpeg signature": lambda: b"\xff\xd8\xff\xe0<script>alert(1)</script>",
    "a png with a tail": lambda: an_image() + b"<script>alert(1)</script>",
    "a jpeg with a tail": lambda: an_image("JPEG") + b"PK\x03\x04",
    "a jpeg whose tail ends like a jpeg": lambda: an_image("JPEG") + b"<script>\xff\xd9",
    "a png with html between two ends": lambda: an_image()[:-1] + b"?<script>alert(1)</script>" + an_image()[-12:],
    "two jpegs in one": lambda: an_animation("MPO"),
    "an animated png": lambda: an_animation("PNG"),
    "a truncated png": lambda: an_image(size=(300, 300))[:-30],
    "a truncated jpeg": lambda: an_image("JPEG", size=(300, 300))[:-30],
    "a png with a wrong checksum": lambda: an_image()[:-16] + b"????" + an_image()[-12:],
    "a jpeg of fill bytes": lambda: b"\xff\xd8" + b"\xff" * 500_000,
    "a jpeg of 3,000 scans": lambda: a_jpeg_of_scans(3000, (4096, 4096)),
    "a bomb": lambda: a_png_that_claims(40_000, 40_000),
    "a picture one pixel too wide": lambda: an_image(size=(4097, 1)),
    "a picture one pixel too high": lambda: an_image("JPEG", size=(1, 4097)),
    "a header that promises more than there is": lambda: a_png_that_claims(4000, 4000),
    "a file one byte too large": lambda: a_png_of(2 * 1024 * 1024 + 1),
}
