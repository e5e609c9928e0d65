"""Values: what is accepted, and every near miss that must not be."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import idna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from payagg_testing import strategies

from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import (
    REFERENCE_SUFFIXES,
    ascii_email,
    ascii_url,
    make_reference,
    parse_email,
    parse_instant,
    parse_reference,
    parse_url,
)
from tests.support.refusals import refusal_of


def test_a_reference_is_prefix_utc_day_and_six_characters() -> None:
    day = datetime(2025, 1, 31, tzinfo=UTC)
    assert make_reference("PAY", day, 0) == "PAY-20250131-000000"
    assert make_reference("PAY", day, 35) == "PAY-20250131-00000Z"
    assert make_reference("PAY", day, 36) == "PAY-20250131-000010"
    assert make_reference("ABC", day, REFERENCE_SUFFIXES - 1) == "ABC-20250131-ZZZZZZ"


@given(strategies.references(), strategies.emails, strategies.urls)
def test_what_is_ordinary_is_accepted_unchanged(reference: str, email: str, url: str) -> None:
    assert parse_reference(reference) == reference
    assert parse_email(email, "customerEmail") == email
    assert parse_url(url, "callbackUrl") == url


@given(strategies.bad_references())
def test_no_near_miss_is_a_reference(text: Any) -> None:
    refusal = refusal_of(parse_reference, text)
    assert (refusal.code, refusal.field) == (ErrorCode.INVALID_REFERENCE, "reference")


def test_neither_the_day_nor_the_prefix_of_a_reference_is_judged() -> None:
    # The interface's pattern asks for eight digits, no more; and a prefix may have been another once.
    for text in ("PAY-99999999-AAAAAA", "ABC-20250131-7K2M9X"):
        assert parse_reference(text) == text


@pytest.mark.rule("payments.22")
def test_international_addresses_are_accepted_as_they_are() -> None:
    wire = dict.fromkeys(("ọjà@shop.example", "用户@例子.公司", "ẹ̀kọ́@ẹ̀kọ́.ng"))
    wire |= {"ada@exämple.com": "ada@xn--exmple-cua.com", "ada@пример.рф": "ada@xn--e1afmkfd.xn--p1ai"}
    wire |= {"ada@example.com": "ada@example.com"}
    assert {text: ascii_email(parse_email(text, "customerEmail")) for text in wire} == wire
    assert [parse_email(text, "customerEmail") for text in wire] == list(wire)


@pytest.mark.parametrize("text", strategies.BAD_EMAILS)
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    refusal = refusal_of(parse_email, text, "customerEmail")
    assert (refusal.code, refusal.field) == (ErrorCode.VALIDATION_ERROR, "customerEmail")


INTERNATIONAL = "ọ" * 64 + "@" + ".".join(["ọ" + "a" * 50] * 3 + ["b" * 30, "ng"])  # 254 characters


def test_an_address_may_be_254_characters_and_64_before_the_at() -> None:
    for longest, longer in (
        (f"{'a' * 64}@{'b' * 63}.{'c' * 63}.{'d' * 58}.ng", f"{'a' * 64}@{'b' * 63}.{'c' * 63}.{'d' * 59}.ng"),
        (INTERNATIONAL, INTERNATIONAL + "a"),
        ("a" * 64 + "@example.com", "a" * 65 + "@example.com"),
    ):
        assert parse_email(longest, "e") == longest
        refusal_of(parse_email, longer, "e")


@pytest.mark.rule("payments.20")
@pytest.mark.parametrize(
    "text",
    [
        *("https://shop.example", "HTTPS://SHOP.EXAMPLE/", "http://127.0.0.1:8080/thanks?a=b#c"),
        "https://shop.example./",
        *("https://[2001:db8::1]:443/x", "https://xn--hst-sna.example/", "https://my_shop.example/", "https://ẹ̀kọ́.ng"),
        *("https://localhost/%0d%0a", "https://shop.example:/", "https://bücher.example/ọjà?x=a|b"),
        *("https://ọjà.example/{order}/^`#ọ", "https://пример.рф:8443/путь", "https://例え.テスト/"),
        *("https://köln-bonn.example/", "https://ọjà٣.example/"),  # the last has a digit that is no ASCII
        "https://shop.example/".ljust(2048, "a"),
    ],
)
def test_unusual_but_honest_urls_are_accepted(text: str) -> None:
    assert parse_url(text, "callbackUrl") == text


@pytest.mark.rule("payments.20")
@pytest.mark.parametrize("text", [*strategies.HOSTILE_URLS, "https://shop.example/".ljust(2049, "a")])
def test_a_hostile_url_is_refused_by_name(text: str) -> None:
    refusal = refusal_of(parse_url, text, "callbackUrl")
    assert (refusal.code, refusal.field) == (ErrorCode.VALIDATION_ERROR, "callbackUrl")


@given(st.text(max_size=60))
def test_any_text_is_accepted_or_refused_and_never_an_accident(text: Any) -> None:
    with suppress(Refusal):
        assert parse_url(text, "f") == text
    with suppress(Refusal):
        assert parse_email(text, "f") == text
    with suppress(Refusal):
        assert parse_reference(text) == text


@given(st.text("ht tps:/@[]\\.%#?-_é1:ọ|Ａ①。\u0301", max_size=24).map(lambda tail: "https://" + tail))
def test_an_accepted_url_goes_over_the_wire_as_plain_ascii_without_user_information(text: Any) -> None:
    try:
        parse_url(text, "f")
    except Refusal:
        return
    wire = ascii_url(text)
    assert re.fullmatch(r"[!#-;=?-\[\]_a-z~]+", wire)
    assert "@" not in re.split(r"[/?#]", wire.removeprefix("https://"))[0]
    assert ascii_url(wire) == wire
    assert text == wire or not text.isascii() or "|" in text


WIRE = {
    "https://bücher.example/ọjà?x=a|b": "https://xn--bcher-kva.example/%E1%BB%8Dj%C3%A0?x=a%7Cb",
    "https://BÜCHER.example/": "https://xn--bcher-kva.example/",
    "https://faß.example/": "https://xn--fa-hia.example/",  # and not fass.example, where another may live
    "https://ΟΔΟΣ.example/": "https://xn--pxavbq.example/",
    "https://shop.example/a%7cb?c=%zz": "https://shop.example/a%7cb?c=%zz",  # what is encoded stays as it came
    "https://[2001:db8::1]:8443/ọ": "https://[2001:db8::1]:8443/%E1%BB%8D",
}


@pytest.mark.rule("payments.21")
@pytest.mark.parametrize("text", WIRE)
def test_a_url_is_normalised_on_use_as_browsers_do(text: Any) -> None:
    assert ascii_url(parse_url(text, "f")) == WIRE[text]


@given(
    st.text(st.characters(categories=["Ll", "Lu", "Lo", "Lm", "Mn", "Mc", "Nd"]), min_size=1, max_size=8)
    | st.text("abßçéịọụńṣẹ̀́ΣσςИйקעאبپ한あア漢1٣-", min_size=1, max_size=8)
)
def test_an_international_host_becomes_what_the_library_for_them_makes_of_it(label: Any) -> None:
    """`idna` is the judge in tests alone: the domain needs nothing but the standard library."""
    try:
        named = ascii_url(f"https://{label}.example/")
        expected = idna.encode(f"{label}.example", uts46=True).decode()
    except (ValueError, idna.IDNAError):
        return  # refused by us, or by the library's rules of bidirectional text and context, which are stricter
    if not label.isascii():
        assert named == f"https://{expected}/"


def test_an_instant_is_read_in_utc() -> None:
    for text, instant in (
        ("2025-01-31T12:00:00Z", datetime(2025, 1, 31, 12, tzinfo=UTC)),
        ("2025-01-31T12:00:00.5+01:30", datetime(2025, 1, 31, 10, 30, 0, 500_000, tzinfo=UTC)),
        ("2999-12-31T23:59:59.999999-23:59", datetime(3000, 1, 1, 23, 58, 59, 999_999, tzinfo=UTC)),
        ("2025-01-31 12:00:00z", datetime(2025, 1, 31, 12, tzinfo=UTC)),
    ):
        read = parse_instant(text, "from")
        assert (read, read.tzinfo) == (instant, UTC)


def test_anything_else_is_no_instant() -> None:
    for text in (
        *("", "2025-01-31", "2025-01-31T12:00:00", "2025-01-31T12:00Z", "20250131T120000Z"),
        *("2025-02-30T12:00:00Z", "2025-01-31T24:00:01Z", "2025-01-31T12:00:00Z\n", "2025-01-31T12:00:00+25:00"),
        *("2025-W05-5T12:00:00Z", "2025-01-31T12:00:60Z", "2025-01-31T12:00:00+1:00", "now\n"),
        *("0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "２025-01-31T12:00:00Z"),
    ):
        refusal = refusal_of(parse_instant, text, "from")
        assert (refusal.code, refusal.field) == (ErrorCode.VALIDATION_ERROR, "from"), text
