"""Hostile requests generated from the description: a valid call of each operation with one thing of it replaced.

What must be answered is judged by the description's own schemas: a value that its schema refuses is a validation error
that names it, and one that fits may be taken or refused, but is never a fault of ours.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

PLACE = "the value goes here"
# Words for a JSON value, as bytes: what json.dumps would never write is what a caller sends on purpose.
# Other types, and money in other forms (F1).
OTHER_TYPES = (b"null", b"true", b'""', b'"100"', b"[]", b"{}", b"[null]", b'[["x"]]', b'{"$gt":""}', b"0", b"1.5")
NUMBERS = (
    *(b"-0", b"-1", b"99", b"100.0", b"1e2", b"1E+2", b"2147483648", b"9007199254740992", b"9223372036854775807"),
    *(b"9223372036854775808", b"18446744073709551616", b"9" * 300, b"0.1e-400"),
)
# Text that no column, header or page should meet unprepared (F4).
TEXTS = (
    *(b'"a\\r\\nBcc: x@y.example"', b'"a@b.example\\nX: y"', b'"\\u202eevil\\u200b"', '"\u202eevil\u200b"'.encode()),
    *(b'"' + b"\\u0301" * 60 + b'"', '"٣"'.encode(), b'"\' OR 1=1--"', b'"%_\\\\"', b'"{{7*7}}"'),
    *(b'"../../etc/passwd"', b'"javascript:alert(1)"', b'"http://127.0.0.1:80\\\\@evil.example/"'),
    b'"' + b"x" * 5000 + b'"',
)
# JSON, but nothing that can be kept (F2). The fault has a place, which must be named.
UNKEEPABLE = (
    *(b'"a\\u0000b"', b'"\\ud800"', b'"\\udfffx"', b"1e400", b"-1e400", b"9" * 400 + b".0"),
    *(b"[" * 40 + b"]" * 40, b'{"a":' * 40 + b"1" + b"}" * 40, b'{"twice":1,"twice":2}', b'{"a\\u0000":1}'),
)
NOT_JSON = (
    *(b"NaN", b"-Infinity", b"9" * 5000, b"0100", b"+100", b"0x64", b"'100'", b"100,", b"/**/1", b"undefined", b""),
    *(b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"a\x00b"', b'"a\nb"', b"[" * 50_000),
)
NO_OBJECTS = (b"", b"null", b"[]", b'"x"', b"{", b"{]", b"\xff\xfe", b"[" * 50_000, b"<xml/>")
QUERY_VALUES = (
    *("", "0", "-1", "+1", "1.0", "1e1", "%20", "101", "9" * 400, "%D9%A3", "null", "%27%20OR%201=1--", "x" * 300),
    *("%0D%0AX:%201", "2025-02-30T00:00:00Z", "2025-01-31T12:00:00", "9999-12-31T23:59:59.999999-23:59"),
)
# Nobody can read these as text that may be kept.
UNREADABLE_QUERIES = ("a%00b", "%ff", "%ed%a0%80")
HEADER_VALUES = (b"", b"\xff", b"a b", b"\x7f", b"x" * 4000, b"'--", "é".encode(), b"0" * 128, b"=" * 88)
# Content types and encodings that a JSON body must not come under. A charset is none of them: JSON has no such
# parameter (RFC 8259, 11), and whatever it says the body is read as UTF-8.
FOREIGN_HEADERS = (
    *({"Content-Type": kind} for kind in ("", "text/plain", "application/xml", "multipart/form-data; boundary=x")),
    *({"Content-Type": kind} for kind in ("application/jsonp", "application/json, text/plain", "json", "*/*")),
    *({"Content-Encoding": coding} for coding in ("gzip", "deflate", "br", "zstd", "identity, gzip")),
)


@dataclass(frozen=True)
class HostileCell:
    """One request. `must_name` is the input that the validation error is about, None where it has no name; with
    `is_legal` the operation may also take it."""

    operation: str
    method: str
    path: str
    says: str  # for whoever reads a failure
    body: bytes | None = None
    query: str = ""
    headers: dict[str, str | bytes] = field(default_factory=dict)
    must_name: str | None = None
    is_legal: bool = False


def _is_integer(_: object, value: object) -> bool:
    """JSON Schema counts 100.0 among the integers; money does not."""
    return isinstance(value, int) and not isinstance(value, bool)


_Strict = extend(Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer))


class HostileCells:
    """Every cell of one description."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def __iter__(self) -> Iterator[HostileCell]:
        for path, operations in self._document["paths"].items():
            for method, operation in operations.items():
                place = (operation["operationId"], method, path)
                content = operation.get("requestBody", {}).get("content", {}).get("application/json")
                # An inbound event is checked by its signature, before anybody looks for a field in it.
                is_event = path.startswith("/webhooks/")
                if content is not None and not is_event:
                    yield from self._bodies(place, content)
                example = json.dumps(content["example"]).encode() if content is not None else None
                parameters = operation.get("parameters", ())
                for parameter in parameters:
                    others = [each for each in parameters if each is not parameter]
                    yield from self._parameters(place, parameter, self._query(others), example)
                if is_event:
                    for value in (*OTHER_TYPES, *UNKEEPABLE, *NO_OBJECTS):
                        yield HostileCell(*place, f"unsigned: {value[:60]!r}", value)

    def _bodies(self, place: tuple[str, str, str], content: dict[str, Any]) -> Iterator[HostileCell]:
        schema, example = content["schema"], content["example"]
        validator = _Strict({**schema, "components": self._document["components"]})
        fields = self._resolved(schema)["properties"]
        for name, taken in fields.items():
            whole = {**example, name: PLACE}
            # Of what a field never takes, every form is the same other type.
            words = json.dumps(taken)
            numbers, texts = (NUMBERS if '"integer"' in words else ()), (TEXTS if '"string"' in words else ())
            for value in (*OTHER_TYPES, *numbers, *texts):
                fits = validator.is_valid({**example, name: json.loads(value)})
                yield self._body(place, name, whole, value, is_legal=fits)
            for value in UNKEEPABLE:
                yield self._body(place, name, whole, value)
            twice = _filled(whole, b'null,"' + name.encode() + b'":null')
            yield HostileCell(*place, f"{name} twice", twice, must_name=name)
            without = {key: value for key, value in example.items() if key != name}
            fits = validator.is_valid(without)
            yield HostileCell(*place, f"without {name}", json.dumps(without).encode(), must_name=name, is_legal=fits)
        # Nobody looks for a field in these, so one place is as good as another.
        for value in NOT_JSON:
            yield self._body(place, None, {**example, next(iter(fields)): PLACE}, value)
        for value in NO_OBJECTS:
            yield HostileCell(*place, f"{value[:20]!r}", value)
        unknown = {**example, "unknown": 1}
        yield HostileCell(
            *place,
            "an unknown field",
            json.dumps(unknown).encode(),
            must_name="unknown",
            is_legal=validator.is_valid(unknown),
        )
        body = json.dumps(example).encode()
        for headers in FOREIGN_HEADERS:
            yield HostileCell(*place, str(headers), body, headers=dict(headers))
        for wrapped in (
            b"\xef\xbb\xbf" + body,
            body + body,
            body[:-1],
            b"[" + body + b"]",
            body.decode().encode("utf-16"),
        ):
            yield HostileCell(*place, f"{wrapped[:20]!r}...", wrapped)

    def _parameters(
        self, place: tuple[str, str, str], parameter: dict[str, Any], others: str, body: bytes | None
    ) -> Iterator[HostileCell]:
        name, schema = parameter["name"], parameter["schema"]
        validator = _Strict({**schema, "components": self._document["components"]})
        if parameter["in"] == "query":
            for value in QUERY_VALUES:
                fits = validator.is_valid(_read(value, self._resolved(schema)))
                says = f"{name}={value[:40]}"
                yield HostileCell(*place, says, body, f"{others}{name}={value}", must_name=name, is_legal=fits)
            for value in (*UNREADABLE_QUERIES, f"1&{name}=2"):
                yield HostileCell(*place, f"{name}={value}", body, f"{others}{name}={value}", must_name=name)
        elif parameter["in"] == "header":
            for raw in HEADER_VALUES:
                says = f"{name}: {raw[:40]!r}"
                yield HostileCell(*place, says, body, headers={name: raw}, is_legal=name == "Idempotency-Key")

    @staticmethod
    def _body(
        place: tuple[str, str, str], name: str | None, whole: Any, value: bytes, *, is_legal: bool = False
    ) -> HostileCell:
        filled = _filled(whole, value)
        return HostileCell(*place, f"{filled[:160]!r}", filled, must_name=name, is_legal=is_legal)

    def _query(self, parameters: list[dict[str, Any]]) -> str:
        """The required ones, each with the first value that its schema shows."""
        asked = {each["name"]: each["schema"] for each in parameters if each["in"] == "query" and each["required"]}
        shown = {name: (schema.get("enum") or schema["examples"])[0] for name, schema in asked.items()}
        return "".join(f"{name}={value}&" for name, value in shown.items())

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        reference = schema.get("$ref")
        if reference is None:
            return schema
        found: dict[str, Any] = self._document["components"]["schemas"][reference.rpartition("/")[2]]
        return found


def _filled(whole: Any, value: bytes) -> bytes:
    return json.dumps(whole).encode().replace(json.dumps(PLACE).encode(), value)


def _read(value: str, schema: dict[str, Any]) -> Any:
    """A query's text as its schema's type, itself where it is none."""
    text = unquote(value)
    if schema.get("type") == "integer" and text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    if schema.get("type") == "boolean" and text in ("true", "false"):
        return text == "true"
    return text
