"""Every limit and time of the domain as the interface and the decisions have it, written down by hand: a rule is tested
at its limit by the limit's own name, so nothing else would notice another number."""

from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from payagg.domain import api_key, attempt, business, checks, gateway, health, payment, simulator, values, webhook
from payagg.domain.attempt import HandOff, HandOffKind
from payagg.domain.errors import Refusal
from payagg.domain.payment import Status
from payagg.domain.signing import secret_key
from payagg.testing.builders import (
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
)

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
LIMITS: list[tuple[ModuleType | type, dict[str, Any]]] = [
    (
        payment,
        {
            "CHECKOUT_TTL": HOUR,
            "CUSTOMER_NAME_MAX": 200,
            "CUSTOMER_PHONE_MAX": 32,
            "METADATA_KEYS_MAX": 50,
            "METADATA_KEY_MAX": 100,
            "METADATA_DEPTH_MAX": 5,
            "METADATA_BYTES_MAX": 16_384,
            "IDEMPOTENCY_KEY_MAX": 255,
            "FINGERPRINT_BYTES": 32,
            "REASON_MAX": 4_096,
            "ACTOR_MAX": 300,
            "SEQUENCE_MAX": 32_767,
        },
    ),
    (
        attempt,
        {
            "ATTEMPTS_MAX": 20,
            "CHECKOUT_URL_MAX": 8_192,
            "TOKEN_MAX": 64,
            "LEASE": 20 * SECOND,
            "VERIFY_EVERY": 2 * SECOND,
            "ASK_JITTER": 0.1,
            "ASK_SPREAD_MAX": 25 * MINUTE,
            "FIRST_ASK_MAX": 66 * SECOND,
        },
    ),
    (
        gateway,
        {
            "DRAIN_WINDOW": 30 * MINUTE,
            "NAME_MIN": 2,
            "NAME_MAX": 100,
            "DESCRIPTION_MAX": 1_000,
            "DISPLAY_NAME_MAX": 50,
            "ORDER_MAX": 2_147_483_647,
            "REORDER_MAX": 100,
            "LOGO_PATH_MAX": 200,
            "CREDENTIALS_MAX": 50,
            "CREDENTIAL_VALUE_MAX": 4_000,
            "OVERLAP": 24 * HOUR,
            "REPLACED_MAX": 20,
            "SETTLING_MAX": 72 * HOUR,
            "LOGO_MAX_BYTES": 2_097_152,
            "LOGO_MAX_SIDE": 4_096,
        },
    ),
    (business, {"BUSINESS_NAME_MAX": 200, "SUBJECT_MAX": 255}),
    (
        health.Health,
        {"FAULTS_MAX": 5, "FIRST_PAUSE": 30 * SECOND, "LONGEST_PAUSE": 10 * MINUTE, "PROBE": 20 * SECOND},
    ),
    (
        webhook,
        {
            "ACTIVE_ENDPOINTS_MAX": 5,
            "STORED_ENDPOINTS_MAX": 20,
            "DESCRIPTION_MAX": 200,
            "EVENT_NAME_MAX": 50,
            "COUNT_MAX": 9_223_372_036_854_775_807,
            "EVENT_NAMES_MAX": 50,
            "SECRET_BYTES": 32,
            "OLD_SECRET_SIGNS_FOR": 24 * HOUR,
            "TEST_EVERY": 5 * SECOND,
            "TESTS_A_MINUTE": 20,
            "TESTS_AT_ONCE": 3,
            "DEACTIVATE_AFTER": 120 * HOUR,
            "CONCURRENCY_START": 5,
            "CONCURRENCY_MAX": 50,
            "ANSWERS_WELL": SECOND,
            "RETENTION": 720 * HOUR,
            "JITTER": 0.2,
            "ALONE_FROM": 2,
        },
    ),
    (
        values,
        {
            "MIN_AMOUNT": 100,
            "MAX_AMOUNT": 9_007_199_254_740_991,
            "REFERENCE_SUFFIXES": 2_176_782_336,
            "REFERENCE_LENGTH": 19,
            "SLUG_MIN": 2,
            "SLUG_MAX": 50,
            "URL_MAX": 2_048,
            "EMAIL_MAX": 254,
            "LOCAL_MAX": 64,
            "HOST_MAX": 253,
            "LABEL_MAX": 63,
        },
    ),
    (checks, {"ID_MAX": 64}),
    (
        api_key,
        {
            "ACTIVE_KEYS_MAX": 5,
            "REVOKED_KEYS_LISTED": 20,
            "NAME_MIN": 2,
            "NAME_MAX": 100,
            "SECRET_BYTES": 24,
            "PUBLIC_BYTES": 16,
            "LAST_USED_GRAIN": MINUTE,
        },
    ),
    (simulator, {"SLOW": 30 * SECOND}),
]


@pytest.mark.parametrize(("place", "limits"), LIMITS, ids=lambda value: getattr(value, "__name__", ""))
def test_each_limit_is_the_decided_one(place: ModuleType | type, limits: dict[str, Any]) -> None:
    assert {name: getattr(place, name) for name in limits} == limits


# The fewest and the most characters of a text, and the lowest and highest of a number, by whole thing and field.
EDGES: list[tuple[Any, dict[str, tuple[int, int]]]] = [
    (a_payment(), {"idempotency_key": (1, 255), "customer_name": (0, 200), "customer_phone": (0, 32)}),
    (a_payment(), {"amount": (100, 9_007_199_254_740_991), "sequence": (0, 32_767)}),
    (a_payment(Status.FAILED), {"failure_reason": (0, 4_096)}),
    (a_transition(a_payment())[1], {"sequence": (1, 32_767), "actor": (1, 300), "reason": (0, 4_096)}),
    (an_attempt(), {"token": (1, 64), "asks": (0, 32_767)}),
    (HandOff(HandOffKind.SDK, "x"), {"checkout_url": (1, 8_192)}),
    (a_report(), {"provider_reference": (0, 4_096), "word": (0, 4_096), "currency": (0, 4_096), "reason": (0, 4_096)}),
    (an_endpoint(), {"description": (0, 200), "secret_last4": (4, 4), "concurrency": (1, 50)}),
    (an_endpoint(), {"successful": (0, 9_223_372_036_854_775_807), "failed": (0, 9_223_372_036_854_775_807)}),
    (an_event(), {"sequence": (1, 32_767), "type": (1, 50)}),
    (a_delivery(), {"sequence": (1, 32_767), "attempts": (0, 32_767), "lost_tries": (0, 32_767)}),
    (a_key(), {"name": (2, 100)}),
    (a_gateway(), {"name": (2, 100), "description": (0, 1_000), "logo_path": (1, 200)}),
    (a_gateway(), {"display_order": (0, 2_147_483_647)}),
    (a_choice(a_gateway(), display_order=1), {"display_name": (0, 50), "display_order": (0, 2_147_483_647)}),
    (a_business(), {"name": (1, 200)}),
]


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
            with pytest.raises(Refusal) as refused:
                replace(whole, **{name: size if is_number else "x" * size})
            assert refused.value.field is not None
            assert refused.value.field.replace("_", "").lower() == name.replace("_", "")


@pytest.mark.parametrize("text", ["whsec_!!!!", "whsec_c2VjcmV0 ", "whsec_c2VjcmV"])
def test_a_secret_that_is_not_base64_is_no_key(text: str) -> None:
    with pytest.raises(ValueError, match=r"base64|padding|characters"):
        secret_key(text)
