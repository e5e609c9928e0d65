"""The part of an event that may be stored: the fields that we read. Nothing of the payer, the card or an authorisation
code."""

import msgspec

NOTHING = b"null"
_encode = msgspec.json.Encoder().encode


def names_in(*kinds: type[msgspec.Struct]) -> frozenset[str]:
    """The JSON names of all fields of `kinds`."""
    return frozenset(field.encode_name for kind in kinds for field in msgspec.structs.fields(kind))


def reduce_body(body: bytes, names: frozenset[str]) -> bytes:
    """The JSON object `body` with no fields but those in `names`, at any depth; every number keeps its very digits.

    `null` for anything else, which `read_event` finds as malformed as the body.
    """
    try:
        return bytes(_reduce_value(msgspec.Raw(body), names)) if body.lstrip()[:1] == b"{" else NOTHING
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return NOTHING


def _reduce_value(raw: msgspec.Raw, names: frozenset[str]) -> msgspec.Raw:
    first = bytes(raw).lstrip()[:1]
    if first == b"{":
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        return msgspec.Raw(
            _encode({name: _reduce_value(value, names) for name, value in fields.items() if name in names})
        )
    if first == b"[":
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        return msgspec.Raw(_encode([_reduce_value(item, names) for item in items]))
    return raw
