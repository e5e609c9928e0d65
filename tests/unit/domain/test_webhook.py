"""Merchant webhooks: who receives what, and with which secrets."""

from datetime import timedelta

import pytest
from payagg_testing.builders import NOW, SECOND, an_endpoint

from payagg.domain.errors import ErrorCode
from payagg.domain.payment import PAYMENT, Status
from payagg.domain.values import Environment
from payagg.domain.webhook import EVENT_FOR, EventType, Subscriber, parse_endpoint_url, parse_events
from tests.support.refusals import refusal_of


def test_every_status_a_payment_can_move_to_has_its_event() -> None:
    assert set(EVENT_FOR) == set(PAYMENT.states) - {Status.INITIATED}
    ends = ("pending", "success", "failed", "reversed")
    assert {kind.value for kind in EVENT_FOR.values()} == {f"payment.{end}" for end in ends}


@pytest.mark.rule("webhooks.1")
def test_an_active_endpoint_receives_what_it_lists_or_every_event_of_its_environment() -> None:
    listing = Subscriber("whe_1", Environment.SANDBOX, ("payment.success",))
    assert [kind for kind in EventType if listing.receives(kind, Environment.SANDBOX)] == [EventType.PAYMENT_SUCCESS]
    every = Subscriber("whe_1", Environment.SANDBOX, ())
    assert all(every.receives(kind, Environment.SANDBOX) for kind in EventType)
    assert not any(every.receives(kind, Environment.LIVE) for kind in EventType)


def test_the_old_secret_signs_beside_the_new_one_for_a_day() -> None:
    rotated = an_endpoint(secret=b"old").rotate(b"new", "wxyz", NOW)
    day = timedelta(hours=24)
    assert rotated.signing_secrets(NOW) == (b"new", b"old")
    assert rotated.signing_secrets(NOW + day - SECOND) == (b"new", b"old")
    assert rotated.signing_secrets(NOW + day) == (b"new",)
    assert (rotated.secret_last4, rotated.updated_at) == ("wxyz", NOW)
    assert rotated.rotate(b"third", "3333", NOW).signing_secrets(NOW) == (b"third", b"new")
    for part in ({"previous_secret": b"old"}, {"previous_secret_expires_at": NOW}):
        refusal_of(an_endpoint, **part)


def test_events_are_known_names_kept_once_in_the_catalogues_order() -> None:
    given = ["payment.failed", "payment.pending", "payment.failed"]
    assert parse_events(given) == ("payment.pending", "payment.failed")
    assert (parse_events([]), parse_events(["payment.success"] * 50)) == ((), ("payment.success",))
    unknown = ("payment.repaid", "webhook.test", "PAYMENT.SUCCESS", "", "payment.success ")
    for wrong in (*(["payment.success", name] for name in unknown), "payment.success", ["payment.success"] * 51):
        refused = refusal_of(parse_events, wrong)
        assert (refused.code, refused.field) == (ErrorCode.VALIDATION_ERROR, "events")


@pytest.mark.rule("webhooks.2")
def test_only_live_endpoints_must_be_https() -> None:
    assert parse_endpoint_url("http://shop.example/", Environment.SANDBOX)
    assert parse_endpoint_url("https://shop.example/", Environment.LIVE)
    assert refusal_of(parse_endpoint_url, "http://shop.example/", Environment.LIVE).field == "url"
