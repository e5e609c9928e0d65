"""Cursors, instants, filters and cells, without a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from payagg_testing.builders import NOW, a_payment
from payagg_testing.clocks import ManualClock
from payagg_testing.memory import MemoryStore
from payagg_testing.strategies import DIGITS, LETTERS, references

import payagg.application.reports.search as module
from payagg.application.ports.outside import Unavailable
from payagg.application.reports.search import EXPORT_SLICE, PaymentSearch
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment_search import PaymentCursor, PaymentFilter
from payagg.domain.rate_limit import RateLimit
from tests.support.refusals import refusal_in, refusal_of, refused_with

TODAY = PaymentFilter("biz_1", since=NOW, until=NOW + timedelta(days=1))
INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(4000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(INSTANTS, references())
def test_a_cursor_is_read_as_it_was_written(at: datetime, reference: str) -> None:
    cursor = PaymentCursor(at, reference)
    assert len(cursor.text) == 44
    assert PaymentCursor.parse(cursor.text) == cursor


# Hexadecimal digits and a reference do not begin with a zero byte, nor is any text of another length one.
@given(
    st.text(max_size=43)
    | st.text(LETTERS + LETTERS.upper() + DIGITS + "-_", min_size=42, max_size=42).map("AA".__add__)
)
def test_no_other_text_is_a_cursor(text: str) -> None:
    refused = refusal_of(PaymentCursor.parse, text)
    assert (refused.code, refused.field) == (ErrorCode.VALIDATION_ERROR, "after")


async def summaries_of(number: int, monkeypatch: pytest.MonkeyPatch, most: int) -> tuple[PaymentSearch, ManualClock]:
    """Over a store with so many payments of today, where a business's summaries read `most` in a minute."""
    monkeypatch.setattr(module, "SUMMARY_READS", RateLimit(most))
    store, clock = MemoryStore(), ManualClock()
    for each in range(number):
        await store.transaction.payments.add(a_payment(reference=f"PAY-20250131-{each:06d}", business_id="biz_1"))
    return PaymentSearch(store, clock), clock


@pytest.mark.rule("reports.4")
async def test_a_summary_of_too_many_payments_is_refused_and_costs_what_it_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (search, clock), too_many = await summaries_of(11, monkeypatch, most=10), (ErrorCode.VALIDATION_ERROR, "to")
    for of_all in (False, True):
        assert await refused_with(search.summary(TODAY, of_all=of_all)) == too_many
    assert await refused_with(search.summary_csv(TODAY)) == (ErrorCode.RATE_LIMITED, None)
    clock.move(timedelta(minutes=1))
    assert await refused_with(search.summary_csv(TODAY)) == too_many


@pytest.mark.rule("reports.19")
async def test_a_business_has_so_many_payments_added_up_in_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    search, clock = await summaries_of(4, monkeypatch, most=6)
    for _ in range(2):
        await search.summary(TODAY)
    refused = await refusal_in(search.summary(TODAY))
    assert (refused.code, refused.retry_after) == (ErrorCode.RATE_LIMITED, 20)
    await search.summary(replace(TODAY, business_id="biz_2"))  # another one does not wait for it
    for _ in range(3):
        await search.summary(TODAY, of_all=True)  # nor does an administrator
    clock.move(timedelta(seconds=20))
    await search.summary(TODAY)


@pytest.mark.rule("reports.19")
async def test_a_business_has_one_summary_added_up_at_a_time_and_one_that_breaks_off_costs_as_much_as_the_largest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> NoReturn:
        raise Unavailable("the database went away")

    search, clock = await summaries_of(4, monkeypatch, most=6)
    begin = search.store.begin

    @asynccontextmanager
    async def begin_later() -> AsyncIterator[object]:
        await asyncio.sleep(0)  # the memory store alone lets nobody else on meanwhile
        async with begin() as tx:
            yield tx

    monkeypatch.setattr(search.store, "begin", begin_later)
    answers = await asyncio.gather(*(search.summary(TODAY) for _ in range(9)), return_exceptions=True)
    # Had they begun together, none would have been refused.
    assert [isinstance(answer, Refusal) for answer in answers] == [False, False, *[True] * 7]
    clock.move(timedelta(minutes=2))
    monkeypatch.setattr(search.store, "begin", broken)
    answers = await asyncio.gather(*(search.summary(TODAY) for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unavailable, Unavailable, Refusal]


@pytest.mark.rule("reports.18")
async def test_an_export_gives_others_their_turn_between_slices() -> None:
    store, turns = MemoryStore(), 0
    for number in range(3 * EXPORT_SLICE):
        await store.transaction.payments.add(a_payment(reference=f"PAY-20250131-{number:06d}", business_id="biz_1"))

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    waiting = asyncio.create_task(other())
    seen = [turns async for _ in PaymentSearch(store, ManualClock()).export(PaymentFilter("biz_1"))]
    waiting.cancel()
    assert len(seen) == 1 + 3  # a header and three slices
    assert seen[1] < seen[2] < seen[3]


@pytest.mark.rule("reports.18")
async def test_a_business_exports_one_list_at_a_time() -> None:
    search, theirs = PaymentSearch(MemoryStore(), ManualClock()), PaymentFilter("biz_1")
    first, second, other = search.export(theirs), search.export(theirs), search.export(PaymentFilter("biz_2"))
    await anext(first)
    assert (await refused_with(anext(second)))[0] == ErrorCode.RATE_LIMITED
    assert await anext(other)
    await first.aclose()
    assert await anext(search.export(theirs))
