"""Strict decoding (reliability.md 0.1 to 0.3, F1, F2, F4): each hostile form is a VALIDATION_ERROR naming the field."""

import json
import re
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from payagg.application.schemas.gateways import UpdateCredentials
from payagg.application.schemas.payments import InitiatePayment, SimulatePayment
from payagg.application.schemas.payments import TestPayment as DashboardPayment
from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.http.server import strict_json
from payagg.entrypoints.http.server.strict_json import DEPTH_MAX, EXPONENTS_MAX, OUTSIDE_TEXTS_MAX, decode
from tests.support.refusals import refusal_of


class Item(Struct, rename="camel", forbid_unknown_fields=True):
    gateway_id: str
    display_order: Annotated[int, Meta(ge=0)]


class Reorder(Struct, rename="camel", forbid_unknown_fields=True):
    order: Annotated[list[Item], Meta(min_length=1, max_length=2)]


class Credentials(Struct):
    credentials: Annotated[dict[str, Annotated[str, Meta(max_length=5)]], Meta(min_length=1, max_length=3)]


def refusal(body: bytes, kind: type = InitiatePayment) -> Refusal:
    refused = refusal_of(decode, body, kind)
    assert refused.code is ErrorCode.VALIDATION_ERROR
    return refused


AMOUNTS = [
    *(b'"100"', b"1e2", b"1E2", b"100.0", b"9007199254740993.0", b"true", b"null", b"[100]", b'{"$gt":1}'),
    *(b"99", b"0", b"-0", b"-100", b"9007199254740992", b"9223372036854775808", b"18446744073709551616", b"9" * 300),
]


@pytest.mark.rule("access.24")
@pytest.mark.parametrize("amount", AMOUNTS)
def test_an_amount_is_a_true_integer_in_bounds(amount: bytes) -> None:
    assert refusal(b'{"amount":' + amount + b"}").field == "amount"


NOT_JSON = [
    *(b"", b"  ", b'{"amount":', b'{"amount":100,}', b'{"amount":100/**/}', b'{"amount":100}{"amount":100}'),
    *(b'{"amount":' + number + b"}" for number in (b"9" * 5000, b"0100", b"+100", b"0x64", b"NaN", b"-Infinity")),
    *(b'\xef\xbb\xbf{"amount":100}', '{"amount":100}'.encode("utf-16")),
    # Invalid, overlong and surrogate UTF-8, a raw NUL and a raw line break.
    *(
        b'{"amount":100,"customerName":"' + text + b'"}'
        for text in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\x00", b"\n")
    ),
    *(b'{"amount":100,"metadata":' + b"[" * 30_000 + b"]" * 30_000 + b"}", b"[" * 60_000),
]


@pytest.mark.rule("access.24")
@pytest.mark.parametrize("body", NOT_JSON, ids=lambda body: ascii(body[:40]))
def test_what_is_not_json_is_refused(body: bytes) -> None:
    assert refusal(body).message == "The body is not valid JSON."


@pytest.mark.parametrize("number", [b"1e308", b"-1.5E+300", b"5e-324"])
def test_numbers_that_are_costly_to_read_are_counted_before_any_is_read(number: bytes) -> None:
    def body(times: int) -> bytes:
        return b'{"amount":100,"metadata":{"a":[' + b", ".join([number] * times) + b"]}}"

    assert decode(body(EXPONENTS_MAX), InitiatePayment).amount == 100
    assert "exponent" in refusal(body(EXPONENTS_MAX + 1)).message


def test_only_texts_make_a_body_longer_than_64_kilobytes() -> None:
    """Every value of another kind costs an object and a step; a text of any length is one of each."""
    texts = ",".join(f'"k{n}":"{chr(92)}",[{{0:1e9' + "x" * 3_900 + '"' for n in range(50))

    def body(zeros: int) -> bytes:
        return f'{{"credentials":{{{texts}}},"x":[{",".join("0" * zeros)}]{" " * 100_000}}}'.encode()

    room = (OUTSIDE_TEXTS_MAX - len("{:{},:[]}") - len(":" * 50 + "," * 49)) // len("0,")
    assert len(decode(body(room), UpdateCredentials).credentials) == 50
    assert "outside" in refusal(body(room + 1), UpdateCredentials).message
    for value in (b'"",', b'"a":{},', b"0,", b"[", b"9", b'"\\\\",'):
        assert "outside" in refusal(b'{"amount":100,"x":[' + value * 70_000).message
    assert "JSON" in refusal(b'{"amount":100,"x":"' + b'\\"' * 70_000).message


@pytest.mark.parametrize("spaces", [(",", ":"), (", ", ": ")], ids=["none", "behind colons and commas"])
def test_a_body_as_programs_write_it_is_not_walked(spaces: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "_UNIQUE", None)
    body = {"amount": 100, "customerName": "Ada, Countess: of", "metadata": {"a": ["b", "c"]}}
    written = json.dumps(body, separators=spaces)
    assert decode(written.encode(), InitiatePayment).amount == 100


# What stands behind a good amount.
NAMED = {
    "customerName": [b'"a\\u0000b"', b'"\\ud800"', b'"\\udc00x"', b"7", b'"' + b"x" * 201 + b'"'],
    "currency": [b'"USD"', b'"ngn"'],
    "idempotencyKey": [b'""'],
    "metadata": [b'{"\\u0000":1}', b"[]"],
    "metadata.a": [b'{"a":1e400}', b'{"a":' + b"9" * 400 + b".0}"],
    "metadata.a[1]": [b'{"a":["x","\\u0000"]}'],
    "metadata.a.b": [b'{"a":{"b":1,"b":2}}'],
    "metadata.a, ": [b'{"a, ": 1, "a,": 1, "a, ": 2}'],
}
TWICE = [b'{"amount":100,"amount":200}', b'{"amount":100,"\\u0061mount":200}', b'{"amount": 100, "amount": 200}']


def test_a_refusal_names_the_field() -> None:
    for field, values in NAMED.items():
        name = re.split(r"[.\[]", field)[0].encode()
        for value in values:
            assert refusal(b'{"amount":100,"' + name + b'":' + value + b"}").field == field
    for body in (*TWICE, b"{}"):
        assert refusal(body).field == "amount"


@pytest.mark.rule("limits.37")
def test_nesting_counts_to_the_cap() -> None:
    def deep(levels: int) -> bytes:
        return b'{"amount":100,"metadata":{"a":' + b"[" * levels + b"]" * levels + b"}}"

    decode(deep(DEPTH_MAX - 2), InitiatePayment)
    refused = refusal(deep(DEPTH_MAX - 1))
    assert refused.message == f"At most {DEPTH_MAX} levels deep."
    assert (refused.field or "").startswith("metadata.a[0]")


@pytest.mark.rule("access.26")
@pytest.mark.parametrize(
    ("kind", "body", "fields"),
    [
        (Reorder, b'{"order":[{"gatewayId":"a","displayOrder":0},{"displayOrder":1}]}', {"order[1].gatewayId"}),
        (Reorder, b'{"order":[{"gatewayId":"a","displayOrder":-1}]}', {"order[0].displayOrder"}),
        (Reorder, b'{"order":[{"gatewayId":"a","displayOrder":1,"x":1}]}', {"order[0].x"}),
        (Reorder, b'{"order":[]}', {"order"}),
        (Reorder, b'{"order":[],"extra":1}', {"order", "extra"}),
        (Credentials, b'{"credentials":{"a":"x","b":"toolong","c":"x"}}', {"credentials.b"}),
        (Credentials, b'{"credentials":{"a":7}}', {"credentials.a"}),
        (Credentials, b'{"credentials":{}}', {"credentials"}),
        (Credentials, b'{"credentials":{"a":"","b":"","c":"","d":""}}', {"credentials"}),
    ],
)
def test_items_are_named_by_their_place_and_entries_by_their_key(kind: type, body: bytes, fields: set[str]) -> None:
    assert refusal(body, kind).field in fields


def test_neither_words_nor_fields_nor_what_is_printed_repeat_what_a_caller_chose() -> None:
    command = decode(b'{"credentials": {"liveSecretKey": "sk_live_secret"}}', UpdateCredentials)
    assert "sk_live" not in repr(command) + str(command)
    canary = "canary-8d1f"
    for told in (json.dumps({"amount": canary}), json.dumps({"amount": 100, "metadata": canary}), f"{{{canary}}}"):
        assert canary not in refusal(told.encode()).message
    for value in (canary, "x - at `$.amount`", "4111111111111111 - at `$4111111111111111"):
        refused = refusal(json.dumps({"amount": 100, "currency": value}).encode())
        assert (refused.field, value in refused.message) == ("currency", False)
    order = [{"gatewayId": "a", "displayOrder": 1}]
    assert refusal(json.dumps({"order": order, "\u202ea\u00e9": 1}).encode(), Reorder).field == "?a?"
    assert len(refusal(json.dumps({"order": order, "x" * 5000: 1}).encode(), Reorder).field or "") == 100


@pytest.mark.rule("access.25")
def test_null_means_absent_extras_are_ignored_and_lengths_count_code_points() -> None:
    command = decode(b'{"amount":100,"customerEmail":null,"status":"SUCCESS","environment":"LIVE"}', InitiatePayment)
    assert command == InitiatePayment(amount=100)
    name = "\U0001f600" * 200
    assert decode(json.dumps({"amount": 100, "customerName": name}).encode(), InitiatePayment).customer_name == name
    for body in (b"null", b"[]", b'"x"', b"1", b"true"):
        assert refusal(body).message == "Must be an object."


def test_keys_are_compared_a_number_of_times_that_grows_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    class Key(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    pairs: list[tuple[str, Any]] = [(Key(f"k{n}"), n) for n in [*range(3_000), 2_999]]
    marked = strict_json._mark_duplicates(pairs)
    assert isinstance(marked, strict_json._Twice)
    assert marked.key == "k2999"
    assert compared < 10 * len(pairs)


class Choice(Enum):
    A = "A"
    B = "B"


class Chosen(Struct, rename="camel"):
    """A field of every kind that has allowed values."""

    an_enum: Choice | None = None
    a_literal: Literal["X", "Y"] = "X"
    a_pattern: Annotated[str, Meta(pattern="^[a-z]+$")] = "a"
    some: list[Choice] = []
    by_name: dict[str, Choice] = {}


KOBO = "Must be an integer number of kobo: 150050 is ₦1,500.50."
TAUGHT: dict[str, tuple[Any, Any, str]] = {
    **{
        f"the outcome {outcome}": (SimulatePayment, {"outcome": outcome}, "Must be one of SUCCESS, FAILED, REVERSED.")
        for outcome in ("PAID", "SUCCEEDED", 1)
    },
    "a currency": (InitiatePayment, {"amount": 100, "currency": "USD"}, "Must be NGN."),
    "an enum": (Chosen, {"anEnum": "C"}, "Must be one of A, B."),
    "no text": (Chosen, {"anEnum": 7}, "Must be one of A, B."),
    "a literal": (Chosen, {"aLiteral": "Z"}, "Must be one of X, Y."),
    "a pattern": (Chosen, {"aPattern": "7"}, "Must match ^[a-z]+$."),
    "an item": (Chosen, {"some": ["A", "C"]}, "Must be one of A, B."),
    "an entry": (Chosen, {"byName": {"a": "C"}}, "Must be one of A, B."),
    "naira": (InitiatePayment, {"amount": 1500.5}, KOBO),
    "an amount in text": (InitiatePayment, {"amount": "150050"}, KOBO),
    "an amount that is true": (InitiatePayment, {"amount": True}, KOBO),
    "no amount": (DashboardPayment, {"amount": None}, KOBO),
    "an amount too small": (InitiatePayment, {"amount": 99}, "Must be at least 100."),
    "an amount too large": (InitiatePayment, {"amount": 2**53}, "Must be at most 9007199254740991."),
}


@pytest.mark.rule("access.27")
@pytest.mark.parametrize("form", TAUGHT)
def test_a_refusal_says_what_would_be_right(form: str) -> None:
    kind, body, words = TAUGHT[form]
    assert refusal(json.dumps(body).encode(), kind).message == words
