"""The domain guards itself: an object that cannot be is refused by the name of its field, whoever makes it."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from payagg_testing import strategies
from payagg_testing.builders import (
    NOW,
    REFERENCE,
    a_business,
    a_choice,
    a_delivery,
    a_gateway,
    a_key,
    a_payment,
    a_report,
    a_transition,
    an_attempt,
    an_endpoint,
    an_event,
    the_built_in,
)

from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus
from payagg.domain.api_key import ApiKey, ApiKeyStatus
from payagg.domain.attempt import AttemptState, Charge, HandOff, HandOffKind
from payagg.domain.business import BusinessStatus, check_subject
from payagg.domain.checks import restore, with_changes
from payagg.domain.delivery import DeliveryStatus
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import GatewayStatus, parse_credentials
from payagg.domain.payment import Payment, Status, Trigger
from payagg.domain.resolution import Resolution
from payagg.domain.values import MAX_AMOUNT, Environment, parse_slug
from tests.support.refusals import refusal_of

NAIVE = datetime(2025, 1, 31, 12)  # noqa: DTZ001 - what must be refused
NOT_TEXT = (7, True, b"x", ["x"], {"x": 1}, 1.5, "zero\x00", "\ud800")

# What each field of what a merchant sends must never be; `None` is absence, where absence is allowed.
BAD = {
    "reference": ("nonsense", "", REFERENCE + "\n", 7, None, "7" * 5000),
    "business_id": ("", "a b", "x" * 65, None, 7),
    "environment": ("SANDBOX", None, 1),
    "amount": (-5, 0, 99, MAX_AMOUNT + 1, 1.5, 100.0, True, "100", Decimal(150), None, float("nan"), 10**400),
    "currency": ("USD", "ngn", "", None, 7),
    "status": ("INITIATED", None),
    "gateway": ("", "x", "A B", "g" * 51, 7, ["sandbox"]),
    "customer_email": ("not an address", "", *NOT_TEXT),
    "customer_name": NOT_TEXT,
    "customer_phone": NOT_TEXT,
    "callback_url": ("javascript:alert(1)", "", *NOT_TEXT),
    "webhook_url": ("http://shop.example/", "", *NOT_TEXT),
    "metadata": ([], "x", {1: 2}, {"a": {1}}, {"a": float("nan")}, {"a": "\x00"}, {"\ud800": 1}, {"a": 10**400}),
    "idempotency_key": NOT_TEXT,
    "fingerprint": (b"", b"x" * 31, "x" * 32),
    "failure_reason": ("DECLINED", 7),
    "sequence": (-1, 1.5, True, 2**15),
    "created_at": (NAIVE, None, "now", 0, NOW + timedelta(hours=1)),
    "updated_at": (NAIVE, None, 0),
    "expires_at": (NAIVE, None, NOW, NOW - timedelta(seconds=1)),
    "settled_at": (NAIVE, NOW, 0),
    "is_test": (None, 1, "true"),
    "fee": (-1, 1.5, True, 2**63, "5"),
    "net_amount": (-1, 1.5, True, 2**63, "5"),
    "has_adjustments": (None, 1, "true"),
    "api_key_id": ("", "a b", 7, "x" * 65),
}
NAMES = {"created_at": {"createdAt", "expiresAt"}}


def camel(name: Any) -> Any:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


def each(wrong: Mapping[str, Iterable[Any]]) -> list[tuple[str, Any]]:
    return [(name, value) for name, values in wrong.items() for value in values]


@pytest.mark.rule("payments.17")
@pytest.mark.parametrize(("name", "value"), each(BAD))
def test_a_payment_that_cannot_be_is_refused_by_field(name: Any, value: Any) -> None:
    refusal = refusal_of(replace, a_payment(), **{name: value})
    assert refusal.field in NAMES.get(name, {camel(name)})
    codes = {"reference": ErrorCode.INVALID_REFERENCE, "gateway": ErrorCode.GATEWAY_NOT_FOUND}
    assert refusal.code is codes.get(name, ErrorCode.VALIDATION_ERROR)


def test_every_field_of_a_payment_has_its_refusals() -> None:
    assert {field.name for field in fields(Payment)} == set(BAD)


def test_a_window_is_a_positive_time() -> None:
    for ttl in (timedelta(0), timedelta(seconds=-1), timedelta.max, None, 3600):
        assert refusal_of(a_payment, ttl=ttl).field == "expiresAt"


def test_a_charge_does_not_show_its_payer_or_its_credentials() -> None:
    payer = {"email": "ada@example.com", "name": "Ada", "phone": "+2348012345678"}
    facts: dict[str, Any] = {f"customer_{name}": value for name, value in payer.items()}
    shown = repr(replace(A_CHARGE, credentials={"secret": "sk_live_1"}, **facts))
    assert [hidden for hidden in (*payer.values(), "sk_live_1") if hidden in shown] == []


def test_the_simulator_never_serves_a_live_payment() -> None:
    live: dict[str, Any] = {"environment": Environment.LIVE}
    assert refusal_of(a_payment, gateway="sandbox", **live).code is ErrorCode.GATEWAY_NOT_FOUND
    assert refusal_of(a_payment(**live).hand_over, "sandbox", NOW, "payer").field == "gateway"
    assert a_payment(gateway="sandbox").hand_over("sandbox", NOW, "payer")[0].gateway == "sandbox"


hostile = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=30),
    st.binary(max_size=8),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.text(st.characters(), max_size=3), max_size=2),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.timedeltas(),
    st.sampled_from([*Status, *Environment, *Trigger, *ApiKeyStatus, *GatewayStatus, *BusinessStatus]),
    strategies.hostile_urls,
    strategies.bad_emails,
    strategies.bad_references(),
)
AN_ANOMALY = Anomaly("anm_1", REFERENCE, AnomalyKind.MISMATCH, "verify", {}, NOW)
A_CHARGE = Charge(REFERENCE, 150_000, "NGN", Environment.LIVE, {}, "https://pay.example/1")
WHOLE: list[Any] = [
    *(a_payment(), a_transition(a_payment())[1], a_key(), a_gateway(), a_choice(a_gateway()), a_business()),
    *(an_endpoint(), an_event(), a_delivery(), an_attempt(state=AttemptState.HANDED_OFF)),
    *(HandOff(HandOffKind.REDIRECT, "https://pay.example/1"), A_CHARGE, a_report(), AN_ANOMALY),
    Resolution("res_1", REFERENCE, "Account closed.", "Case 4711.", "admin:ada", NOW),
]


@pytest.mark.rule("payments.17")
@pytest.mark.parametrize("whole", WHOLE, ids=lambda whole: type(whole).__name__)
@given(data=st.data())
def test_a_hostile_value_is_taken_or_refused_with_a_field_and_never_an_accident(whole: Any, data: Any) -> None:
    name = data.draw(st.sampled_from([field.name for field in fields(whole)]))
    value = data.draw(hostile)
    field: str | None = "none was refused"
    try:
        replace(whole, **{name: value})
    except Refusal as refused:
        field = refused.field
    assert field is not None


# What a field must never be, by its own name; then what it must never be beside the others, by the name of one of them.
WRONG: list[tuple[Any, dict[str, tuple[Any, ...]]]] = [
    (a_key(), {"public_key": ("spk_live_" + "0" * 32, "ssk_sand_" + "0" * 48), "secret_hash": (b"raw",)}),
    (a_key(), {"secret_last4": ("whole secret",), "revoked_at": (NOW,), "name": ("  ", "\u2003\n", "\u200b\u200b")}),
    (
        a_gateway(),
        {"slug": ("A",), "name": (None, "  "), "display_order": (True,), "credentials": ({"secret": "plain"},)},
    ),
    (a_gateway(status=GatewayStatus.DRAINING), {"drain_ends_at": (None,)}),
    (the_built_in(), {"status": (GatewayStatus.DISABLED,)}),
    (a_business(), {"name": (" padded ", "two\nlines")}),
    (an_endpoint(), {"url": ("ftp://shop.example/",)}),
    (an_endpoint(environment=Environment.LIVE), {"url": ("http://shop.example/",)}),
    (an_endpoint(), {"events": (("payment.unknown",), ("payment.failed", "payment.pending"), ["payment.failed"])}),
    *((a_payment(final), {"settled_at": (None,)}) for final in (Status.SUCCESS, Status.FAILED)),
    (a_transition(a_payment())[1], {"to_status": (Status.INITIATED,)}),
    (an_attempt(), {"reference": ("nonsense",), "number": (0,), "gateway": ("",), "lease_until": (NAIVE,)}),
    (an_attempt(state=AttemptState.HANDED_OFF), {"hand_off": (None,)}),
    (A_CHARGE, {"amount": (1.5, -5), "currency": ("USD",), "reference": ("nonsense",)}),
    (a_report(), {"amounts": (frozenset({1.5}), {150_000}), "outcome": ("SUCCEEDED",)}),
    (AN_ANOMALY, {"reference": ("nonsense",)}),
]
WRONG_TOGETHER: list[tuple[Any, str, Any, str]] = [
    (a_key(), "status", ApiKeyStatus.REVOKED, "revokedAt"),
    (a_gateway(), "status", GatewayStatus.DRAINING, "drainStartedAt"),
    (a_choice(a_gateway(), is_default=True), "is_enabled", False, "isDefault"),
    (an_endpoint(), "previous_secret", b"sealed", "previousSecretExpiresAt"),
    (an_event(), "body", "text", "data"),
    (a_transition(a_payment())[1], "from_status", Status.FAILED, "toStatus"),
    (an_attempt(), "number", 2, "providerReference"),
    (an_attempt(), "state", AttemptState.HANDED_OFF, "handOff"),
    (AN_ANOMALY, "status", AnomalyStatus.CLOSED, "closedAt"),
]


def test_what_cannot_be_is_refused_by_field() -> None:
    own = [(whole, *pair, camel(pair[0])) for whole, wrong in WRONG for pair in each(wrong)]
    for whole, name, value, field in own + WRONG_TOGETHER:
        assert refusal_of(replace, whole, **{name: value}).field == field, (whole, name, value)


# The fewest and the most characters of a text, and the lowest and highest of a number, by whole thing and field.
EDGES: list[tuple[Any, dict[str, tuple[int, int]]]] = [
    (a_payment(), {"idempotency_key": (1, 255), "customer_name": (0, 200), "customer_phone": (0, 32)}),
    (a_payment(), {"amount": (100, 9_007_199_254_740_991), "sequence": (0, 32_767)}),
    (a_payment(Status.FAILED), {"failure_reason": (0, 4_096)}),
    (a_transition(a_payment())[1], {"sequence": (1, 32_767), "actor": (1, 600), "reason": (0, 4_096)}),
    (an_attempt(), {"token": (1, 64), "asks": (0, 32_767)}),
    (HandOff(HandOffKind.SDK, "x"), {"checkout_url": (1, 8_192)}),
    (a_report(), {"provider_reference": (0, 4_096), "word": (0, 4_096), "currency": (0, 4_096), "reason": (0, 4_096)}),
    (an_endpoint(), {"description": (0, 200), "secret_last4": (4, 4), "concurrency": (1, 50)}),
    (an_endpoint(), {"successful": (0, 9_223_372_036_854_775_807), "failed": (0, 9_223_372_036_854_775_807)}),
    (an_event(), {"sequence": (1, 32_767), "type": (1, 50)}),
    (a_delivery(), {"sequence": (1, 32_767), "attempts": (0, 32_767), "lost_tries": (0, 32_767)}),
    (a_key(), {"name": (2, 100)}),
    (a_gateway(), {"slug": (2, 50), "name": (2, 100), "description": (0, 1_000), "logo_path": (1, 200)}),
    (a_gateway(), {"display_order": (0, 2_147_483_647)}),
    (a_choice(a_gateway(), display_order=1), {"display_name": (0, 50), "display_order": (0, 2_147_483_647)}),
    (a_business(), {"name": (1, 200)}),
]


@pytest.mark.rule("payments.19")
@pytest.mark.parametrize(
    ("whole", "name", "least", "most"),
    [(whole, name, *ends) for whole, edges in EDGES for name, ends in edges.items()],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_field_is_taken_at_its_ends_and_refused_beyond_them(whole: Any, name: str, least: int, most: int) -> None:
    is_number = isinstance(getattr(whole, name), int)
    for size in (least, most):
        replace(whole, **{name: size if is_number else "x" * size})
    for size in (least - 1, most + 1):
        if is_number or size >= 0:
            assert refusal_of(replace, whole, **{name: size if is_number else "x" * size}).field == camel(name)


def test_a_delivery_goes_to_one_address_and_is_scheduled_while_it_is_pending() -> None:
    assert refusal_of(a_delivery, endpoint_id=None).field == "url"
    assert refusal_of(a_delivery, url="https://shop.example/").field == "url"
    assert refusal_of(replace, a_delivery(), next_attempt_at=None).field == "nextAttemptAt"
    assert refusal_of(replace, a_delivery(), status=DeliveryStatus.DELIVERED).field == "nextAttemptAt"


def test_a_key_is_generated_from_enough_randomness_alone() -> None:
    facts = {"id": "key_1", "business_id": "biz_1", "environment": Environment.LIVE, "name": "Server", "now": NOW}
    for secret_hex, public_hex, field in (("00", "0" * 32, "secretKey"), ("0" * 48, "00", "publicKey")):
        drawn = {"secret_hex": secret_hex, "public_hex": public_hex}
        assert refusal_of(ApiKey.generate, **facts, **drawn).field == field


def test_an_administrators_slug_has_hyphens_alone_and_a_members_subject_is_one_line() -> None:
    for slug in ("provider_a", "", "a", "a--b", "a\n", "a" * 51):
        assert refusal_of(parse_slug, slug).field == "slug"
    for subject in ("", " ", "x" * 256, "a\x00b", "two\nlines", None):
        assert refusal_of(check_subject, subject, "sub").field == "sub"


def test_credentials_are_one_to_fifty_texts_of_4000_characters() -> None:
    most = {f"{n:0100}": "x" * 4000 for n in range(50)}
    assert parse_credentials(most) is most
    wrong: Any
    for wrong in ({}, {**most, "50": "x"}, {7: "x"}, {"n" * 101: "x"}, "text"):
        assert refusal_of(parse_credentials, wrong).field == "credentials"
    for wrong in ("x" * 4001, 7):
        assert refusal_of(parse_credentials, {"key": wrong}).field == "credentials.key"


@pytest.mark.rule("payments.18")
def test_a_stored_payment_is_read_and_settled_whatever_rule_came_later() -> None:
    """Money must not stop because of a rule that its payment never met."""
    old = with_changes(a_payment(Status.PENDING), customer_email="once allowed", callback_url="once:allowed")
    stored = restore(Payment, {**vars(old)})
    assert stored == old
    assert stored.move(Trigger.SUCCEED, NOW, actor="event")[0].status is Status.SUCCESS
    fresh = with_changes(a_payment(), customer_email="once allowed")
    assert fresh.as_of(NOW + timedelta(days=1)).status is Status.FAILED
