"""What merchants see of the money after a payment's first hour: fees, refunds, disputes, and money that came late."""

import csv
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from payagg_testing.builders import AN_ADMIN, a_report
from payagg_testing.provider_faults import FakeServers

from payagg.application.reports.explain import timeline
from payagg.application.schemas.gateways import UpdateCredentials
from payagg.domain.attempt import ChargeFacts
from payagg.domain.payment import Trigger
from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from tests.support.http_world import Api, Shop, admin_token, assert_refused, bearer, readers
from tests.support.provider_rigs import credentials_a, fakes_running

SUPPORT = bearer(admin_token("SUPPORT"))
SANDBOX = {"environment": "SANDBOX"}
PAID, FEE, PROVIDER_ID = 150_000, 2_250, "5000000001"


@dataclass
class Till:
    """A shop that sells through provider_a's fake, of which the test says what it tells."""

    api: Api
    shop: Shop

    async def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> Any:
        return await self.api.get(path, headers or self.shop.as_sandbox, **query)

    async def rows(self, path: str, headers: dict[str, str], **query: Any) -> list[dict[str, str]]:
        """Of a file in CSV."""
        answer = await self.api.client.get(path, headers=headers, params=query)
        return list(csv.DictReader(StringIO(answer.text, newline="")))

    async def detail(self, reference: str) -> Any:
        return await self.get(f"/payments/{reference}")

    async def told(
        self, reference: str, outcome: Outcome = Outcome.SUCCEEDED, amount: int = PAID, **fields: Any
    ) -> None:
        report = a_report(outcome, provider_reference=reference, amounts=frozenset({amount}), **fields)
        await self.api.services.settlement.report(report, "provider_a", Environment.SANDBOX, "event:provider_a")

    async def handed_over(self) -> str:
        reference = str((await self.api.initiate(self.shop))["reference"])
        await self.api.send("POST", f"/public/payments/{reference}/process", gatewaySlug="provider_a")
        return reference

    async def paid(self, fee: int | None = FEE) -> str:
        reference = await self.handed_over()
        await self.told(reference, facts=ChargeFacts(PROVIDER_ID, "card", fee, PAID + (fee or 0), datetime.now(UTC)))
        return reference

    async def refunded(self, reference: str, amount: int) -> None:
        await self.told(reference, Outcome.REVERSED, amount, details={"refundId": "1"})

    async def disputed(self, reference: str, state: str = "opened") -> None:
        await self.told(reference, Outcome.DISPUTED, details={"disputeId": reference, "state": state})

    async def paid_late(self) -> str:
        reference = await self.handed_over()
        async with self.api.services.store.begin() as tx:
            payment = await tx.payments.lock(reference)
            assert payment is not None
            failed, transition = payment.move(Trigger.FAIL, self.api.services.clock.now(), actor="test")
            assert transition is not None
            await tx.payments.save(failed, transition)
        await self.told(reference, facts=ChargeFacts(PROVIDER_ID, "card", FEE, PAID + FEE))
        return reference

    async def underpaid(self, received: int = 149_000) -> str:
        reference = await self.handed_over()
        await self.told(reference, amount=received)
        return reference

    async def listed(self, **query: Any) -> list[tuple[str, str, str]]:
        found = await self.get(f"{self.shop.path}/adjustments", self.shop.as_owner, **SANDBOX, **query)
        return [(one["reference"], one["kind"], one["state"]) for one in found["adjustments"]]


@pytest.fixture(scope="module")
async def fakes() -> AsyncIterator[FakeServers]:
    async with fakes_running() as running:
        yield running


@pytest.fixture
async def till(api: Api, fakes: FakeServers) -> Till:
    command = UpdateCredentials(credentials=credentials_a(fakes))
    await api.services.gateways.set_credentials("gw_provider_a", command, by=AN_ADMIN)
    return Till(api, await api.open_shop())


def kinds(payment: dict[str, Any]) -> list[tuple[str, int | None, str]]:
    return [(one["kind"], one["amount"], one["state"]) for one in payment["adjustments"]]


def month() -> dict[str, str]:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return {"from": (today - timedelta(days=2)).isoformat(), "to": (today + timedelta(days=2)).isoformat()}


@pytest.mark.rule("reports.13")
async def test_summaries_add_up_fees_and_adjustments_by_their_own_day(till: Till) -> None:
    first, second = await till.paid(), await till.paid(fee=None)
    await till.refunded(first, 50_000)
    await till.disputed(second)
    await till.disputed(first)
    await till.disputed(first, "accepted")
    other = await till.api.open_shop()
    for path, headers, said in readers(till.shop):
        found = await till.get(f"{path}/summary", headers, **said, **month())
        totals = {total["status"]: total for day in found["days"] for total in day["totals"]}
        assert totals["SUCCESS"].items() >= {"count": 2, "fee": FEE, "netAmount": PAID, "withFee": 1}.items()
        [day] = found["adjustments"]
        assert day["date"] == datetime.now(UTC).date().isoformat()
        disputed = sum(one["amount"] for one in day["totals"] if one["kind"] == "DISPUTE")
        assert day["totals"][0] == {"kind": "REFUND", "count": 1, "amount": 50_000, "effect": -50_000}
        assert (day["totals"][1]["count"], disputed) == (2, -day["totals"][1]["effect"] + PAID)
        rows = await till.rows(f"{path}/summary.csv", headers, **said, **month())
        names = {"kind": "adjustment", "count": "count", "amount": "amount", "effect": "effect"}
        added_up = [(row["date"], *(row[name] for name in names.values())) for row in rows if row["adjustment"]]
        assert added_up == [(day["date"], *(str(one[name]) for name in names)) for one in day["totals"]]
        [paid] = [row for row in rows if row["status"] == "SUCCESS"]
        assert [paid[name] for name in ("fee", "netAmount", "withFee")] == [str(FEE), str(PAID), "1"]
    empty = await till.get("/payments/summary", other.as_sandbox, **month())
    assert (empty["days"], empty["adjustments"]) == ([], [])


@pytest.mark.rule("reports.10", "reports.11", "reports.12")
async def test_fees_and_what_became_of_the_money_are_told_wherever_a_payment_is_read(till: Till) -> None:
    open_one, silent = await till.handed_over(), await till.paid(fee=None)
    ordinary, reference = await till.paid(), await till.paid()
    await till.refunded(reference, 50_000)
    await till.disputed(reference)
    short, late = await till.underpaid(), await till.paid_late()
    told: dict[str, tuple[Any, ...]] = {
        open_one: (None, None, []),
        silent: (None, None, []),  # what the provider does not say is no 0
        ordinary: (FEE, PAID, []),
        reference: (FEE, PAID, [("REFUND", 50_000, "processed"), ("DISPUTE", PAID, "opened")]),
        short: (None, None, [("ATTENTION", 149_000, "UNDERPAID")]),
        late: (FEE, PAID, [("LATE_SUCCESS", PAID, "processed")]),
    }
    for path, headers, said in readers(till.shop):
        listed = [one.get("payment", one) for one in (await till.get(path, headers, **said))["payments"]]
        by_reference = {one["reference"]: one for one in listed}
        assert {name: (one["fee"], one["netAmount"], kinds(one)) for name, one in by_reference.items()} == told
        rows = {row["reference"]: row for row in await till.rows(f"{path}/export", headers, **said)}
        assert [rows[ordinary][name] for name in ("fee", "netAmount", "adjustments")] == [str(FEE), str(PAID), "[]"]
        assert (rows[silent]["fee"], rows[silent]["netAmount"]) == ("", "")
        assert '"kind":"REFUND"' in rows[reference]["adjustments"]
    assert await till.detail(reference) == by_reference[reference]
    story = await till.get(f"{till.shop.path}/payments/{reference}/story", till.shop.as_owner, **SANDBOX)
    assert story["payment"] == by_reference[reference]
    [attention] = by_reference[short]["adjustments"]
    assert (attention["expected"], attention["received"]) == (PAID, 149_000)
    await till.disputed(reference, "won")
    assert kinds(await till.detail(reference))[1:] == [("DISPUTE", PAID, "won")]
    events = await till.api.events(till.shop, 14)
    own = [kinds(event["data"]) for event in events if event["data"]["reference"] == reference]
    assert [len(adjustments) for adjustments in own] == [0, 0, 1, 2, 2]
    assert own[-1][1] == ("DISPUTE", PAID, "won")
    assert {event["data"]["fee"] for event in events if event["type"] == "payment.success"} == {FEE, None}


@pytest.mark.rule("reports.14", "GET /merchant/businesses/{businessId}/adjustments")
async def test_adjustments_are_walked_by_cursor_and_filtered_by_what_needs_attention(till: Till) -> None:
    refunded, disputed = await till.paid(), await till.paid()
    late, short = await till.paid_late(), await till.underpaid()
    await till.refunded(refunded, 50_000)
    await till.disputed(disputed)
    newest = [(disputed, "DISPUTE", "opened"), (refunded, "REFUND", "processed")]
    newest += [(short, "ATTENTION", "UNDERPAID"), (late, "LATE_SUCCESS", "processed")]
    assert await till.listed() == await till.listed(needsAttention="false") == newest
    assert await till.listed(needsAttention="true") == [newest[0], *newest[2:]]
    path, other = f"{till.shop.path}/adjustments", await till.api.open_shop()
    walked = await till.api.walked(path, till.shop.as_owner, "adjustments", limit=3, **SANDBOX)
    assert [one["reference"] for one in walked] == [reference for reference, _, _ in newest]
    assert [one["needsAttention"] for one in walked] == [True, False, True, True]

    await till.disputed(disputed, "won")
    admin = bearer(admin_token())
    for anomaly in (await till.get("/admin/anomalies", admin))["anomalies"]:
        await till.api.send("POST", f"/admin/anomalies/{anomaly['id']}/close", admin, reason="Refunded.")
    assert await till.listed(needsAttention="true") == []

    nothing: dict[str, Any] = {"adjustments": [], "nextCursor": None, "hasMore": False}
    assert await till.get(path, till.shop.as_owner, environment="LIVE") == nothing
    assert await till.get(f"{other.path}/adjustments", other.as_owner, **SANDBOX) == nothing
    for name, value in (("environment", "live"), ("needsAttention", "yes"), ("after", "anm_1"), ("limit", "101")):
        answer = await till.api.client.get(path, headers=till.shop.as_owner, params={**SANDBOX, name: value})
        assert_refused(answer, 400, "VALIDATION_ERROR", name)
    assert_refused(await till.api.client.get(path, headers=till.shop.as_owner), 400, "VALIDATION_ERROR", "environment")


@pytest.mark.rule("reports.15")
async def test_operators_alone_see_the_charge_and_whether_its_account_is_another_one(till: Till) -> None:
    reference = await till.paid()
    story = f"/admin/payments/{reference}/story"
    [attempt] = (await till.get(story, SUPPORT))["attempts"]
    facts = {"providerId": PROVIDER_ID, "channel": "card", "fee": FEE, "isOtherAccount": False}
    assert {**attempt, **facts} == attempt
    assert attempt["paidAt"] is not None
    await till.handed_over()  # and still open
    services, other_account = till.api.services, {"credentials": {"sandboxSecretKey": "sk_test_another"}}
    place = "/admin/gateways/gw_provider_a/credentials"
    changed = await till.api.client.patch(place, headers=bearer(admin_token()), json=other_account)
    assert int(changed.headers["open-attempts"]) >= 1  # of the other account
    [attempt] = (await till.get(story, SUPPORT))["attempts"]
    assert attempt["isOtherAccount"] is True
    lines = "\n".join(await timeline(services.store, reference, sealed=services.payment_options.gateway_credentials))
    assert f"paid, provider's id {PROVIDER_ID}, channel card, fee NGN 22.50" in lines
    assert "made with another provider account than the one on file" in lines
    for shown in (
        await till.detail(reference),
        await till.get(f"{till.shop.path}/payments/{reference}/story", till.shop.as_owner, **SANDBOX),
        await till.get("/events"),
    ):
        assert ("providerId" in str(shown), PROVIDER_ID in str(shown)) == (False, False)
