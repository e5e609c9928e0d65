"""What an audit entry shows: fields that differ, and nothing that is sealed or hidden."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from payagg_testing.builders import NOW, a_gateway, an_endpoint

from payagg.domain.audit import changes_of
from payagg.domain.gateway import GatewayStatus


def test_only_named_fields_that_differ_are_shown_in_json_form() -> None:
    before = a_gateway("acme", display_order=1)
    after = replace(before.disable(NOW), name="Acme", display_order=2)
    assert changes_of(before, after, "status", "drain_ends_at", "display_order", "slug") == {
        "status": {"before": "ACTIVE", "after": "DRAINING"},
        "drainEndsAt": {"before": None, "after": "2025-01-31T12:30:00Z"},
        "displayOrder": {"before": 1, "after": 2},
    }
    assert changes_of(after, after, "status", "name") == {}
    here = datetime(2025, 1, 31, 14, 0, tzinfo=timezone(timedelta(hours=1)))
    local = a_gateway("acme", GatewayStatus.DRAINING, drain_ends_at=here)
    assert changes_of(None, local, "drain_ends_at")["drainEndsAt"]["after"] == "2025-01-31T13:00:00Z"
    # A new object differs from nothing, and nothing from an old one.
    endpoint = an_endpoint(events=("payment.success",))
    assert changes_of(None, endpoint, "events", "description", "is_active") == {
        "events": {"before": None, "after": ["payment.success"]},
        "isActive": {"before": None, "after": True},
    }
    assert changes_of(endpoint, None, "is_active") == {"isActive": {"before": True, "after": None}}


def test_a_query_in_an_address_is_hidden_and_its_change_is_shown() -> None:
    before = an_endpoint(url="https://shop.example/hooks?token=one")
    after = an_endpoint(url="https://shop.example/hooks?token=two")
    changes = changes_of(before, after, "url")
    assert changes == {"url": dict.fromkeys(("before", "after"), "https://shop.example/hooks?[hidden]")}
    plain = an_endpoint(url="https://shop.example/hooks")
    assert changes_of(None, plain, "url")["url"]["after"] == "https://shop.example/hooks"


@pytest.mark.rule("audit.5")
def test_a_sealed_blob_is_refused_even_when_named() -> None:
    with pytest.raises(TypeError, match="credentials"):
        changes_of(None, a_gateway(credentials=b"sealed"), "credentials")
