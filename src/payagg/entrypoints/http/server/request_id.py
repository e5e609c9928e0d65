"""The id of a request in logs, in its response and in the audit trail."""

import re
from collections.abc import Callable, Mapping

REQUEST_ID = "payagg.request_id"  # where the scope carries it
REQUEST_ID_BYTES = 12
_ID_OF_A_CALLER = re.compile(rb"[A-Za-z0-9._-]{8,64}")


def request_id_of(fields: Mapping[bytes, bytes], new_id: Callable[[int], str]) -> str:
    """The caller's own where it is sane, a new one otherwise."""
    own = fields.get(b"x-request-id", b"")
    return own.decode() if own and _ID_OF_A_CALLER.fullmatch(own) else new_id(REQUEST_ID_BYTES)
