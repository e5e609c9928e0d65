"""Each request's name in logs, in its answer and in the audit trail."""

import re
from collections.abc import Callable, Iterable

REQUEST_ID = "payagg.request_id"  # where the scope carries it
REQUEST_ID_BYTES = 12
_ID_OF_A_CALLER = re.compile(rb"[A-Za-z0-9._-]{8,64}")


def request_id_of(headers: Iterable[tuple[bytes, bytes]], new_id: Callable[[int], str]) -> str:
    """The caller's own where it is sane, a new one otherwise."""
    for name, value in headers:
        if name == b"x-request-id":
            return value.decode() if _ID_OF_A_CALLER.fullmatch(value) else new_id(REQUEST_ID_BYTES)
    return new_id(REQUEST_ID_BYTES)
