"""CSV files as providers export them: columns by name, exact money, and one clear line for a file that is none."""

from datetime import UTC, datetime

import pytest

from payagg.adapters.providers.registry import lists_of
from payagg.application.ports.providers import LinePage
from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from tests.support.refusals import refusal_of

REFERENCE = "PAY-20250131-7K2M9X"
LISTS = lists_of(allow_loopback=False)
A = "Reference,Amount Paid,Currency,Status,Transaction Date,Customer Email"
B = "Merchant Reference,Transaction Reference,Amount Received,Transaction Fee,Currency,Transaction Status"


def read(text: str, slug: str = "provider_a") -> LinePage:
    return LISTS[slug].read_statement(text.encode(), Environment.LIVE)


def test_a_file_of_provider_a_is_read_with_its_mark_line_ends_and_quotes() -> None:
    text = f'\ufeff{A}\r\n{REFERENCE},"1,500.50",NGN,Success,2025-01-31T10:00:00Z,"Obi, ""Ada"" <a@b.c>"\r\n\r\n'
    (line,) = read(text).lines
    assert (line.reference, line.amount, line.report.outcome) == (REFERENCE, 150_050, Outcome.SUCCEEDED)
    assert (line.report.word, line.report.currency, line.report.environment) == ("success", "NGN", Environment.LIVE)
    assert line.at == datetime(2025, 1, 31, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("slug", "columns", "status"),
    [
        ("provider_a", A.replace("Transaction Date", "Id").replace("Customer Email", "Paystack Fees"), "Success"),
        ("provider_b", B, "Completed"),
        ("provider_b", B.lower().replace(" ", "_"), "Completed"),
    ],
)
def test_a_file_proves_the_amount_with_and_without_the_fee(slug: str, columns: str, status: str) -> None:
    """The payer may bear it."""
    row = {"reference": REFERENCE, "amount paid": "1528.00", "id": "P-C-1", "paystack fees": "28"}
    row |= {"merchant reference": REFERENCE, "amount received": "1528.00", "transaction fee": "28", "currency": "NGN"}
    row |= {"transaction reference": "P-C-1", "status": status, "transaction status": status}
    cells = [row[name.lower().replace("_", " ")] for name in columns.split(",")]
    (line,) = read(f"{columns}\n{','.join(cells)}\n", slug).lines
    assert (line.id, line.amount, line.report.amounts) == ("P-C-1", 152_800, frozenset({152_800, 150_000}))
    assert line.report.outcome is Outcome.SUCCEEDED


def test_columns_are_found_by_name_and_say_whether_they_are_naira_or_kobo() -> None:
    (line,) = read(f"Reference,Amount (kobo),Currency,Status\n{REFERENCE},150050,NGN,success\n").lines
    assert line.amount == 150_050
    (line,) = read(f"status,currency,amount,reference\nfailed,NGN,1500,{REFERENCE}\n").lines
    assert (line.amount, line.report.outcome) == (150_000, Outcome.FAILED)


def test_a_transaction_is_told_by_its_own_id() -> None:
    """Two of one reference are two charges."""
    for slug, columns in (
        ("provider_a", "Id,Reference,Amount,Currency,Status"),
        ("provider_b", "Transaction Reference,Merchant Reference,Amount Received,Currency,Status"),
    ):
        status = "success" if slug == "provider_a" else "Completed"
        lines = read("\n".join([columns, *(f"{id},{REFERENCE},1500,NGN,{status}" for id in (71, 72))]), slug).lines
        assert [(line.id, line.report.facts.provider_id) for line in lines] == [("71", "71"), ("72", "72")]


def test_a_row_whose_amount_is_no_whole_kobo_is_counted_and_not_guessed() -> None:
    for amount in ("19.999", "1,50", "", "-5", "1e400", "12 000", "₦5"):
        page = read(f'{A}\n{REFERENCE},"{amount}",NGN,success,,\n{REFERENCE},5,NGN,success,,\n')
        assert ([line.amount for line in page.lines], page.total) == ([500], 2)
        assert page.unreadable == ["row that ends at line 2"]
    # Nor one with too few or too many values.
    assert len(read(f"{A}\n{REFERENCE},5,NGN\n{REFERENCE},5,NGN,success,,,\n").unreadable) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Lacks a column: 'reference' or 'transaction reference'."),
        ("Reference,Amount,Currency\n", "Lacks a column: 'status'."),
        (A + ",Surprise\n", "Has an unknown column 'surprise'."),
        (A + ",Status\n", "Has the column 'status' twice."),
        (A + ",Amount\n", "Has two columns of one meaning (amount)."),
        (f'{A}\n"{REFERENCE}', "Is no CSV: unexpected end of data before line 2."),
        (b"\xff\xfe\x00", "Must be text in UTF-8."),
    ],
)
def test_a_file_of_another_shape_is_refused_in_one_line(text: str | bytes, message: str) -> None:
    content = text if isinstance(text, bytes) else text.encode()
    refused = refusal_of(LISTS["provider_a"].read_statement, content, Environment.LIVE)
    assert (refused.field, refused.message) == ("file", message)
