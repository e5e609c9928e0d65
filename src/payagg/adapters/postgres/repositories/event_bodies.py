"""Bodies of events as rows: large metadata, shared by a payment's events, is stored once and put back on reading.

A null replaces it, so the stored body stays JSON.
"""

from hashlib import sha256
from typing import Any

import msgspec
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.repositories.rows import parameters
from payagg.adapters.postgres.schema.tables import metadata
from payagg.adapters.postgres.statement import Statement

APART_FROM = 1_000  # bytes of metadata; a row of its own costs a tenth of that
NULL = b"null"


class _Data(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(NULL)


class _Body(msgspec.Struct):
    data: _Data


_DECODER = msgspec.json.Decoder(_Body)


def split(body: bytes) -> tuple[dict[str, Any], bytes | None]:
    """The columns that hold a body, and the metadata that lies apart, None where it stays in the body."""
    whole = {"body": body, "metadata_at": None, "metadata_digest": None, "body_digest": _digest(body)}
    if len(body) <= APART_FROM:
        return whole, None
    try:
        encoded = bytes(_DECODER.decode(body).data.metadata)
    except msgspec.DecodeError:
        return whole, None
    if len(encoded) <= APART_FROM:
        return whole, None
    at = body.index(encoded)
    cut = body[:at] + NULL + body[at + len(encoded) :]
    own = {"metadata_at": at, "metadata_digest": sha256(encoded).digest(), "body_digest": _digest(cut)}
    return {"body": cut, **own}, encoded


def _digest(stored: bytes) -> bytes:
    """For `payagg doctor`."""
    return sha256(stored).digest()[:8]


def whole_body(event: str) -> str:
    """SQL for the body as it was before `split`; `event` names a row of events. If the metadata is lost, the null
    stays: an event must not fail for it."""
    return f"""CASE WHEN {event}.metadata_at IS NULL THEN {event}.body ELSE
    substring({event}.body FROM 1 FOR {event}.metadata_at)
    || coalesce((SELECT m.encoded FROM event_metadata m
        WHERE m.reference = {event}.reference AND m.digest = {event}.metadata_digest), CAST('{NULL.decode()}' AS bytea))
    || substring({event}.body FROM {event}.metadata_at + {len(NULL) + 1})
END"""  # noqa: S608 - our own names


_KEEP = insert(metadata.tables["event_metadata"]).values(parameters("reference", "digest", "encoded"))
# Writes what is there already, for the lock: a purge that has it waits for this event, or is waited for.
KEEP_METADATA = Statement(
    _KEEP.on_conflict_do_update(index_elements=["reference", "digest"], set_={"encoded": _KEEP.excluded.encoded})
)
LOCK_METADATA = Statement(
    "SELECT FROM event_metadata WHERE reference = ANY(:references) ORDER BY reference, digest FOR UPDATE"
)
# Metadata without events. After LOCK_METADATA, so an event added since is seen.
PURGE_METADATA = Statement("""
DELETE FROM event_metadata m WHERE m.reference = ANY(CAST(:references AS text[])) AND NOT EXISTS (
    SELECT FROM events v WHERE v.reference = m.reference AND v.metadata_digest = m.digest
)
""")
