"""A provider's lines through the one judge: what differs moves its payment or is an anomaly, once however often a day
is reconciled."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import pytest
from payagg_testing.builders import AN_ADMIN, DAY, HOUR, LIVE, SECOND
from payagg_testing.clocks import START

from payagg.application.payments.settlement import Settled, Settlement
from payagg.application.ports.providers import LinePage
from payagg.application.reports.reconciliation import STALE
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.errors import ErrorCode
from payagg.domain.payment import Status
from payagg.domain.reconciliation import LineKind, ProviderLine, ReconciliationFinding, ReconciliationRun
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment
from tests.support.memory_shop import MemoryShop
from tests.support.refusals import refused_with

TODAY = START.date()
STRANGER = "PAY-20250131-00000X"


def a_said(reference: str, outcome: Outcome, amount: int = 150_000, **details: str) -> ProviderReport:
    return ProviderReport(reference, outcome, outcome.value.lower(), frozenset({amount}), details=details)


@dataclass
class ListedLines:
    """A provider's lists as a test writes them."""

    pages: list[LinePage] = field(default_factory=list)
    kinds: tuple[LineKind, ...] = tuple(LineKind)
    fault: FaultKind | None = None
    asked: list[tuple[LineKind, datetime, datetime]] = field(default_factory=list)

    def tell(self, *lines: ProviderLine, unreadable: tuple[str, ...] = ()) -> None:
        self.pages.append(LinePage(lines, unreadable, 1000))

    async def lines(
        self, kind: LineKind, since: datetime, until: datetime, credentials: Mapping[str, str], environment: Environment
    ) -> AsyncIterator[LinePage]:
        assert environment is LIVE, "as each run here"
        self.asked.append((kind, since, until))
        if self.fault is not None:
            raise ProviderFault(self.fault)
        for page in self.pages:
            listed = [line for line in page.lines if line.kind is kind]
            if kind is not LineKind.CHARGE:
                listed = [line for line in listed if line.at is None or since <= line.at < until]
            yield LinePage(listed, page.unreadable if kind is LineKind.CHARGE else ())

    def read_statement(self, content: bytes, environment: Environment) -> LinePage:
        return self.pages[0]


def a_line(
    reference: str,
    outcome: Outcome = Outcome.SUCCEEDED,
    amount: int = 150_000,
    *,
    kind: LineKind = LineKind.CHARGE,
    id: str = "",
    at: datetime | None = START,
) -> ProviderLine:
    return ProviderLine(kind, id or reference, amount, at, a_said(reference, outcome, amount))


class ReconciledShop(MemoryShop):
    """`provider_a` has lists."""

    def __init__(self) -> None:
        super().__init__()
        self.lists = ListedLines()
        self.runs = replace(self.services.reconciliation_runs, lists={"provider_a": self.lists})

    async def reconcile(
        self, first: date = TODAY, last: date = TODAY, gateway: str = "provider_a", statement: bytes | None = None
    ) -> tuple[ReconciliationRun, list[ReconciliationFinding]]:
        return await self.runs.reconcile(gateway, LIVE, first, last, by=AN_ADMIN, statement=statement)

    async def sent(self, slug: str = "provider_a") -> str:
        return await self.handed_over(slug, environment=LIVE)

    async def told(self, report: ProviderReport) -> None:
        """By an event of provider_a."""
        await self.services.settlement.report(report, "provider_a", LIVE, "event:provider_a")

    async def paid(self) -> str:
        reference = await self.sent()
        await self.told(a_said(reference, Outcome.SUCCEEDED))
        return reference


@pytest.fixture
async def shop() -> ReconciledShop:
    shop = ReconciledShop()
    await shop.open()
    return shop


def shown(findings: list[ReconciliationFinding]) -> list[tuple[str, str | None, str | None]]:
    return [(one.bucket.value, one.reference, one.effect) for one in findings]


async def test_a_day_that_agrees_leaves_counts_and_sums_and_nothing_else(shop: ReconciledShop) -> None:
    shop.lists.tell(*[a_line(await shop.paid()) for _ in range(3)])
    run, findings = await shop.reconcile()
    assert (findings, await shop.anomalies()) == ([], [])
    assert run.totals == {"AGREED": {"payments": 3, "ours": 450_000, "lines": 3, "theirs": 450_000}}
    assert (run.started_by, run.source, run.ended_at) == ("admin:ada", "list", START)
    assert (await shop.runs.page(None, 10))[0] == [await shop.runs.get(run.id)] == [run]


@pytest.mark.rule("description.9")
async def test_a_card_that_failed_before_the_one_that_paid_ends_no_payment(shop: ReconciledShop) -> None:
    for outcomes in ([Outcome.SUCCEEDED], [Outcome.FAILED, Outcome.SUCCEEDED]):
        reference = await shop.sent()
        shop.lists.tell(*(a_line(reference, one, id=f"{reference} {one.value}") for one in outcomes))
        _, findings = await shop.reconcile()
        assert shown(findings) == [("PAID_THERE", reference, "MOVED")] * len(outcomes)
        assert ((await shop.payment(reference)).status, await shop.anomalies()) == (Status.SUCCESS, [])
        assert await shop.events(reference) == ["payment.pending", "payment.success"]


@pytest.mark.rule("description.9")
@pytest.mark.parametrize("parts", [[150_000], [75_000, 75_000], [152_250]], ids=["whole", "in parts", "with a fee"])
async def test_a_charge_that_was_reversed_ends_an_open_payment_whatever_refunds_say(
    shop: ReconciledShop, parts: list[int]
) -> None:
    reference = await shop.sent()
    back = [a_line(reference, Outcome.REVERSED, part, kind=LineKind.REFUND, id=str(n)) for n, part in enumerate(parts)]
    shop.lists.tell(a_line(reference, Outcome.REVERSED), *back)
    for _ in range(2):
        await shop.reconcile()
        assert (await shop.payment(reference)).status is Status.REVERSED
        assert await shop.events(reference) == ["payment.pending", "payment.reversed"]


REFUND = a_line("{paid}", Outcome.REVERSED, 100, kind=LineKind.REFUND)
DISPUTE = a_line("{paid}", Outcome.DISPUTED, kind=LineKind.DISPUTE)


@pytest.mark.rule("description.9")
@pytest.mark.parametrize(
    ("line", "bucket", "kind"),
    [
        (a_line("{paid}", amount=149_900), "OTHER_AMOUNT", AnomalyKind.MISMATCH),
        (a_line("{paid}", Outcome.REVERSED), "RETURNED_THERE", AnomalyKind.LATE_REVERSAL),
        (REFUND, "RETURNED_THERE", AnomalyKind.PARTIAL_REFUND),
        (DISPUTE, "RETURNED_THERE", AnomalyKind.DISPUTE),
        (a_line("{other}"), "THERE_ONLY", AnomalyKind.WRONG_PROVIDER),
        (a_line(STRANGER), "THERE_ONLY", AnomalyKind.UNKNOWN_REFERENCE),
    ],
)
@pytest.mark.parametrize("has_event", [False, True])
async def test_what_moves_no_payment_is_one_anomaly_however_often_it_is_told(
    shop: ReconciledShop, line: ProviderLine, bucket: str, kind: AnomalyKind, has_event: bool
) -> None:
    paid, other = await shop.paid(), await shop.sent("provider_b")
    reference = line.report.provider_reference.format(paid=paid, other=other)
    line = replace(line, id=reference, report=replace(line.report, provider_reference=reference))
    if has_event:
        await shop.told(line.report)
    shop.lists.tell(line, *[a_line(paid)] * (line.kind is not LineKind.CHARGE or reference != paid))
    for _ in range(3):
        _, findings = await shop.reconcile()
        assert [one.bucket.value for one in findings] == [bucket]
        assert await shop.anomalies() == [kind]
    assert [(await shop.payment(one)).status for one in (paid, other)] == [Status.SUCCESS, Status.PENDING]


async def test_a_line_listed_twice_is_one_and_one_that_cannot_be_read_a_finding(shop: ReconciledShop) -> None:
    line = a_line(await shop.paid())
    shop.lists.tell(line)
    shop.lists.tell(line, unreadable=("charge list, page 1, item 7",))  # the list grew meanwhile
    run, findings = await shop.reconcile()
    assert [(one.bucket.value, one.line_id) for one in findings] == [("UNREADABLE", "charge list, page 1, item 7")]
    assert (run.totals["AGREED"]["lines"], run.totals["UNREADABLE"]["lines"]) == (1, 1)


async def test_a_charge_dated_after_midnight_belongs_to_the_day_of_its_hand_off(shop: ReconciledShop) -> None:
    shop.clock.set(datetime.combine(TODAY, datetime.max.time(), START.tzinfo))
    reference = await shop.paid()
    shop.clock.move(HOUR)
    after = shop.clock.now()
    stranger = a_line(STRANGER, at=after)
    shop.lists.tell(a_line(reference, at=after), stranger)
    assert (await shop.reconcile())[1] == []
    # The next day knows the line, whose payment is of the day before, and the stranger.
    run, findings = await shop.reconcile(after.date(), after.date())
    assert [one.bucket.value for one in findings] == ["THERE_ONLY"]
    assert run.totals["AGREED"]["lines"] == 1


async def test_a_refund_of_an_older_payment_does_not_miss_its_charge(shop: ReconciledShop) -> None:
    reference = await shop.paid()
    shop.clock.move(3 * DAY)
    shop.lists.tell(a_line(reference, Outcome.REVERSED, kind=LineKind.REFUND))
    _, findings = await shop.reconcile(shop.clock.now().date(), shop.clock.now().date())
    assert shown(findings) == [("RETURNED_THERE", reference, "ANOMALY")]
    # Nor does one of the day itself where the provider has no list of charges.
    shop.lists.kinds = (LineKind.REFUND, LineKind.DISPUTE)
    _, findings = await shop.reconcile(START.date(), shop.clock.now().date())
    assert shown(findings) == [("RETURNED_THERE", reference, "UNCHANGED")]


@pytest.mark.parametrize(
    ("line", "days", "kind"), [(REFUND, 30, AnomalyKind.PARTIAL_REFUND), (DISPUTE, 90, AnomalyKind.DISPUTE)]
)
async def test_what_changes_after_its_day_is_found_once_and_no_part_of_the_sums(
    shop: ReconciledShop, line: ProviderLine, days: int, kind: AnomalyKind
) -> None:
    reference = await shop.paid()
    said = replace(line.report, provider_reference=reference, details={"refundId": "7"})
    ended = replace(line, id="7", report=said)
    shop.lists.tell(replace(ended, report=replace(said, outcome=Outcome.PENDING)))
    shop.lists.kinds = (line.kind,)
    assert (await shop.reconcile())[0].totals["AGREED"]["lines"] == 1
    shop.lists.pages.clear()
    shop.lists.tell(ended)
    shop.clock.move((days + 1) * DAY)
    last, after = TODAY + days * DAY, TODAY + (days + 1) * DAY
    assert (await shop.reconcile(after, after))[1] == []
    assert await shop.anomalies() == []
    for expected in ([("RETURNED_THERE", reference, "ANOMALY")], []):
        run, findings = await shop.reconcile(last, last)
        assert (shown(findings), run.totals) == (expected, {})
        assert await shop.anomalies() == [kind]


async def test_a_statement_is_reconciled_without_asking_anybody(shop: ReconciledShop) -> None:
    reference = await shop.sent()
    shop.lists.tell(a_line(reference, at=None))
    run, findings = await shop.reconcile(statement=b"Reference,...")
    assert (shown(findings), shop.lists.asked) == ([("PAID_THERE", reference, "MOVED")], [])
    assert (run.source[:5], len(run.source)) == ("file ", len("file ") + 64)
    # Of one in the wrong unit not every payment becomes an anomaly.
    shop.lists.pages.clear()
    shop.lists.tell(*[a_line(await shop.paid(), amount=1_500) for _ in range(3)])
    assert (await refused_with(shop.reconcile(statement=b"...")))[1] == "file"
    assert await shop.anomalies() == []


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"gateway": "provider_b"}, "gateway"),
        ({"gateway": "provider_a"}, "gateway"),  # which has none for LIVE
        ({"first": TODAY + DAY, "last": TODAY + DAY}, "to"),
        ({"last": TODAY - DAY}, "to"),
        ({"first": TODAY - 31 * DAY}, "to"),
    ],
)
async def test_what_cannot_be_reconciled_is_refused_by_the_name_of_the_option(
    shop: ReconciledShop, wanted: dict[str, Any], field: str
) -> None:
    await shop.change("provider_a", credentials=shop.sealed("provider_a", only="SANDBOX"))
    assert await refused_with(shop.reconcile(**wanted)) == (ErrorCode.VALIDATION_ERROR, field)
    assert ((await shop.runs.page(None, 10))[0], await shop.runs.run_due()) == ([], 0)


@pytest.mark.rule("description.10")
async def test_the_worker_does_yesterday_once_over_all_workers(shop: ReconciledShop) -> None:
    reference = await shop.sent()
    shop.lists.tell(a_line(reference))
    tomorrow = datetime.combine(TODAY + DAY, datetime.min.time(), START.tzinfo)
    shop.clock.set(tomorrow + HOUR)
    assert await shop.runs.run_due() == 0  # the last checkouts of yesterday may be open
    shop.clock.set(tomorrow + 2 * HOUR)
    assert (await shop.runs.run_due(), await shop.runs.run_due()) == (1, 0)
    ((run,), *_) = await shop.runs.page(None, 10)
    day = (run.first_day, run.last_day, run.environment, run.started_by)
    assert day == (TODAY, TODAY, LIVE, "clock:reconciliation")
    assert (await shop.payment(reference)).status is Status.SUCCESS


@pytest.mark.rule("description.10")
async def test_a_day_whose_worker_died_or_found_no_provider_is_done_by_the_next(shop: ReconciledShop) -> None:
    shop.clock.move(DAY)
    shop.lists.fault = FaultKind.TIMEOUT
    assert await shop.runs.run_due() == 0
    shop.lists.fault = None
    assert await shop.runs.run_due() == 0  # somebody may be at it
    shop.clock.move(STALE + SECOND)
    assert await shop.runs.run_due() == 1
    assert [run.ended_at is not None for run in (await shop.runs.page(None, 10))[0]] == [True]


@pytest.mark.parametrize("details", [{"refundId": "7"}, {"eventDigest": "0a"}])
async def test_a_listed_refund_of_money_that_never_counted_takes_nothing_from_the_payment(
    shop: ReconciledShop, details: dict[str, str]
) -> None:
    reference = await shop.sent()
    await shop.told(a_said(reference, Outcome.SUCCEEDED, 100))
    await shop.told(a_said(reference, Outcome.REVERSED, 100, **details))
    await shop.told(a_said(reference, Outcome.SUCCEEDED))
    refund = a_said(reference, Outcome.REVERSED, 100, refundId="7")
    shop.lists.tell(a_line(reference), ProviderLine(LineKind.REFUND, "7", 100, shop.clock.now(), refund))
    await shop.reconcile()
    assert await shop.anomalies() == [AnomalyKind.MISMATCH] * 2


@pytest.mark.parametrize("amount", [100, 150_000])
@pytest.mark.parametrize("details", [{"refundId": "132013318360"}, {"eventDigest": "0a"}])
@pytest.mark.parametrize("is_beside", [False, True])
async def test_a_refunds_event_that_comes_after_its_list_or_beside_it_is_told_once(
    shop: ReconciledShop, amount: int, details: dict[str, str], is_beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = await shop.paid()
    refund = a_said(reference, Outcome.REVERSED, amount, refundId="7")
    shop.lists.tell(a_line(reference), ProviderLine(LineKind.REFUND, "7", amount, START, refund))
    tell = Settlement.report

    async def tell_after_the_event(settlement: Settlement, *of_line: Any, **more: Any) -> Settled:
        with monkeypatch.context() as only_once:
            only_once.setattr(Settlement, "report", tell)
            await shop.told(replace(refund, details=details))
            return await tell(settlement, *of_line, **more)

    if is_beside:
        monkeypatch.setattr(Settlement, "report", tell_after_the_event)
    await shop.reconcile()
    monkeypatch.setattr(Settlement, "report", tell)
    (known,) = await shop.anomalies()
    await shop.told(replace(refund, details=details))
    await shop.reconcile()
    assert await shop.anomalies() == [known]
