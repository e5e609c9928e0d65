"""Hostile requests generated from the description: a valid call of each operation with one thing of it replaced.

What must be answered is judged by the description's own schemas: a value that its schema refuses is a validation error
that names it, and one that fits may be taken or refused, but is never a fault of ours. Here each field and parameter
of each operation meets each kind of wrong value; the forms of JSON are tried in `test_strict_json.py`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote

PLACE = "the value goes here"
# Values in JSON, as bytes: what json.dumps would never write is what a caller sends on purpose.
VALUES = (
    *(b"null", b'"100"', b"[null]", b"-1", b"100.0", b"9223372036854775808"),
    *(b'"a\\r\\nBcc: x@y.example"', b'"' + b"x" * 5000 + b'"'),
)
# JSON, but nothing that can be kept, and no JSON. The fault of the first has a place, which must be named.
UNKEEPABLE = (b'"a\\u0000b"', b"[" * 40 + b"]" * 40)
NOT_JSON = (b"NaN", b'"\xff"')
NO_OBJECTS = (b"", b"null", b"\xff\xfe", b"[" * 50_000)
# Other ways to send a valid body. A charset is none of them: JSON has no such parameter (RFC 8259, 11).
FOREIGN_HEADERS = (
    *({"Content-Type": kind} for kind in ("", "application/jsonp")),
    {"Content-Encoding": "identity, br"},
)
QUERY_VALUES = ("", "%D9%A3", "9" * 400, "2025-02-30T00:00:00Z")
# Nobody can read these as text that may be kept.
UNREADABLE_QUERIES = ("a%00b", "%ff")
HEADER_VALUES = (b"\xff", b"x" * 4000)


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


@cache
def _strict() -> Any:
    """A class of validators. What it is made of takes a second to import, which only who judges need spend."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    return extend(Draft202012Validator, type_checker=types)


Place = tuple[str, str, str]


def hostile_cells(document: dict[str, Any]) -> Iterator[HostileCell]:
    """Every cell of one description."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            place = (operation["operationId"], method, path)
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            # An inbound event is checked by its signature, before anybody looks for a field in it.
            if path.startswith("/webhooks/"):
                yield from (HostileCell(*place, f"unsigned {one[:40]!r}", one) for one in (*VALUES, *NO_OBJECTS))
            elif content is not None:
                yield from _bodies(document, place, content)
            example = json.dumps(content["example"]).encode() if content is not None else None
            parameters = operation.get("parameters", ())
            for parameter in parameters:
                others = _required([each for each in parameters if each is not parameter])
                yield from _parameters(document, place, parameter, others, example)


def _bodies(document: dict[str, Any], place: Place, content: dict[str, Any]) -> Iterator[HostileCell]:
    schema, example = content["schema"], content["example"]
    validator = _strict()({**schema, "components": document["components"]})
    fields = _resolved(document, schema)["properties"]
    for name in fields:
        for value in (*VALUES, *UNKEEPABLE):
            fits = value in VALUES and validator.is_valid({**example, name: json.loads(value)})
            yield HostileCell(
                *place, f"{name}: {value[:40]!r}", _with(example, name, value), must_name=name, is_legal=fits
            )
        twice = _with(example, name, b'null,"' + name.encode() + b'":null')
        yield HostileCell(*place, f"{name} twice", twice, must_name=name)
        without = {key: value for key, value in example.items() if key != name}
        fits = validator.is_valid(without)
        yield HostileCell(*place, f"without {name}", json.dumps(without).encode(), must_name=name, is_legal=fits)
    body, some_field = json.dumps(example).encode(), next(iter(fields))
    for whole in (*(_with(example, some_field, value) for value in NOT_JSON), *NO_OBJECTS, body + body, body[:-1]):
        yield HostileCell(*place, f"{whole[:80]!r}", whole)
    fits = validator.is_valid({**example, "unknown": 1})
    yield HostileCell(*place, "an unknown field", _with(example, "unknown", b"1"), must_name="unknown", is_legal=fits)
    for headers in FOREIGN_HEADERS:
        yield HostileCell(*place, str(headers), body, headers=dict(headers))


def _parameters(
    document: dict[str, Any], place: Place, parameter: dict[str, Any], others: str, body: bytes | None
) -> Iterator[HostileCell]:
    name, schema = parameter["name"], parameter["schema"]
    validator = _strict()({**schema, "components": document["components"]})
    if parameter["in"] == "query":
        for value in (*QUERY_VALUES, *UNREADABLE_QUERIES, f"1&{name}=2"):
            fits = value in QUERY_VALUES and validator.is_valid(_read(value, _resolved(document, schema)))
            query, says = f"{others}{name}={value}", f"{name}={value[:40]}"
            yield HostileCell(*place, says, body, query, must_name=name, is_legal=fits)
    elif parameter["in"] == "header":
        for raw in HEADER_VALUES:
            legal = name == "Idempotency-Key"
            yield HostileCell(*place, f"{name}: {raw[:40]!r}", body, headers={name: raw}, is_legal=legal)


def _required(parameters: list[dict[str, Any]]) -> str:
    """The query's required ones, each with the first value that its schema shows."""
    asked = {each["name"]: each["schema"] for each in parameters if each["in"] == "query" and each["required"]}
    shown = {name: (schema.get("enum") or schema["examples"])[0] for name, schema in asked.items()}
    return "".join(f"{name}={value}&" for name, value in shown.items())


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _with(example: dict[str, Any], name: str, value: bytes) -> bytes:
    return json.dumps({**example, name: PLACE}).encode().replace(json.dumps(PLACE).encode(), value)


def _read(value: str, schema: dict[str, Any]) -> Any:
    """A query's text as its schema's type, itself where it is none."""
    text = unquote(value)
    if schema.get("type") == "integer" and text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    if schema.get("type") == "boolean" and text in ("true", "false"):
        return text == "true"
    return text
