"""What every Store promises about lists and summaries of payments."""

from datetime import datetime
from typing import Any

from payagg_testing.builders import DAY, HOUR, LIVE, MINUTE, NOW, SANDBOX, TICK, a_payment, a_transition

from payagg.application.ports.reports import PAGE_BYTES
from payagg.domain.payment import Payment, Status, Trigger
from payagg.domain.payment_search import PaymentCursor, PaymentFilter, PaymentTotal
from payagg.domain.values import Environment
from tests.contracts.database import Database

OWN = PaymentFilter(business_id="biz_1", environment=SANDBOX)


def a_reference(number: int) -> str:
    return f"PAY-20250131-{number:06d}"


async def added(
    db: Database, number: int, trigger: Trigger | None = None, at: datetime = NOW, **fields: Any
) -> Payment:
    payment, created = await db.add_payment(a_payment(reference=a_reference(number), now=at, **fields))
    assert created
    if trigger is None:
        return payment
    moved, transition = a_transition(payment, trigger, at)
    await db.payments.save(moved, transition)
    return moved


async def page(
    db: Database, wanted: PaymentFilter = OWN, now: datetime = NOW, after: PaymentCursor | None = None, limit: int = 100
) -> list[Payment]:
    return (await db.payment_search.page(wanted, now, after, limit))[0]


def of(business_id: str = "biz_1", environment: Environment | None = SANDBOX, **wanted: Any) -> PaymentFilter:
    return PaymentFilter(business_id, environment, **wanted)


async def totals(
    db: Database, wanted: PaymentFilter = OWN, now: datetime = NOW, most: int = 1_000
) -> list[PaymentTotal]:
    return await db.payment_search.totals(wanted, now, most)


class PaymentSearchContract:
    async def test_a_page_of_large_metadata_ends_early_and_the_walk_goes_on(self, db: Database) -> None:
        large = {"note": "x" * 15_000}
        every = [await added(db, number, at=NOW - number * MINUTE, metadata=large) for number in range(20)]
        met: list[str] = []
        found, after = await db.payment_search.page(OWN, NOW, None, 100)
        while found:
            assert 0 < len(found) * 15_000 < PAGE_BYTES + 15_000
            met += [payment.reference for payment in found]
            found, after = ([], None) if after is None else await db.payment_search.page(OWN, NOW, after, 100)
        assert met == [payment.reference for payment in every]

    async def test_a_cursor_goes_on_strictly_below_itself_over_every_status(self, db: Database) -> None:
        triggers = [None, *Trigger]
        for number in range(14):
            await added(db, number, triggers[number % len(triggers)], at=NOW - number // 3 * MINUTE)
        whole = await page(db)
        order = sorted(range(14), key=lambda number: (number // 3, -number))
        assert [one.reference for one in whole] == [a_reference(number) for number in order]
        for size in (1, 3, 13):
            seen: list[Payment] = []
            after = None
            while found := await page(db, after=after, limit=size):
                assert len(found) == min(size, 14 - len(seen))
                seen += found
                after = PaymentCursor.of(found[-1])
            assert seen == whole
        for status in Status:
            assert await page(db, of(status=status)) == [one for one in whole if one.status is status] != []

    async def test_businesses_and_environments_never_meet(self, db: Database) -> None:
        email = "ada@example.com"
        own = await added(db, 1, customer_email=email, idempotency_key="order-1")
        live = await added(db, 2, environment=LIVE, customer_email=email, idempotency_key="order-1")
        other = await added(db, 3, business_id="biz_2", customer_email=email, idempotency_key="order-1")
        for fields in ({}, {"email": email}, {"idempotency_key": "order-1"}, {"status": Status.INITIATED}):
            for business_id, environment, expected in (
                ("biz_1", SANDBOX, [own]),
                ("biz_1", LIVE, [live]),
                ("biz_1", None, [live, own]),
                ("biz_2", SANDBOX, [other]),
                ("biz_2", LIVE, []),
                ("biz_3", SANDBOX, []),
            ):
                assert await page(db, of(business_id, environment, **fields)) == expected
        owners = (of("biz_2", reference=own.reference), of("biz_1", LIVE, reference=own.reference))
        assert [await page(db, wanted) for wanted in (*owners, of(reference=own.reference))] == [[], [], [own]]

    async def test_administrators_search_all_businesses(self, db: Database) -> None:
        email = "ada@example.com"
        own = await added(db, 1, customer_email=email)
        live = await added(db, 2, Trigger.SUCCEED, environment=LIVE, customer_email=email)
        other = await added(db, 3, business_id="biz_2", customer_email=email)
        await added(db, 4, business_id="biz_3", customer_email="bola@example.com")
        assert [p.reference for p in await page(db, PaymentFilter())] == [a_reference(n) for n in (4, 3, 2, 1)]
        for wanted, found in (
            (PaymentFilter(email=email), [other, live, own]),
            (PaymentFilter(email=email, environment=SANDBOX), [other, own]),
            (PaymentFilter(email=email, status=Status.SUCCESS), [live]),
            (PaymentFilter(email="nobody@example.com"), []),
            (PaymentFilter(environment=LIVE), [live]),
            (PaymentFilter(reference=other.reference), [other]),
        ):
            assert await page(db, wanted) == found
        assert await page(db, PaymentFilter(email=email), limit=2) == [other, live]
        assert await page(db, PaymentFilter(email=email), after=PaymentCursor.of(live)) == [own]

    async def test_times_include_their_start_and_not_their_end(self, db: Database) -> None:
        first, second, third = [await added(db, n, at=NOW + n * MINUTE) for n in (0, 1, 2)]
        ranges: tuple[tuple[datetime | None, datetime | None, list[Payment]], ...] = (
            (NOW, NOW + 2 * MINUTE, [second, first]),
            (NOW + MINUTE, None, [third, second]),
            (None, NOW + MINUTE, [first]),
            (NOW + 3 * MINUTE, None, []),
        )
        for since, until, expected in ranges:
            assert await page(db, of(since=since, until=until)) == expected
        above = PaymentCursor(NOW + HOUR, a_reference(3))  # a cursor above the end does not widen the range
        assert await page(db, of(until=NOW + MINUTE), after=above) == [first]

    async def test_expiry_counts_from_its_instant_in_lists_and_summaries(self, db: Database) -> None:
        payment, failed = await added(db, 1), await added(db, 2, Trigger.FAIL)
        before, after = NOW + HOUR - TICK, NOW + HOUR
        both = [PaymentTotal(NOW.date(), Status.FAILED, 2, 300000)]
        for business_id in ("biz_1", None):
            initiated, ended = (
                PaymentFilter(business_id, SANDBOX, status=status) for status in (Status.INITIATED, Status.FAILED)
            )
            assert [await page(db, wanted, before) for wanted in (initiated, ended)] == [[payment], [failed]]
            assert [await page(db, wanted, after) for wanted in (initiated, ended)] == [[], [failed, payment]]
            assert [await totals(db, wanted, after) for wanted in (initiated, ended)] == [[], both]
        assert [total.status for total in await totals(db, now=before)] == [Status.INITIATED, Status.FAILED]
        assert await totals(db, now=after) == both

    async def test_an_address_is_compared_without_letter_case(self, db: Database) -> None:
        upper = await added(db, 1, customer_email="Ada.Ọla@Example.com")
        lower = await added(db, 2, customer_email="ada.ọla@example.com", business_id="biz_2")
        await added(db, 3, customer_email="ada.ola@example.com")
        for email in ("Ada.Ọla@Example.com", "ada.ọla@example.com", "ADA.ỌLA@EXAMPLE.COM"):
            by_reference = [PaymentFilter(email=email, reference=a_reference(number)) for number in (1, 3)]
            found = [await page(db, wanted) for wanted in (of(email=email), PaymentFilter(email=email), *by_reference)]
            assert found == [[upper], [lower, upper], [upper], []]

    async def test_all_filters_hold_together(self, db: Database) -> None:
        payment = await added(db, 1, Trigger.SUCCEED, customer_email="ada@example.com", idempotency_key="order-1")
        right_and_wrong: dict[str, tuple[Any, Any]] = {
            "status": (Status.SUCCESS, Status.FAILED),
            "since": (NOW, NOW + TICK),
            "until": (NOW + MINUTE, NOW),
            "reference": (payment.reference, a_reference(2)),
            "idempotency_key": ("order-1", "order-2"),
            "email": ("ada@example.com", "bola@example.com"),
        }
        right = {name: value for name, (value, _) in right_and_wrong.items()}
        assert await page(db, of(**right)) == [payment]
        assert await page(db, of(**right), after=PaymentCursor.of(payment)) == []
        for name, (_, wrong) in right_and_wrong.items():
            assert await page(db, of(**{**right, name: wrong})) == [], name

    async def test_a_summary_counts_and_adds_up_by_utc_day_and_status(self, db: Database) -> None:
        midnight = NOW.replace(hour=0) + DAY
        largest = 2**53 - 1
        await added(db, 1, Trigger.SUCCEED, at=midnight - TICK, amount=100)
        await added(db, 2, Trigger.SUCCEED, at=midnight, amount=largest)
        await added(db, 3, Trigger.SUCCEED, at=midnight + HOUR, amount=largest)
        await added(db, 4, Trigger.FAIL, at=midnight + HOUR, amount=300)
        await added(db, 5, environment=LIVE, at=midnight, amount=500)
        await added(db, 6, business_id="biz_2", at=midnight, amount=700)
        first, second = (midnight - DAY).date(), midnight.date()
        every = [
            PaymentTotal(first, Status.SUCCESS, 1, 100),
            PaymentTotal(second, Status.SUCCESS, 2, 2 * largest),
            PaymentTotal(second, Status.FAILED, 1, 300),
        ]
        for wanted, expected in (
            (OWN, every),
            (of(since=midnight), every[1:]),
            (of(until=midnight), every[:1]),
            (of(status=Status.FAILED), every[2:]),
            (of("biz_3"), []),
        ):
            assert await totals(db, wanted) == expected
        everywhere = await totals(db, PaymentFilter(since=midnight))
        assert everywhere[0] == PaymentTotal(second, Status.INITIATED, 2, 1200)
        assert [sum(total.count for total in await totals(db, most=most)) for most in (1, 2)] == [1, 2]

    async def test_a_summary_adds_up_the_fees_that_are_known(self, db: Database) -> None:
        await added(db, 1)
        for number, fee in ((2, 0), (3, 2250), (4, None)):
            payment = await added(db, number, Trigger.SUCCEED)
            await db.payments.lock(payment.reference)
            await db.payments.note(payment.with_fee(fee, None))
        day = NOW.date()
        assert await totals(db) == [
            PaymentTotal(day, Status.INITIATED, 1, 150000),
            PaymentTotal(day, Status.SUCCESS, 3, 450000, 2250, 297750, 2),
        ]
