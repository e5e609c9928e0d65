"""Cursors, instants, filters and cells, without a server."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from payagg_testing.builders import NOW, a_payment
from payagg_testing.clocks import ManualClock
from payagg_testing.strategies import DIGITS, LETTERS, references

from payagg.adapters.memory import MemoryStore
from payagg.application.payment_export import COLUMNS, cells, lines
from payagg.application.payment_search import PaymentQuery, PaymentSearch
from payagg.application.schemas.payments import PaymentDetail
from payagg.domain.errors import ErrorCode
from payagg.domain.payment_search import PaymentCursor, PaymentFilter
from tests.support.refusals import refusal_of, refused_with

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


def test_a_key_is_searched_within_a_business_alone() -> None:
    query = PaymentQuery(idempotency_key="order-1")
    assert refusal_of(query.filter, None, None).field == "businessId"
    assert query.filter("biz_1", None).idempotency_key == "order-1"


def test_cells_follow_the_columns_in_the_words_of_json() -> None:
    payment = a_payment(metadata={"a": [1, "é"]}, customer_name="Ada, Obi", customer_phone="@1")
    header, row, rest = lines([COLUMNS, cells(PaymentDetail.of(payment))]).decode().split("\r\n")
    assert header.startswith("reference,amount,currency,status,environment,gateway,customerEmail")
    assert row.startswith("PAY-20250131-7K2M9X,150000,NGN,INITIATED,SANDBOX,,,")
    assert '"Ada, Obi",\'@1,,"{""a"":[1,""é""]}",,2025-01-31T12:00:00Z,' in row
    assert rest == ""


@pytest.mark.anyio
async def test_a_summary_over_more_than_a_month_is_refused_before_anything_is_read() -> None:
    search = PaymentSearch(MemoryStore(), ManualClock())
    whole = PaymentFilter("biz_1", since=NOW, until=NOW + timedelta(days=31))
    assert (await search.summary(whole)).days == []
    longer = PaymentFilter("biz_1", since=NOW, until=NOW + timedelta(days=31, microseconds=1))
    assert (await refused_with(search.summary(longer)))[1] == "to"
