"""Gateways: the built-in's protection, and how long secrets serve."""

from dataclasses import replace
from datetime import timedelta

import pytest
from payagg_testing.builders import LIVE, NOW, SANDBOX, TICK, a_choice, a_gateway, the_built_in

from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import OVERLAP, GatewayStatus, ReplacedSecret, after_rotation, simulator_allowed
from payagg.domain.values import Environment
from tests.support.refusals import refusal_of


@pytest.mark.rule("gateways.5", "options.2")
def test_the_built_in_is_never_disabled_deleted_or_reordered_and_a_business_may_do_the_rest() -> None:
    gateway = the_built_in()
    for end in (gateway.disable, gateway.delete):
        assert refusal_of(end, NOW).code is ErrorCode.GATEWAY_BUILT_IN
    choice = a_choice(gateway)
    assert refusal_of(choice.with_settings, gateway, NOW, is_enabled=False).field == "isEnabled"
    assert refusal_of(choice.with_settings, gateway, NOW, display_order=0).field == "displayOrder"
    after = choice.with_settings(gateway, NOW, is_enabled=True, is_default=True, display_name="Us", rename=True)
    assert (after.is_default, after.display_name) == (True, "Us")


@pytest.mark.rule("checkout.7")
def test_the_simulator_serves_sandbox_alone() -> None:
    assert simulator_allowed(Environment.SANDBOX)
    assert not simulator_allowed(Environment.LIVE)


OLD, NEW = {"liveWebhookSecret": "old"}, {"liveWebhookSecret": "new"}


def test_only_a_signing_secret_that_changed_is_kept_and_proves_events_for_its_own_day() -> None:
    assert after_rotation((), {LIVE: OLD}, {LIVE: OLD}, NOW) == ()
    for after in (NEW, {}):
        (kept,) = after_rotation((), {LIVE: OLD, SANDBOX: {}}, {LIVE: after, SANDBOX: {}}, NOW)
        assert kept == ReplacedSecret(LIVE, OLD, NOW + timedelta(hours=24))
        assert "old" not in repr(kept)
    first, third = after_rotation((), {LIVE: OLD}, {LIVE: NEW}, NOW), {"liveWebhookSecret": "third"}
    back = after_rotation(first, {LIVE: NEW}, {LIVE: OLD}, NOW + TICK)
    assert back == (ReplacedSecret(LIVE, NEW, NOW + TICK + OVERLAP),)
    within = after_rotation(first, {LIVE: NEW}, {LIVE: third}, NOW + OVERLAP - TICK)
    assert [one.credentials for one in within] == [NEW, OLD]
    assert [one.credentials for one in after_rotation(first, {LIVE: NEW}, {LIVE: third}, NOW + OVERLAP)] == [NEW]


def test_what_signs_the_sandbox_proves_no_event_of_real_money_though_it_once_did() -> None:
    misplaced, right = {"liveSigningSecret": "of the sandbox"}, {"liveSigningSecret": "of real money"}
    sandbox = {"sandboxSigningSecret": "of the sandbox"}
    assert after_rotation((), {LIVE: misplaced}, {LIVE: right, SANDBOX: sandbox}, NOW) == ()
    first = after_rotation((), {LIVE: misplaced}, {LIVE: right}, NOW)
    assert after_rotation(first, {LIVE: right}, {LIVE: right, SANDBOX: sandbox}, NOW) == ()


def test_the_newest_twenty_replaced_secrets_are_kept() -> None:
    kept: tuple[ReplacedSecret, ...] = ()
    for number in range(25):
        kept = after_rotation(kept, {LIVE: {"s": str(number)}}, {LIVE: {"s": str(number + 1)}}, NOW)
    assert [one.credentials["s"] for one in kept] == [str(number) for number in range(24, 4, -1)]


def test_a_deleted_gateway_keeps_its_secrets_for_an_open_attempt_72_hours_at_most() -> None:
    gateway = a_gateway(credentials=b"1", replaced_secrets=b"2", replaced_secrets_until=NOW + timedelta(days=9))
    deleted, most = replace(gateway, status=GatewayStatus.DISABLED).delete(NOW), timedelta(hours=72)
    for after, is_open, is_wiped in (
        (0 * TICK, False, True),
        (0 * TICK, True, False),
        (most - TICK, True, False),
        (most, True, True),
    ):
        wiped = deleted.without_secrets(NOW + after, is_open)
        assert (wiped.credentials is None, wiped.replaced_secrets, wiped.updated_at) == (is_wiped, b"2", NOW)
