"""What an audit entry shows: fields that differ, and nothing that is sealed or hidden."""

from datetime import datetime, timedelta, timezone

import pytest
from payagg_testing.builders import a_gateway, an_endpoint

from payagg.domain.audit import changes_of
from payagg.domain.gateway import GatewayStatus


def test_an_instant_is_shown_in_utc() -> None:
    here = datetime(2025, 1, 31, 14, 0, tzinfo=timezone(timedelta(hours=1)))
    local = a_gateway("acme", GatewayStatus.DRAINING, drain_ends_at=here)
    assert changes_of(None, local, "drain_ends_at")["drainEndsAt"]["after"] == "2025-01-31T13:00:00Z"


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
