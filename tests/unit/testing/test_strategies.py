"""The shipped strategies: good values are taken, hostile ones refused, and entities are whole."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from payagg_testing import entities, hostile, strategies
from payagg_testing.builders import NOW, REFERENCE

from payagg.domain.api_key import NAME_MAX, NAME_MIN, parse_secret
from payagg.domain.checks import check_id, check_text
from payagg.domain.errors import Refusal
from payagg.domain.gateway import parse_credentials, parse_order
from payagg.domain.payment import Payment, parse_metadata
from payagg.domain.values import Environment, parse_email, parse_reference, parse_slug, parse_url
from payagg.domain.webhook import parse_events


def initiated(**fields: Any) -> Payment:
    facts = {"reference": REFERENCE, "business_id": "biz_1", "environment": Environment.SANDBOX, "amount": 5_000}
    return Payment.initiate(**{**facts, "now": NOW, **fields})


# Good strategy, hostile strategy, and what takes the one and refuses the other.
VALUES: dict[str, tuple[SearchStrategy[Any], SearchStrategy[Any], Callable[[Any], Any]]] = {
    "amounts": (strategies.amounts, hostile.amounts, lambda value: initiated(amount=value)),
    "references": (strategies.references(), hostile.references(), parse_reference),
    "slugs": (strategies.slugs, hostile.slugs, parse_slug),
    "emails": (strategies.emails, hostile.emails, lambda value: parse_email(value, "customerEmail")),
    "urls": (strategies.urls, hostile.urls, lambda value: parse_url(value, "callbackUrl")),
    "metadata": (strategies.metadata, hostile.metadata, parse_metadata),
    "key secrets": (strategies.key_secrets(), hostile.key_secrets, parse_secret),
    "idempotency keys": (
        entities.idempotency_keys,
        hostile.idempotency_keys,
        lambda value: initiated(idempotency_key=value),
    ),
    "credentials": (entities.credentials, hostile.credentials, parse_credentials),
    "events": (entities.event_lists, hostile.events, parse_events),
    "orders": (st.lists(st.sampled_from(["gw_1", "gw_2"]), unique=True, min_size=1), hostile.orders, parse_order),
    "ids": (st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True), hostile.ids, lambda value: check_id(value, "id")),
    "names": (
        entities.names,
        hostile.texts(NAME_MAX, NAME_MIN),
        lambda value: check_text(value, "name", NAME_MAX, NAME_MIN),
    ),
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_good_value_is_taken_and_a_hostile_one_refused(kind: str) -> None:
    good, bad, take = VALUES[kind]

    @given(good, bad)
    @settings(max_examples=50)
    def told_apart(value: Any, hostile_value: Any) -> None:
        take(value)
        with pytest.raises(Refusal):
            take(hostile_value)

    told_apart()
