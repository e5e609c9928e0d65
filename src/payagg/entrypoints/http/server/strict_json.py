"""Strict JSON: what msgspec checks and what it would let through, refused in our own words, naming the field."""

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn, TypeVar

import msgspec
from msgspec import inspect

from payagg.domain.checks import is_storable
from payagg.domain.errors import ErrorCode, Refusal

T = TypeVar("T")
DEPTH_MAX = 32
FIELD_MAX = 100  # characters of an input's name that are repeated to the caller
KEYS_TRIED = 1000
EXPONENTS_MAX = 100
OUTSIDE_TEXTS_MAX = 64 * 1024  # bytes
NOT_JSON = "The body is not valid JSON."
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decode(body: bytes, kind: type[T]) -> T:
    """`body` as `kind`. Refuses invalid UTF-8, NUL, lone surrogates, duplicate keys, nesting past 32, non-finite
    numbers and everything that is not exactly of the declared type."""
    _ensure_plain_json(body)
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        value: T = decoder.decode(body)
        return value
    except msgspec.ValidationError as error:
        raise _field_refusal(str(error), body, kind) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Refusal(ErrorCode.VALIDATION_ERROR, NOT_JSON) from None


def _ensure_plain_json(body: bytes) -> None:
    """Refuses what msgspec would let through: NUL, equal keys (it keeps the last), huge numbers, deep nesting; and what
    would cost the loop a fifth of a second, before anything is decoded."""
    if len(body) > OUTSIDE_TEXTS_MAX and len(_LIGHT.sub(b"", body, OUTSIDE_TEXTS_MAX)) > OUTSIDE_TEXTS_MAX:
        raise Refusal(
            ErrorCode.VALIDATION_ERROR, f"At most {OUTSIDE_TEXTS_MAX} bytes outside of texts, spaces not counted."
        )
    exponents = body.count(b"e") + body.count(b"E")  # at most
    if exponents > EXPONENTS_MAX and len(_COSTLY.findall(body)) > EXPONENTS_MAX:
        raise Refusal(ErrorCode.VALIDATION_ERROR, f"At most {EXPONENTS_MAX} numbers with an exponent of three digits.")
    # Most bodies hold nothing of the kind, which their bytes show, and are not walked.
    is_flat = body.count(b"{") + body.count(b"[") <= DEPTH_MAX
    if is_flat and b"\\u" not in body and _is_plain(body):
        return
    try:
        text = body.decode()
        try:
            value = _UNIQUE.decode(text)
            suspect = not is_flat or _SUSPECT.search(body) is not None
        except _DuplicateKeyError:
            value = _MARKED.decode(text)
            suspect = True
    except (ValueError, RecursionError):
        raise Refusal(ErrorCode.VALIDATION_ERROR, NOT_JSON) from None
    fault = _fault(value, 0) if suspect else None
    if fault is not None:
        path, words = fault
        raise Refusal(ErrorCode.VALIDATION_ERROR, words, printable(path.lstrip(".")) or None)


def _is_plain(body: bytes) -> bool:
    """Whether these are the very bytes that writing them anew gives, as most programs send them, but for a space behind
    colons and commas: then no key is repeated, and no number is infinite. A space that this takes out of a string
    leaves as many keys as there were, so that it hides none."""
    try:
        return _encode(_decode(body)) == body.replace(b'": ', b'":').replace(b', "', b',"')
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


# Texts and spaces; no more of them are taken out than bytes may stand between them. A text without an end goes to the
# body's: to look for an end from each quotation mark would take the square of the body.
_LIGHT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|\s++', re.DOTALL)
# A number so near the ends of what 64 bits hold takes 7 us to read exactly.
_COSTLY = re.compile(rb"[:\[,]\s*-?[0-9][0-9.]*[eE][+-]?[0-9]{3}")
# Only an escape can bring NUL or half a surrogate pair, only an exponent or very many digits an infinite number.
_SUSPECT = re.compile(rb"\\u|[0-9][eE]|[0-9]{300}")


class _DuplicateKeyError(Exception):
    """A key appears twice in one object."""


class _Twice(dict[str, Any]):
    """An object with a repeated key."""

    key: str


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DuplicateKeyError
    return found


def _mark_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    marked = _Twice(found)
    counted = Counter(key for key, _ in pairs)
    marked.key = next(key for key, _ in pairs if counted[key] > 1)
    return marked


def _no_constant(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


_UNIQUE = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
_MARKED = json.JSONDecoder(object_pairs_hook=_mark_duplicates, parse_constant=_no_constant)


def _fault(value: Any, depth: int) -> tuple[str, str] | None:
    """The path and description of the first thing that cannot be kept, or None."""
    if isinstance(value, str):
        return None if is_storable(value) else ("", "Must not hold NUL or lone surrogates.")
    if isinstance(value, float):
        return None if math.isfinite(value) else ("", "The number is too large.")
    if not isinstance(value, dict | list):
        return None
    if depth >= DEPTH_MAX:
        return "", f"At most {DEPTH_MAX} levels deep."
    if isinstance(value, _Twice):
        return f".{value.key}", "The key appears twice."
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(key, str) and not is_storable(key):
            return "", "Keys must not hold NUL or lone surrogates."
        fault = _fault(inner, depth + 1)
        if fault is not None:
            return (f"[{key}]" if isinstance(key, int) else f".{key}") + fault[0], fault[1]
    return None


def printable(name: str) -> str:
    return _UNPRINTABLE.sub("?", name)[:FIELD_MAX]


_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
# msgspec ends its messages with " - at `$.order[0].gatewayId`", and names missing and unknown fields in backticks. What
# stands before may repeat the input, so the last such ending is the true one.
_AT = re.compile(r"(.*) - at `(?:key in )?\$(.*)`$", re.DOTALL)
_FIELD = re.compile(r"(missing required|contains unknown) field `(.*)`", re.DOTALL)
_LENGTH = re.compile(r"Expected `(str|array|object)` of length (>=|<=) ([0-9]+)")
_BOUND = re.compile(r"Expected `int` (>=|<=) (-?[0-9]+)")
_PATTERN = re.compile(r"Expected `str` matching regex '(.*)'")
_TYPE = re.compile(r"Expected `([a-z0-9 |]+)`")
_TYPES = {
    "int": "an integer",
    "str": "a string",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
    "float": "a number",
}
_UNITS = {"str": "characters", "array": "items", "object": "properties"}


def _field_refusal(message: str, body: bytes, kind: Any) -> Refusal:
    """A msgspec message as a VALIDATION_ERROR in our words, which never repeat the input."""
    found = _AT.match(message)
    words, path = (found[1], found[2].lstrip(".")) if found else (message, "")
    own = _FIELD.search(words)
    if own:
        path = f"{path}.{own[2]}" if path else own[2]
        words = "Is required." if own[1] == "missing required" else "Is not a known field."
    else:
        words = _words(words, _declared_type(kind, path))
    outer, inside, _ = path.partition("[...]")
    if inside:
        path = _with_key(outer, body, kind)
    return Refusal(ErrorCode.VALIDATION_ERROR, words, printable(path) or None)


def _declared_type(kind: Any, path: str) -> inspect.Type:
    """What `kind` declares at `path`, such as `order[0].gatewayId`; of what may be null, what it is otherwise."""
    found = _plain(inspect.type_info(kind))
    for name in re.findall(r"\[\.\.\.\]|[^.\[\]]+", path):
        inner = found.type if isinstance(found, inspect.Metadata) else found
        if isinstance(inner, inspect.StructType):
            found = next((own.type for own in inner.fields if own.encode_name == name), inspect.AnyType())
        elif isinstance(inner, inspect.ListType):
            found = inner.item_type
        elif isinstance(inner, inspect.DictType):
            found = inner.value_type
        else:
            return inspect.AnyType()
        found = _plain(found)
    return found


def _plain(found: inspect.Type) -> inspect.Type:
    if not isinstance(found, inspect.UnionType):
        return found
    others = [one for one in found.types if not isinstance(one, inspect.NoneType)]
    return others[0] if len(others) == 1 else found


def _with_key(name: str, body: bytes, kind: Any) -> str:
    """msgspec writes [...] for a dictionary's key; found again by trying the top-level dictionary key by key."""
    whole = json.loads(body)
    entries = whole.get(name)
    for key, value in list(entries.items())[:KEYS_TRIED] if isinstance(entries, dict) else ():
        try:
            msgspec.convert({**whole, name: {key: value}}, kind)
        except msgspec.ValidationError as error:
            if f"$.{name}[...]" in str(error):
                return f"{name}.{key}"
    return name


def _words(message: str, declared: inspect.Type) -> str:
    bound = _BOUND.match(message)
    if bound:
        return f"Must be at {'least' if bound[1] == '>=' else 'most'} {bound[2]}."
    own = _own_words(declared)
    if own is not None:
        return own
    length = _LENGTH.match(message)
    if length:
        return f"Must have at {'least' if length[2] == '>=' else 'most'} {length[3]} {_UNITS[length[1]]}."
    pattern = _PATTERN.match(message)
    if pattern:
        return f"Must match {pattern[1]}."
    kind = _TYPE.match(message)
    if kind:
        return f"Must be {' or '.join(_TYPES[t] for t in kind[1].split(' | ') if t in _TYPES) or 'of another type'}."
    return "Is not an allowed value."


def _own_words(declared: inspect.Type) -> str | None:
    """What a field says of itself: the words of its `must` (schemas/payments.py), or its allowed values."""
    if isinstance(declared, inspect.Metadata):
        return (declared.extra or {}).get("must") or _own_words(declared.type)
    if isinstance(declared, inspect.EnumType):
        return _one_of([str(member.value) for member in declared.cls])
    if isinstance(declared, inspect.LiteralType):
        return _one_of([str(value) for value in declared.values])
    return None


def _one_of(values: list[str]) -> str:
    return f"Must be one of {', '.join(values)}." if len(values) > 1 else f"Must be {values[0]}."
