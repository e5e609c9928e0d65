"""Lists, summaries and exports of payments over HTTP."""

import csv
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import httpx
import pytest
import structlog
from payagg_testing.builders import a_payment, a_transition

import payagg.application.reports.search as module
from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.ports.outside import Unavailable
from payagg.domain.payment import Payment
from payagg.domain.payment_search import SUMMARY_PAYMENTS, PaymentFilter
from payagg.domain.values import Environment
from tests.support.http_world import Api, Shop, admin_token, assert_refused, bearer, readers

DAY = datetime(2025, 1, 31, tzinfo=UTC)
MONTH = {"from": "2025-01-01T00:00:00Z", "to": "2025-02-01T00:00:00Z"}
HOUR = timedelta(hours=1)
AS_ADMIN = bearer(admin_token("SUPPORT"))
COLUMNS = [
    "reference", "amount", "currency", "status", "environment", "gateway", "customerEmail", "customerName",
    "customerPhone", "callbackUrl", "metadata", "failureReason", "createdAt", "updatedAt", "expiresAt", "settledAt",
    "fee", "netAmount", "adjustments",
]  # fmt: skip


@pytest.fixture
def api(own_api: Api) -> Api:
    return own_api


async def added(api: Api, shop: Shop, number: int, at: datetime = DAY, settled: bool = True, **fields: Any) -> Payment:
    """A payment of the past that succeeded at once, or was never paid."""
    facts = {"reference": f"PAY-20250131-{number:06d}", "business_id": shop.business.id, **fields}
    payment, _ = await api.services.store.add_payment(a_payment(now=at, **facts))
    if not settled:
        return payment
    moved, transition = a_transition(payment, now=at)
    async with api.services.store.begin() as tx:
        await tx.payments.save(moved, transition)
    return moved


def shown(page: dict[str, Any]) -> list[int]:
    """The numbers of the payments in a page."""
    return [int(item.get("payment", item)["reference"][-6:]) for item in page["payments"]]


def summed(status: str, count: int, amount: int) -> dict[str, Any]:
    """As a summary tells it of payments whose fee nobody knows."""
    return {"status": status, "count": count, "amount": amount, "fee": None, "netAmount": None, "withFee": 0}


def rows_of(answer: httpx.Response) -> list[dict[str, str]]:
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    return list(csv.DictReader(StringIO(answer.content.decode(), newline="")))


@pytest.mark.rule("reports.3", "GET /payments", "GET /merchant/businesses/{businessId}/payments", "GET /admin/payments")
async def test_a_list_is_walked_and_filtered_newest_first_wherever_it_is_read(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    await added(api, shop, 1, customer_email="ada@example.com", idempotency_key="order 1+2")
    await added(api, shop, 2, DAY + HOUR, settled=False)  # its window is long over
    await added(api, shop, 3, DAY + 2 * HOUR, customer_email="bola@example.com")
    await added(api, shop, 4, DAY + 2 * HOUR)
    await added(api, other, 50)
    await added(api, shop, 60, environment=Environment.LIVE)
    ada = "ada@example.com"
    cases: list[tuple[dict[str, str], list[int]]] = [
        *(({"status": "SUCCESS"}, [4, 3, 1]), ({"status": "FAILED"}, [2])),
        ({"from": "2025-01-31T02:00:00+01:00", "to": "2025-01-31t02:00:00z"}, [2]),
        ({"to": "2025-01-31T01:00:00.000001Z"}, [2, 1]),
        *(({"reference": "PAY-20250131-000003"}, [3]), ({"idempotencyKey": "order 1+2"}, [1])),
        *(({"email": "Ada@Example.COM"}, [1]), ({"customerEmail": ada, "email": "Ada@example.com"}, [1])),
        ({"email": ada, "status": "SUCCESS", **MONTH}, [1]),
    ]
    for path, headers, said in readers(shop):
        assert shown({"payments": await api.walked(path, headers, "payments", limit=3, **said)}) == [4, 3, 2, 1]
        for query, expected in cases:
            assert shown(await api.get(path, headers, **said, **query)) == expected, (path, query)
    page = await api.get("/payments", shop.as_sandbox, status="FAILED")
    assert (page["payments"][0]["status"], page["payments"][0]["failureReason"]) == ("FAILED", "EXPIRED")


@pytest.mark.rule("reports.4")
async def test_parameters_that_do_not_go_together_are_named(api: Api, shop: Shop) -> None:
    """Each by itself is tried in test_hostile.py."""
    turned = {"from": MONTH["to"], "to": MONTH["from"]}
    rows = [("", {"email": "ada@example.com", "customerEmail": "bola@example.com"}, "customerEmail")]
    rows += [(part, turned, "to") for part in ("", "/export")]
    for part in ("/summary", "/summary.csv"):
        longer = {**MONTH, "to": "2025-02-01T00:00:00.000001Z"}
        rows += [(part, query, "to") for query in (turned, longer, {"from": MONTH["from"]})]
        rows.append((part, {"to": MONTH["to"]}, "from"))
    for path, headers, said in readers(shop):
        for part, query, field in rows:
            answer = await api.client.get(path + part, headers=headers, params={**said, **query})
            assert_refused(answer, 400, "VALIDATION_ERROR", field)
    for part in ("", "/summary", "/summary.csv", "/export"):
        answer = await api.client.get(f"{shop.path}/payments{part}", headers=shop.as_owner)
        assert_refused(answer, 400, "VALIDATION_ERROR", "environment")
    answer = await api.client.get("/admin/payments", headers=AS_ADMIN, params={"idempotencyKey": "order-1"})
    assert_refused(answer, 400, "VALIDATION_ERROR", "businessId")


@pytest.mark.rule("reports.2", "reports.9")
async def test_each_sees_its_own_payments_and_an_administrator_whose_each_is(api: Api, shop: Shop, other: Shop) -> None:
    facts: dict[str, Any] = {"customer_email": "ada@example.com", "idempotency_key": "order-1"}
    await added(api, shop, 1, **facts)
    await added(api, shop, 2, environment=Environment.LIVE, **facts)
    await added(api, other, 3, **facts)
    keys = ((shop.as_sandbox, 1), (shop.as_live, 2), (other.as_sandbox, 3))
    query = {"email": "ada@example.com", "idempotencyKey": "order-1", "status": "SUCCESS"}
    assert shown(await api.get(f"{shop.path}/payments", shop.as_owner, environment="LIVE", **query)) == [2]
    # A key's business and environment are its own: nothing in the query says otherwise.
    for name, value in (("environment", "LIVE"), ("businessId", other.business.id)):
        answer = await api.client.get("/payments", headers=shop.as_sandbox, params={name: value})
        assert_refused(answer, 400, "VALIDATION_ERROR", name)
    assert shown(await api.get("/payments", shop.as_sandbox, reference="PAY-20250131-000003")) == []
    for headers, number in keys:
        assert shown(await api.get("/payments", headers, **query)) == [number]
        summary = await api.get("/payments/summary", headers, **MONTH)
        assert [total["count"] for total in summary["days"][0]["totals"]] == [1]
        exported = rows_of(await api.client.get("/payments/export", headers=headers))
        assert [row["reference"] for row in exported] == [f"PAY-20250131-{number:06d}"]

    page = await api.get("/admin/payments", AS_ADMIN)
    whose = [(shown({"payments": [one]}), one["businessId"], one["businessName"]) for one in page["payments"]]
    names = [(of.business.id, of.business.name) for of in (other, shop, shop)]
    assert whose == [([number], *name) for number, name in zip((3, 2, 1), names, strict=True)]
    assert page["payments"][2]["payment"] == await api.get("/payments/PAY-20250131-000001", shop.as_sandbox)
    found = [({"email": "ada@example.com"}, [3, 2, 1]), ({"environment": "LIVE"}, [2]), ({"businessId": "biz_no"}, [])]
    for query, numbers in found:
        assert shown(await api.get("/admin/payments", AS_ADMIN, **query)) == numbers
    summary = await api.get("/admin/payments/summary", AS_ADMIN, **MONTH)
    assert summary["days"][0]["totals"] == [summed("SUCCESS", 3, 450_000)]
    exported = rows_of(await api.client.get("/admin/payments/export", headers=AS_ADMIN))
    assert list(exported[0]) == ["businessId", "businessName", *COLUMNS]
    assert [row["businessName"] for row in exported] == [name for _, name in names]


@pytest.mark.rule("GET /payments/summary", "GET /merchant/businesses/{businessId}/payments/summary")
@pytest.mark.rule("GET /admin/payments/summary", "GET /payments/summary.csv")
@pytest.mark.rule("GET /merchant/businesses/{businessId}/payments/summary.csv", "GET /admin/payments/summary.csv")
async def test_a_summary_adds_up_days_and_statuses_as_json_and_as_csv(api: Api, store: PostgresStore) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    largest = 2**53 - 1
    await added(api, shop, 1, DAY - timedelta(microseconds=1), amount=100)
    await added(api, shop, 2, DAY, amount=largest)
    await added(api, shop, 3, DAY + HOUR, amount=largest)
    await added(api, shop, 4, DAY + HOUR, settled=False, amount=500)
    await added(api, shop, 5, DAY + 24 * HOUR)
    by_day = {"2025-01-30": [("SUCCESS", 1, 100)], "2025-01-31": [("SUCCESS", 2, 2 * largest), ("FAILED", 1, 500)]}
    for path, headers, said in readers(shop):
        summary = await api.get(path + "/summary", headers, **said, **MONTH)
        days = [{"date": date, "totals": [summed(*one) for one in totals]} for date, totals in by_day.items()]
        assert summary == {**MONTH, "currency": "NGN", "days": days, "adjustments": []}
        answer = await api.client.get(path + "/summary.csv", headers=headers, params={**said, **MONTH})
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"] == 'attachment; filename="summary.csv"'
        head, *lines = answer.text.split("\r\n")
        assert head == "date,status,adjustment,count,amount,fee,netAmount,withFee,effect"
        rows = [f"{date},{one[0]},,{one[1]},{one[2]},,,0," for date, totals in by_day.items() for one in totals]
        assert lines == [*rows, ""]
    empty = await api.client.get("/payments/summary.csv", headers=other.as_sandbox, params=MONTH)
    assert empty.content.count(b"\r\n") == 1
    # A sum past 64 bits is whole.
    large = Statement(
        "INSERT INTO payments (reference, business_id, environment, amount, currency, status, sequence, created_at, "
        "updated_at, expires_at) SELECT 'PAY-20250201-' || lpad(CAST(n AS text), 6, '0'), :business, 'SANDBOX', "
        f"{largest}, 'NGN', 'INITIATED', 0, :at, :at, :at FROM generate_series(1, 2100) n"
    )
    await store.pool.run(large, business=other.business.id, at=DAY)
    async with store.begin() as tx:
        wanted = PaymentFilter(business_id=other.business.id, environment=Environment.SANDBOX)
        [total] = await tx.payment_search.totals(wanted, api.services.clock.now(), 3_000)
    assert (total.count, total.amount) == (2100, 2100 * largest)
    summary = await api.get("/payments/summary", other.as_sandbox, **MONTH)
    assert summary["days"][0]["totals"][0]["amount"] == 2100 * largest
    described = (await api.client.get(f"{api.origin}/openapi.json")).json()["components"]["schemas"]["StatusTotal"]
    amount = described["properties"]["amount"]
    assert amount["maximum"] >= SUMMARY_PAYMENTS * largest
    assert "format" not in amount


@pytest.mark.rule("GET /payments/export", "GET /merchant/businesses/{businessId}/payments/export")
@pytest.mark.rule("GET /admin/payments/export")
async def test_an_export_holds_every_payment_in_rows(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXPORT_PAGE", 2)
    shop = await api.open_shop()
    for number in range(5):
        await added(api, shop, number, DAY + number * HOUR, settled=number != 2, metadata={"n": [number, "a,b"]})
    for path, headers, said in readers(shop):
        answer = await api.client.get(path + "/export", headers=headers, params=said)
        rows = rows_of(answer)
        assert answer.headers["content-disposition"] == 'attachment; filename="payments.csv"'
        assert answer.content.count(b"\r\n") == 6
        listed = [item.get("payment", item) for item in (await api.get(path, headers, **said))["payments"]]
        for row, payment in zip(rows, listed, strict=True):
            expected = {name: "" if payment[name] is None else str(payment[name]) for name in COLUMNS}
            expected["metadata"] = f'{{"n":[{payment["metadata"]["n"][0]},"a,b"]}}'
            assert {name: row[name] for name in COLUMNS} == expected
        two_hours = {"from": "2025-01-31T01:00:00Z", "to": "2025-01-31T03:00:00Z"}
        for query, count in (({"status": "FAILED"}, 1), (two_hours, 2)):
            answer = await api.client.get(path + "/export", headers=headers, params={**said, **query})
            assert len(rows_of(answer)) == count


@pytest.mark.rule("reports.8")
@pytest.mark.error_lines("Exception in ASGI application")
async def test_an_export_that_breaks_is_no_whole_file(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXPORT_PAGE", 2)
    shop = await api.open_shop()
    for number in range(5):
        await added(api, shop, number)
    real = module.PaymentSearch._page
    fails = iter([False])

    async def breaking(*args: Any, **kwargs: Any) -> Any:
        if next(fails, True):
            raise Unavailable("the database went away")
        return await real(*args, **kwargs)

    monkeypatch.setattr(module.PaymentSearch, "_page", breaking)
    with structlog.testing.capture_logs() as lines, pytest.raises(httpx.RemoteProtocolError):
        await api.client.get("/payments/export", headers=shop.as_sandbox)
    assert [(line["status"], line.get("broken_off")) for line in lines if line["event"] == "request"] == [(200, True)]
    assert_refused(await api.client.get("/payments/export", headers=shop.as_sandbox), 503, "SERVICE_UNAVAILABLE")
