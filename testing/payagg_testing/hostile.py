"""Hypothesis strategies for what must be refused: for each kind of value, what a careless check lets through.

Each is named as its good counterpart of `payagg_testing.strategies`.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from payagg.domain.gateway import CREDENTIAL_VALUE_MAX, CREDENTIALS_MAX, REORDER_MAX
from payagg.domain.payment import IDEMPOTENCY_KEY_MAX, METADATA_DEPTH_MAX, METADATA_KEY_MAX, METADATA_KEYS_MAX
from payagg.domain.values import MAX_AMOUNT, MIN_AMOUNT, SLUG_MAX
from payagg_testing import strategies
from payagg_testing.strategies import bad_emails as emails
from payagg_testing.strategies import bad_references as references
from payagg_testing.strategies import hostile_urls as urls

HEX = "0123456789abcdef"
BROKEN_SLUGS = ["{}\n", "-{}", "{}-", "{}--x", "{}_x", "{} x", "{}A", "{}\u0661"]  # the last: an Arabic-Indic digit
UNSTORABLE = ["\x00", "a\x00b", "\ud800", "ok\udfff"]

# Not even of the right kind: what JSON, a form or a careless caller may bring instead of text.
not_texts: SearchStrategy[Any] = st.sampled_from([None, 0, 1.5, True, b"bytes", [], {}])
unstorable_texts = st.sampled_from(UNSTORABLE)

amounts: SearchStrategy[Any] = st.one_of(
    st.integers(max_value=MIN_AMOUNT - 1),
    st.integers(min_value=MAX_AMOUNT + 1),
    st.floats(),
    st.sampled_from(["100", "1e2", "", None, True, False, [100], {"kobo": 100}, 100.0, float(2**53)]),
)

slugs: SearchStrategy[Any] = st.one_of(
    not_texts,
    unstorable_texts,
    st.builds(str.format, st.sampled_from(BROKEN_SLUGS), strategies.slugs),
    st.sampled_from(["", "a", "a" * (SLUG_MAX + 1)]),
)


def _other_key(secret: str) -> list[str]:
    head, digits = secret[:9], secret[9:]
    return [
        secret + "\n",
        " " + secret,
        secret[:-1],
        secret + "0",
        head + digits.upper() if digits.upper() != digits else head + "G" + digits[1:],
        "spk" + secret[3:],
        "ssk_test_" + digits,
        head + "\u0661" + digits[1:],
    ]


key_secrets: SearchStrategy[str] = st.one_of(
    strategies.key_secrets().flatmap(lambda secret: st.sampled_from(_other_key(secret))), st.text(max_size=30)
)

idempotency_keys: SearchStrategy[Any] = st.one_of(
    not_texts.filter(lambda value: value is not None),  # absent
    unstorable_texts,
    st.sampled_from(["", "k" * (IDEMPOTENCY_KEY_MAX + 1)]),
)


def _nest(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"in": value}
    return value


metadata: SearchStrategy[Any] = st.sampled_from(
    [
        [],
        "text",
        {f"k{n}": n for n in range(METADATA_KEYS_MAX + 1)},
        {"k" * (METADATA_KEY_MAX + 1): 1},
        {"note": "x" * 16_384},
        {1: "a number for a name"},
        {"note": b"bytes"},
        {"note": {1, 2}},
        {"huge": 2**63},
        {"endless": float("inf")},
        {"nothing": float("nan")},
        _nest(METADATA_DEPTH_MAX + 1),
        {"list": [[[[[[]]]]]]},
        *({text: 1} for text in UNSTORABLE),
        *({"note": text} for text in UNSTORABLE),
    ]
)

credentials: SearchStrategy[Any] = st.sampled_from(
    [
        None,
        [],
        {},
        {f"k{n}": "v" for n in range(CREDENTIALS_MAX + 1)},
        {"key": "v" * (CREDENTIAL_VALUE_MAX + 1)},
        {"key": 1},
        {"key": None},
        {1: "v"},
        *({"key": text} for text in UNSTORABLE),
        *({text: "v"} for text in UNSTORABLE),
    ]
)

events: SearchStrategy[Any] = st.sampled_from(
    [
        "payment.success",
        ["payment.eaten"],
        ["PAYMENT.SUCCESS"],
        ["payment.success", "payment.success "],
        ["webhook.test"],
        ["payment.success"] * 200,
        [None],
        [1],
    ]
)

orders: SearchStrategy[Any] = st.one_of(
    st.sampled_from([[], [f"gw_{n}" for n in range(REORDER_MAX + 1)]]),
    st.lists(st.sampled_from(["gw_1", "gw_2"]), min_size=3, max_size=5),  # one of them is there twice
)

ids: SearchStrategy[Any] = st.one_of(
    not_texts, unstorable_texts, st.sampled_from(["", "a b", "a\n", "../etc", "a" * 65, "é", "gw_1;drop"])
)


# Names and descriptions, by the most characters that the good ones have.
def texts(most: int, least: int = 0) -> SearchStrategy[Any]:
    short = [] if least == 0 else [st.text("a", max_size=least - 1)]
    return st.one_of(
        not_texts, unstorable_texts.map(lambda text: text.ljust(least, "a")), st.just("a" * (most + 1)), *short
    )


__all__ = [
    "amounts", "credentials", "emails", "events", "idempotency_keys", "ids", "key_secrets", "metadata", "not_texts",
    "orders", "references", "slugs", "texts", "unstorable_texts", "urls",
]  # fmt: skip
