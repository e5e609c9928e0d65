"""One uploaded file from a multipart/form-data body, read as it arrives."""

from typing import Any

from litestar import Request
from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from payagg.domain.errors import Refusal, invalid

PARTS_MAX = 16
BOUNDARY_MAX = 200


async def read_upload(request: Request[Any, Any, Any], name: str, most: int) -> bytes:
    """The content of the one part called `name`; raises VALIDATION_ERROR on it when it is absent, repeated, empty,
    over `most` bytes or the body is not whole. Its file name and type are the sender's word and are not looked at.

    A body that is already refused is still read to its end (the operation's cap bounds it), so that the sender gets
    to read the answer instead of a broken connection.
    """
    media_type, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get("boundary", "")
    refusal: Refusal | None = None
    part = _Part(name, most)
    if media_type != "multipart/form-data" or not 0 < len(boundary) <= BOUNDARY_MAX or not boundary.isascii():
        refusal = invalid(name, "Send the file as multipart/form-data.")
    parser = PushMultipartParser("none" if refusal else boundary, max_segment_count=PARTS_MAX, strict=True)
    async for chunk in request.stream():
        if refusal is None:
            try:
                for event in parser.parse(chunk):
                    part.take(event)
            except MultipartError:
                refusal = invalid(name, "The multipart body cannot be read.")
            except Refusal as refused:
                refusal = refused
    if refusal is not None:
        raise refusal
    try:
        parser.close()
    except MultipartError:
        raise invalid(name, "The multipart body ended early.") from None
    return part.content()


class _Part:
    """Collects the part that is wanted and lets the others pass."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._found: bytearray | None = None
        self._is_open = False

    def take(self, event: "MultipartSegment | bytearray | bytes | None") -> None:
        if isinstance(event, MultipartSegment):
            self._is_open = event.name == self._name
            if self._is_open and self._found is not None:
                raise invalid(self._name, "Must appear once.")
            if self._is_open:
                self._found = bytearray()
        elif event and self._is_open and self._found is not None:
            self._found += event
            if len(self._found) > self._most:
                raise invalid(self._name, f"Must be at most {self._most} bytes.")

    def content(self) -> bytes:
        if not self._found:
            raise invalid(self._name, "Is required.")
        return bytes(self._found)
