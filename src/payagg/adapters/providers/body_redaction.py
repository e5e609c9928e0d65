"""The part of an event that may be stored: the fields that we read. Nothing of the payer, the card or an authorisation
code."""

from functools import cache

import msgspec

NOTHING = b"null"
LEVELS_MAX = 4  # objects within objects; an event of Paystack's has three with what we read
_encode = msgspec.json.Encoder().encode
_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def names_in(*kinds: type[msgspec.Struct]) -> frozenset[str]:
    """The JSON names of all fields of `kinds`."""
    return frozenset(field.encode_name for kind in kinds for field in msgspec.structs.fields(kind))


def reduce_body(body: bytes, names: frozenset[str]) -> bytes:
    """The JSON object `body` with no fields but those in `names`, to LEVELS_MAX; every number keeps its very digits.
    A deeper object and every list is empty, as nothing of ours is in one: each level is read anew, so that many of
    them would take the square of the body.

    `null` for anything else, which `read_event` finds as malformed as the body.
    """
    try:
        return bytes(_reduce_value(body, names, LEVELS_MAX)) if body.lstrip()[:1] == b"{" else NOTHING
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return NOTHING


def _reduce_value(raw: bytes | msgspec.Raw, names: frozenset[str], levels: int) -> bytes | msgspec.Raw:
    first = bytes(raw).lstrip()[:1]
    if first == b"[":
        return b"[]"
    if first != b"{":
        return raw
    if not levels:
        return b"{}"
    reduced = _encode(_decoder_of(names).decode(raw))
    if b"[" not in reduced and b"{" not in reduced[1:]:
        return reduced  # texts and numbers alone, as most are
    kept = _fields_of(reduced)
    return _encode({name: msgspec.Raw(_reduce_value(value, names, levels - 1)) for name, value in kept.items()})


@cache
def _decoder_of(names: frozenset[str]) -> msgspec.json.Decoder[msgspec.Struct]:
    """Skips every other field of an object without making anything of it."""
    kind = msgspec.Raw | msgspec.UnsetType
    return msgspec.json.Decoder(msgspec.defstruct("Kept", [(name, kind, msgspec.UNSET) for name in sorted(names)]))
