"""A business's overview over HTTP: payments and money beside the days before, by gateway, and what LIVE still lacks."""

from datetime import datetime, timedelta

import pytest

from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from tests.support.console_browser import Browser, base_of, text_of
from tests.support.http_world import Api, Shop

DAY = timedelta(days=1)
BEGIN = Statement(
    "INSERT INTO payments (reference, business_id, environment, amount, currency, status, sequence, created_at, "
    "updated_at, expires_at) SELECT 'PAY-20250131-' || :letters || lpad(CAST(n AS text), 4, '0'), :business, "
    "'SANDBOX', :amount, 'NGN', 'INITIATED', 0, :at, :at, :at FROM generate_series(1, CAST(:many AS int)) n"
)
END = Statement(
    "UPDATE payments SET status = :status, gateway = :gateway, settled_at = :at "
    "WHERE business_id = :business AND status = 'INITIATED'"
)


@pytest.fixture
def api(own_api: Api) -> Api:
    return own_api


async def ended(store: PostgresStore, business: str, letters: str, at: datetime, amount: int, **fields: object) -> None:
    """Payments that were made then, paid through Paystack unless `fields` say otherwise; `letters` begin the last part
    of their references."""
    wanted = {"status": "SUCCESS", "gateway": "provider_a", "many": 1, **fields}
    await store.pool.run(BEGIN, business=business, letters=letters, at=at, amount=amount, many=wanted.pop("many"))
    await store.pool.run(END, business=business, at=at, **wanted)


async def test_the_overview_shows_payments_beside_the_days_before(api: Api, store: PostgresStore, shop: Shop) -> None:
    now = api.services.clock.now()  # whatever day it is once the page is shown, today or the next
    await ended(store, shop.business.id, "AA", now - DAY, 300_000)
    await ended(store, shop.business.id, "AB", now - DAY, 100_000, gateway="provider_b")
    await ended(store, shop.business.id, "AC", now - 5 * DAY, 50_000, status="FAILED")
    await ended(store, shop.business.id, "AD", now - 8 * DAY, 70_000, many=2)
    text = text_of((await (await Browser(api).sign_in(shop)).open(base_of(shop) + "?days=7")).text)
    for said in (
        "Payments 3 before: 2",
        "Success rate 66.7 % before: 100.0 %",
        "Paid ₦4,000.00 before: ₦1,400.00",
        "3 payments in 7 days, 2 in the 7 days before.",
        "₦4,000.00 in 7 days, ₦1,400.00 in the 7 days before.",
        "Paystack 1 ₦3,000.00 75.0 %",
        "Payaza 1 ₦1,000.00 25.0 %",
        "failed 1 ₦500.00",
    ):
        assert said in text, said
    # Both plots have the line of the days before; a status that no payment has stands nowhere.
    assert text.count("the 7 days before ") == 2
    assert "reversed" not in text
    # Two days and five without payments: three in a row between them, one at each end.
    assert f"{(now - 4 * DAY).date()} to {(now - 2 * DAY).date()} No payments" in text
    assert text.count("No payments") == 3
