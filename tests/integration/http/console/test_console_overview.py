"""The overview of a business in the console, and what the console exports, byte for byte as the API."""

import asyncio
import re
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from payagg_testing.builders import NOW

import payagg.application.reports.search as module
from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from tests.integration.http.test_reconciliations import FIRST, SUPPORT, with_two
from tests.support.console_browser import Browser, base_of, text_of
from tests.support.http_world import Api, Shop, admin_token, bearer

MANY = 5_000  # fifty pages of an export
PAYMENTS = Statement(
    "INSERT INTO payments (reference, business_id, environment, amount, currency, status, customer_email, "
    "customer_name, metadata, sequence, created_at, updated_at, expires_at) "
    "SELECT 'PAY-20250131-' || lpad(CAST(n AS text), 6, '0'), :business, 'SANDBOX', 150000 + n, 'NGN', 'INITIATED', "
    "'payer' || n || '@example.com', '=Ọla, \"' || n, CAST('{\"order\": 7}' AS jsonb), 0, "
    "CAST(:at AS timestamptz) + n * interval '1 second', :at, :at FROM generate_series(1, :many) n"
)


@pytest.fixture
def api(own_api: Api) -> Api:
    return own_api


async def fill(store: PostgresStore, shop: Shop, many: int = MANY) -> None:
    await store.pool.run(PAYMENTS, business=shop.business.id, at=NOW, many=many)


@pytest.mark.rule("reports.6")
async def test_the_console_exports_every_page_byte_for_byte_as_the_api(api: Api, store: PostgresStore) -> None:
    shop = await api.open_shop()
    await fill(store, shop)
    browser = await (await Browser(api).sign_in(shop)).sign_in_as_admin()
    for path, query, headers, address in (
        (f"{shop.path}/payments", {"environment": "SANDBOX"}, shop.as_owner, base_of(shop)),
        ("/admin/payments", {}, bearer(admin_token()), "/console/admin"),
    ):
        of_api = await api.client.get(f"{path}/export", params=query, headers=headers)
        shown = await browser.open(f"{address}/payments/export?status=&from=&to=")
        assert (of_api.status_code, shown.status_code) == (200, 200)
        assert of_api.content.count(b"\r\n") == MANY + 1
        assert shown.content == of_api.content
        for name in ("content-type", "content-disposition"):
            assert shown.headers[name] == of_api.headers[name]


@pytest.fixture
def pages_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with each page that an export reads; pages are of one payment."""
    read: list[int] = []
    page = module.PaymentSearch._page

    async def counting(*args: Any, **kwargs: Any) -> Any:
        read.append(1)
        return await page(*args, **kwargs)

    monkeypatch.setattr(module, "EXPORT_PAGE", 1)
    monkeypatch.setattr(module.PaymentSearch, "_page", counting)
    return read


async def test_a_head_request_reads_one_page_of_an_export(
    api: Api, store: PostgresStore, pages_read: list[int], shop: Shop
) -> None:
    await fill(store, shop, 3)
    answer = await (await Browser(api).sign_in(shop)).client.head(f"{base_of(shop)}/payments/export")
    assert (answer.status_code, answer.content, len(pages_read)) == (200, b"", 1)
    answer = await api.client.head("/payments/export", headers=shop.as_sandbox)
    assert (answer.status_code, answer.content, len(pages_read)) == (200, b"", 2)


@pytest.mark.rule("reports.7")
@pytest.mark.parametrize(("where", "parts"), [("console", 1), ("api", 0)], ids=["while he reads", "at once"])
async def test_an_export_that_nobody_reads_any_more_is_read_no_further(
    api: Api, store: PostgresStore, pages_read: list[int], where: str, parts: int, shop: Shop
) -> None:
    await fill(store, shop)
    if where == "console":
        browser = await Browser(api).sign_in(shop)
        path = f"{base_of(shop)}/payments/export"
        said = "Cookie: " + "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.client.cookies.jar)
    else:
        path, said = "/api/v1/payments/export", f"Authorization: Bearer {shop.sandbox}"
    reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(api.origin).port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n{said}\r\n\r\n".encode())
    await writer.drain()
    for _ in range(parts):
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
    writer.transport.abort()
    read = -1
    async with asyncio.timeout(60):
        while read != len(pages_read) or not read:  # it reads a page in milliseconds
            read = len(pages_read)
            await asyncio.sleep(0.5)
    assert 0 < read < MANY


async def test_the_console_fetches_the_findings_that_the_api_gives(api: Api) -> None:
    await with_two(api)
    browser = await Browser(api).sign_in_as_admin()
    given = await api.client.get(f"/admin/reconciliations/{FIRST}/findings.csv", headers=SUPPORT)
    (link,) = re.findall(
        r'href="([^"]+findings\.csv)" download', (await browser.open("/console/admin/reconciliation")).text
    )
    assert (await browser.open(link)).content == given.content


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
    await ended(store, shop.business.id, "AE", now - DAY, 10_000, status="FAILED")
    await ended(store, shop.business.id, "AD", now - 8 * DAY, 70_000, many=2)
    page = (await (await Browser(api).sign_in(shop)).open(base_of(shop) + "?days=7")).text
    text = text_of(page)
    for said in (
        "Payments 4 before: 2",
        "Success rate 50.0 % before: 100.0 %",
        "Paid ₦4,000.00 before: ₦1,400.00",
        "4 payments in 7 days, 2 in the 7 days before.",
        "₦4,000.00 in 7 days, ₦1,400.00 in the 7 days before.",
        "Paystack 1 ₦3,000.00 75.0 %",
        "Payaza 1 ₦1,000.00 25.0 %",
        "failed 2 ₦600.00",
    ):
        assert said in text, said
    # Bars are stacked and on one scale with the days before, whose line both plots have.
    bars = re.findall(r'<rect class="(\w+)" x="[0-6].1" y="([0-9.]+)" width="0.8" height="([0-9.]+)">', page)
    assert bars[:3] == [("FAILED", "66.667", "33.333"), ("SUCCESS", "33.333", "66.667"), ("FAILED", "0.0", "33.333")]
    assert bars[3:] == [("SUCCESS", "0.0", "100.0")]
    lines = re.findall(r'<polyline class="before" points="([^"]*)">', page)
    assert [sorted({point.partition(",")[2] for point in line.split()}) for line in lines] == [
        ["100.0", "33.333"],
        ["100.0", "65.0"],
    ]
    # A status that no payment has stands nowhere.
    assert text.count("the 7 days before ") == 2
    assert "reversed" not in text
    # Two days and five without payments: three in a row between them, one at each end.
    assert f"{(now - 4 * DAY).date()} to {(now - 2 * DAY).date()} No payments" in text
    assert text.count("No payments") == 3
