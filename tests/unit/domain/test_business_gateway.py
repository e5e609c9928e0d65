"""What a business may change, and what its payers are offered."""

import pytest
from payagg_testing.builders import NOW, a_choice, a_gateway

from payagg.domain.business_gateway import parse_order
from payagg.domain.errors import ErrorCode
from tests.support.refusals import refusal_of


@pytest.mark.rule("options.3")
def test_only_an_enabled_gateway_is_the_default_and_nothing_brings_the_flag_back() -> None:
    off = a_choice(a_gateway(), is_default=True).with_settings(a_gateway(), NOW, is_enabled=False)
    assert (off.is_enabled, off.is_default) == (False, False)
    assert not off.with_settings(a_gateway(), NOW, is_enabled=True).is_default
    on = a_choice(a_gateway())
    assert refusal_of(off.with_settings, a_gateway(), NOW, is_default=True).field == "isDefault"
    assert refusal_of(on.with_settings, a_gateway(), NOW, is_enabled=False, is_default=True).field == "isDefault"
    assert off.with_settings(a_gateway(), NOW, is_enabled=True, is_default=True).is_default


@pytest.mark.rule("limits.17")
def test_an_order_names_one_to_a_hundred_gateways_once() -> None:
    most = [f"gw_{number}" for number in range(100)]
    assert parse_order(most) == most
    for order in ([], [*most, "gw_one_more"], ["gw_1", "gw_2", "gw_1"]):
        refused = refusal_of(parse_order, order)
        assert (refused.code, refused.field) == (ErrorCode.VALIDATION_ERROR, "order")
