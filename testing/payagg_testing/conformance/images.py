"""Small images of two types, what is none, and how a file is sent."""

import base64
import zlib

PNG, JPEG = "image/png", "image/jpeg"
GIF = base64.b64decode("R0lGODdhAQABAIAAAAAAAAAAACwAAAAAAQABAAAIBAABBAQAOw==")
_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAFA3PEY8MlBGQUZaVVBfeMiCeG5uePWvuZHI////////////////////////////////////////////////"
    "////wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AP//Z"
)
BOUNDARY = "conformance-boundary"


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


FORM_TYPE = f"multipart/form-data; boundary={BOUNDARY}"
