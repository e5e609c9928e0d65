"""The domain guards itself: an object that cannot be is refused by the name of its field, whoever makes it."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus
from payagg.domain.api_key import ApiKey, ApiKeyStatus
from payagg.domain.attempt import AttemptState, Charge, HandOff, HandOffKind
from payagg.domain.business import BusinessStatus, check_subject
from payagg.domain.checks import restored, revised
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import Gateway, GatewayStatus, parse_credentials, parse_order
from payagg.domain.payment import Payment, Status, Trigger
from payagg.domain.values import MAX_AMOUNT, Environment
from payagg.domain.webhook import DeliveryStatus
from payagg.testing import strategies
from tests.support.builders import (
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

NAIVE = datetime(2025, 1, 31, 12)  # noqa: DTZ001 - what must be refused
NOT_TEXT = (7, True, b"x", ["x"], {"x": 1}, 1.5)


def words(most: Any) -> Any:
    return (*NOT_TEXT, "x" * (most + 1), "zero\x00", "\ud800")


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
    "customer_name": words(200),
    "customer_phone": words(32),
    "callback_url": ("javascript:alert(1)", "", *NOT_TEXT),
    "webhook_url": ("http://shop.example/", "", *NOT_TEXT),
    "metadata": ([], "x", {1: 2}, {"a": {1}}, {"a": float("nan")}, {"a": "\x00"}, {"\ud800": 1}, {"a": 10**400}),
    "idempotency_key": ("", *words(255)),
    "fingerprint": (b"", b"x" * 31, "x" * 32),
    "failure_reason": ("DECLINED", 7),
    "sequence": (-1, 1.5, True, 2**15),
    "created_at": (NAIVE, None, "now", 0, NOW + timedelta(hours=1)),
    "updated_at": (NAIVE, None, 0),
    "expires_at": (NAIVE, None, NOW, NOW - timedelta(seconds=1)),
    "settled_at": (NAIVE, NOW, 0),
    "is_test": (None, 1, "true"),
}
NAMES = {"created_at": {"createdAt", "expiresAt"}}


def camel(name: Any) -> Any:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


def refusal_of(call: Any, *arguments: Any, **named: Any) -> Any:
    with pytest.raises(Refusal) as refused:
        call(*arguments, **named)
    return refused.value


def outcome_of(call: Any, *arguments: Any, **named: Any) -> Any:
    """The refusal, None when there was none; any other exception is the test's failure."""
    try:
        call(*arguments, **named)
    except Refusal as refusal:
        return refusal
    return None


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_payment_that_cannot_be_is_refused_by_field(name: Any, value: Any) -> None:
    refusal = refusal_of(replace, a_payment(), **{name: value})
    assert refusal.field in NAMES.get(name, {camel(name)})
    codes = {"reference": ErrorCode.INVALID_REFERENCE, "gateway": ErrorCode.GATEWAY_NOT_FOUND}
    assert refusal.code is codes.get(name, ErrorCode.VALIDATION_ERROR)


def test_every_field_of_a_payment_has_its_refusals() -> None:
    assert {field.name for field in fields(Payment)} == set(BAD)


@pytest.mark.parametrize("name", ["reference", "amount", "customer_email", "callback_url", "webhook_url", "metadata"])
def test_initiate_refuses_as_the_class_does(name: Any) -> None:
    for value in BAD[name]:
        assert refusal_of(a_payment, **{name: value}).field == camel(name)


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=-1), timedelta.max, None, 3600])
def test_a_window_is_a_positive_time(ttl: Any) -> None:
    assert refusal_of(a_payment, ttl=ttl).field == "expiresAt"


def test_a_charge_does_not_show_its_payer_or_its_credentials() -> None:
    payer: dict[str, Any] = {
        "customer_email": "ada@example.com",
        "customer_name": "Ada",
        "customer_phone": "+2348012345678",
    }
    shown = repr(replace(a_charge, credentials={"secret": "sk_live_1"}, **payer))
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
WHOLE = {
    "payment": a_payment(),
    "transition": a_transition(a_payment())[1],
    "key": a_key(),
    "gateway": a_gateway(),
    "choice": a_choice(a_gateway()),
    "business": a_business(),
    "endpoint": an_endpoint(),
    "event": an_event(),
    "delivery": a_delivery(),
    "attempt": an_attempt(state=AttemptState.HANDED_OFF),
    "hand-off": HandOff(HandOffKind.REDIRECT, "https://pay.example/1"),
    "charge": (a_charge := Charge(REFERENCE, 150_000, "NGN", Environment.LIVE, {}, "https://pay.example/1")),
    "report": a_report(),
    "anomaly": AN_ANOMALY,
}


@pytest.mark.parametrize("kind", WHOLE)
@given(data=st.data())
def test_a_hostile_value_is_taken_or_refused_with_a_field_and_never_an_accident(kind: Any, data: Any) -> None:
    whole: Any = WHOLE[kind]
    name = data.draw(st.sampled_from([field.name for field in fields(whole)]))
    refused = outcome_of(replace, whole, **{name: data.draw(hostile)})
    assert refused is None or refused.field is not None


@pytest.mark.parametrize(
    ("whole", "name", "value", "field"),
    [
        (a_key(), "name", "x", "name"),
        (a_key(), "name", "x" * 101, "name"),
        (a_key(), "public_key", "spk_live_" + "0" * 32, "publicKey"),
        (a_key(), "public_key", "ssk_sand_" + "0" * 48, "publicKey"),
        (a_key(), "secret_hash", b"raw", "secretHash"),
        (a_key(), "secret_last4", "whole secret", "secretLast4"),
        (a_key(), "revoked_at", NOW, "revokedAt"),
        (a_key(), "status", ApiKeyStatus.REVOKED, "revokedAt"),
        (a_gateway(), "slug", "A", "slug"),
        (a_gateway(), "slug", "a" * 51, "slug"),
        (a_gateway(), "name", None, "name"),
        (a_gateway(), "name", "x", "name"),
        (a_gateway(), "name", "x" * 101, "name"),
        (a_gateway(), "description", "x" * 1001, "description"),
        (a_gateway(), "display_order", -1, "displayOrder"),
        (a_gateway(), "display_order", True, "displayOrder"),
        (a_gateway(), "display_order", 2**31, "displayOrder"),
        (a_gateway(), "credentials", {"secret": "plain"}, "credentials"),
        (a_gateway(), "status", GatewayStatus.DRAINING, "drainStartedAt"),
        (a_gateway(status=GatewayStatus.DRAINING), "drain_ends_at", None, "drainEndsAt"),
        (the_built_in(), "status", GatewayStatus.DISABLED, "status"),
        (a_choice(a_gateway()), "display_name", "x" * 51, "displayName"),
        (a_choice(a_gateway()), "display_order", -1, "displayOrder"),
        (a_choice(a_gateway(), is_default=True), "is_enabled", False, "isDefault"),
        (a_business(), "name", "", "name"),
        (a_business(), "name", " padded ", "name"),
        (a_business(), "name", "two\nlines", "name"),
        (a_business(), "name", "x" * 201, "name"),
        (a_endpoint := an_endpoint(), "url", "ftp://shop.example/", "url"),
        (an_endpoint(environment=Environment.LIVE), "url", "http://shop.example/", "url"),
        (a_endpoint, "description", "x" * 201, "description"),
        (a_endpoint, "events", ("payment.unknown",), "events"),
        (a_endpoint, "events", ("payment.failed", "payment.pending"), "events"),
        (a_endpoint, "events", ["payment.failed"], "events"),
        (a_endpoint, "successful", -1, "successful"),
        (a_endpoint, "previous_secret", b"sealed", "previousSecretExpiresAt"),
        (an_event(), "sequence", 0, "sequence"),
        (an_event(), "body", "text", "data"),
        *((a_payment(final), "settled_at", None, "settledAt") for final in (Status.SUCCESS, Status.FAILED)),
        (a_transition(a_payment())[1], "to_status", Status.INITIATED, "toStatus"),
        (a_transition(a_payment())[1], "from_status", Status.FAILED, "toStatus"),
        (a_transition(a_payment())[1], "actor", "", "actor"),
        (an_attempt(), "reference", "nonsense", "reference"),
        (an_attempt(), "number", 0, "number"),
        (an_attempt(), "number", 2, "providerReference"),
        (an_attempt(), "gateway", "", "gateway"),
        (an_attempt(), "token", "", "token"),
        (an_attempt(), "state", AttemptState.HANDED_OFF, "handOff"),
        (an_attempt(state=AttemptState.HANDED_OFF), "hand_off", None, "handOff"),
        (an_attempt(), "lease_until", NAIVE, "leaseUntil"),
        (HandOff(HandOffKind.SDK, "x"), "checkout_url", "", "checkoutUrl"),
        (HandOff(HandOffKind.SDK, "x"), "checkout_url", "x" * 8193, "checkoutUrl"),
        (a_charge, "amount", 1.5, "amount"),
        (a_charge, "amount", -5, "amount"),
        (a_charge, "currency", "USD", "currency"),
        (a_charge, "reference", "nonsense", "reference"),
        (a_report(), "amounts", frozenset({1.5}), "amounts"),
        (a_report(), "amounts", {150_000}, "amounts"),
        (a_report(), "outcome", "SUCCEEDED", "outcome"),
        (AN_ANOMALY, "status", AnomalyStatus.CLOSED, "closedAt"),
        (AN_ANOMALY, "reference", "nonsense", "reference"),
    ],
)
def test_what_cannot_be_is_refused_by_field(whole: Any, name: Any, value: Any, field: Any) -> None:
    assert refusal_of(replace, whole, **{name: value}).field == field


def test_a_delivery_goes_to_one_address_and_is_scheduled_while_it_is_pending() -> None:
    assert refusal_of(a_delivery, endpoint_id=None).field == "url"
    assert refusal_of(a_delivery, url="https://shop.example/").field == "url"
    assert refusal_of(replace, a_delivery(), next_attempt_at=None).field == "nextAttemptAt"
    assert refusal_of(replace, a_delivery(), status=DeliveryStatus.DELIVERED).field == "nextAttemptAt"


def test_a_key_is_generated_from_enough_randomness_alone() -> None:
    for secret_hex, public_hex, field in (("00", "0" * 32, "secretKey"), ("0" * 48, "00", "publicKey")):
        refusal = refusal_of(
            ApiKey.generate,
            id="key_1",
            business_id="biz_1",
            environment=Environment.LIVE,
            name="Server",
            secret_hex=secret_hex,
            public_hex=public_hex,
            now=NOW,
        )
        assert refusal.field == field


@pytest.mark.parametrize("slug", ["provider_a", "", "a", "a--b", "a\n", "a" * 51])
def test_an_administrators_slug_has_hyphens_alone(slug: Any) -> None:
    assert refusal_of(Gateway.create, id="gw_1", slug=slug, name="Acme", now=NOW).field == "slug"


@pytest.mark.parametrize(
    ("credentials", "field"),
    [
        ({}, "credentials"),
        ({str(n): "x" for n in range(51)}, "credentials"),
        ({"key": "x" * 4001}, "credentials.key"),
        ({"key": 7}, "credentials.key"),
        ({7: "x"}, "credentials"),
        ("text", "credentials"),
    ],
)
def test_credentials_are_one_to_fifty_texts(credentials: Any, field: Any) -> None:
    assert refusal_of(parse_credentials, credentials).field == field


def test_credentials_may_reach_each_limit() -> None:
    most = {str(n): "x" * 4000 for n in range(50)}
    assert parse_credentials(most) is most


@pytest.mark.parametrize("order", [[], ["gw_1", "gw_1"], [f"gw_{n}" for n in range(101)]])
def test_an_order_names_one_to_a_hundred_gateways_once(order: Any) -> None:
    assert refusal_of(parse_order, order).field == "order"


@pytest.mark.parametrize("subject", ["", " ", "x" * 256, "a\x00b", "two\nlines", None])
def test_a_members_subject_is_one_line(subject: Any) -> None:
    assert refusal_of(check_subject, subject, "sub").field == "sub"


def test_a_stored_payment_is_read_and_settled_whatever_rule_came_later() -> None:
    """Money must not stop because of a rule that its payment never met."""
    old = revised(a_payment(Status.PENDING), customer_email="once allowed", callback_url="once:allowed")
    stored = restored(Payment, vars(old))
    assert stored == old
    assert stored.move(Trigger.SUCCEED, NOW, actor="event")[0].status is Status.SUCCESS
    assert revised(a_payment(), customer_email="once allowed").as_of(NOW + timedelta(days=1)).status is Status.FAILED
