"""A provider got another slug while payments of the old one exist: nothing is lost, and no answer is a 500."""

import pytest
from payagg_testing.builders import MINUTE
from structlog.testing import capture_logs

from payagg.application.ports.outside import Unavailable
from payagg.domain.errors import ErrorCode
from payagg.domain.payment import Status
from payagg.domain.report import Outcome
from payagg.entrypoints.process.server import warn_of_gaps
from tests.support.memory_shop import MemoryShop
from tests.support.refusals import refused_with


def lose(shop: MemoryShop, slug: str = "provider_a") -> None:
    del shop.services.payment_options.providers[slug]  # type: ignore[attr-defined]


async def warned(shop: MemoryShop) -> list[list[str]]:
    """The gateways named by the warning of a server that starts."""
    with capture_logs() as lines:
        await warn_of_gaps(shop.services)
    return [line["gateways"] for line in lines if "nobody asks" in line["event"]]


async def test_verify_says_so_and_the_charge_is_asked_about_once_the_slug_is_back(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    before = await shop.attempts(reference)
    lose(shop)
    assert await refused_with(shop.verification.verify(reference)) == (ErrorCode.GATEWAY_NOT_AVAILABLE, None)
    shop.clock.move(2 * MINUTE)
    assert await shop.reconciler.run_once() == 0
    [attempt] = before
    assert await shop.reconciler.oldest_unasked() == attempt.next_ask_at, "the metric and the alert tell"
    assert (await shop.process(reference)).gateway == "provider_a", "the payer may still be at its page"
    assert await shop.attempts(reference) == before
    assert await warned(shop) == [["provider_a"]]
    shop.services.payment_options.providers["provider_a"] = shop.a  # type: ignore[index]
    shop.says(Outcome.SUCCEEDED)
    assert await shop.reconciler.run_once() == 1
    assert (await shop.payment(reference)).status is Status.SUCCESS
    lose(shop)
    assert await warned(shop) == []
    shop.clock.move(120 * MINUTE)
    assert (await shop.verification.verify(reference)).status is Status.SUCCESS


async def test_a_server_starts_though_the_database_is_away(shop: MemoryShop, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise Unavailable("the database did not answer in time")

    monkeypatch.setattr(shop.store, "begin", gone)
    with capture_logs() as lines:
        await warn_of_gaps(shop.services)
    assert [line["log_level"] for line in lines] == ["warning"]
