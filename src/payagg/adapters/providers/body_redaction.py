"""The part of an event that may be stored: the fields that we read. Nothing of the payer, the card or an authorisation
code."""

import msgspec

NOTHING = b"null"
_encode = msgspec.json.Encoder().encode
_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items_of = msgspec.json.Decoder(list[msgspec.Raw]).decode


def names_in(*kinds: type[msgspec.Struct]) -> frozenset[str]:
    """The JSON names of all fields of `kinds`."""
    return frozenset(field.encode_name for kind in kinds for field in msgspec.structs.fields(kind))


def reduce_body(body: bytes, names: frozenset[str]) -> bytes:
    """The JSON object `body` with no fields but those in `names`, at any depth; every number keeps its very digits.

    `null` for anything else, which `read_event` finds as malformed as the body.
    """
    try:
        return bytes(_reduce_value(body, names)) if body.lstrip()[:1] == b"{" else NOTHING
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return NOTHING


def _reduce_value(raw: bytes | msgspec.Raw, names: frozenset[str]) -> bytes | msgspec.Raw:
    first = bytes(raw).lstrip()[:1]
    if first == b"{":
        kept = {name: value for name, value in _fields_of(raw).items() if name in names}
        for name, value in kept.items():
            if bytes(value)[:1] in b"{[":  # else a text or a number, as most are
                kept[name] = msgspec.Raw(_reduce_value(value, names))
        return _encode(kept)
    if first == b"[":
        return _encode([msgspec.Raw(_reduce_value(item, names)) for item in _items_of(raw)])
    return raw
