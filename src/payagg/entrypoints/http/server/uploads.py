"""One uploaded file from a multipart/form-data body."""

from io import BytesIO
from typing import Any

from litestar import Request
from multipart import MultipartError, MultipartParser, parse_options_header

from payagg.domain.errors import invalid
from payagg.entrypoints.http.server.wire import whole_body

PARTS_MAX = 16
BOUNDARY_MAX = 200


async def read_upload(request: Request[Any, Any, Any], name: str, most: int) -> bytes:
    """The content of the one part called `name`; raises VALIDATION_ERROR on it when it is absent, repeated, empty,
    over `most` bytes or the body cannot be read. Its file name and type are the sender's word and are not looked at.

    The whole body is read first (the operation's cap bounds it), so that the sender gets to read the answer instead of
    a broken connection.
    """
    body = await whole_body(request)
    media_type, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get("boundary", "")
    if media_type != "multipart/form-data" or not 0 < len(boundary) <= BOUNDARY_MAX or not boundary.isascii():
        raise invalid(name, "Send the file as multipart/form-data.")
    try:
        parts = MultipartParser(
            BytesIO(body), boundary, strict=True, part_limit=PARTS_MAX, spool_limit=len(body), memory_limit=len(body)
        )
        found = [part.raw for part in parts if part.name == name]
    except MultipartError:
        raise invalid(name, "The multipart body cannot be read.") from None
    if not found or not found[0]:
        raise invalid(name, "Is required.")
    if len(found) > 1:
        raise invalid(name, "Must appear once.")
    if len(found[0]) > most:
        raise invalid(name, f"Must be at most {most} bytes.")
    return bytes(found[0])
