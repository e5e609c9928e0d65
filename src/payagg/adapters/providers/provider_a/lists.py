"""Paystack's lists of transactions, refunds and disputes, and the CSV file that its dashboard exports."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from payagg.adapters.providers.adapter import ProviderAdapter
from payagg.adapters.providers.listing import (
    PAGE,
    PAGE_BYTES,
    Pace,
    StatementShape,
    foreign,
    line,
    page_of,
    query,
    read_csv,
)
from payagg.adapters.providers.provider_a.client import PaystackEnvelope, fault_of
from payagg.adapters.providers.provider_a.status_map import ABSENT, DOMAINS, UNIT, PaystackTransaction, report_of
from payagg.adapters.providers.provider_a.webhook import DISPUTE_RESOLVED, REFUNDED, read_event
from payagg.adapters.providers.transport import decode_body
from payagg.adapters.providers.values import kobo_of, ours, word
from payagg.application.ports.providers import LinePage
from payagg.domain.checks import with_changes
from payagg.domain.reconciliation import LineKind, ProviderLine
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment

PATHS = {LineKind.CHARGE: "/transaction", LineKind.REFUND: "/refund", LineKind.DISPUTE: "/dispute"}
PROCESSED, DISPUTED = "processed", "charge.dispute.create"
DISPUTE_ENDS = ("resolved", "archived")
STATEMENT = StatementShape(
    columns={
        "id": "id",
        "transaction id": "id",
        "reference": "reference",
        "transaction reference": "reference",
        "amount": "amount",
        "amount paid": "amount",
        "amount (ngn)": "amount",
        "amount (kobo)": "amount",
        "fees": "fee",
        "paystack fees": "fee",
        "fees (ngn)": "fee",
        "currency": "currency",
        "status": "status",
        "transaction date": "at",
        "created at": "at",
    },
    required=("reference", "amount", "currency", "status"),
    # The dashboard shows naira.
    units={
        **dict.fromkeys(("amount", "amount paid", "amount (ngn)", "fees", "paystack fees", "fees (ngn)"), 100),
        "amount (kobo)": 1,
    },
    ignored=frozenset(
        [
            *("channel", "customer email", "customer name", "customer phone", "email", "email address", "customer"),
            *("paid at", "gateway response", "message", "card type", "bank"),
            *("ip address", "metadata", "settlement", "subaccount", "plan", "integration", "domain", "phone"),
        ]
    ),
)


class _ListedTransaction(PaystackTransaction):
    created_at: Any = None
    createdAt: Any = None  # noqa: N815 - both spellings are in use


class _ListedRefund(msgspec.Struct):
    """`transaction` is a number in most lists; the reference that events carry is then asked for. `dispute` is the
    number of the dispute that it was made for, if any."""

    id: Any = None
    transaction: Any = None
    dispute: Any = None
    transaction_reference: Any = None
    amount: msgspec.Raw = ABSENT
    status: Any = None
    created_at: Any = None
    createdAt: Any = None  # noqa: N815


class _ListedDispute(msgspec.Struct):
    id: Any = None
    status: Any = None
    transaction: _ListedTransaction = msgspec.field(default_factory=_ListedTransaction)
    createdAt: Any = None  # noqa: N815
    created_at: Any = None


@dataclass(frozen=True)
class PaystackLists:
    provider: ProviderAdapter
    kinds = tuple(LineKind)

    async def lines(
        self,
        kind: LineKind,
        since: datetime,
        until: datetime,
        credentials: Mapping[str, str],
        environment: Environment,
    ) -> AsyncIterator[LinePage]:
        reading = _Reading(self.provider, credentials, environment)
        number, read, has_more = 1, 0, True
        first, last = query(since, until)
        while has_more:
            wanted = urlencode({"from": first, "to": last, "perPage": PAGE, "page": number})
            envelope = await reading.get(f"{PATHS[kind]}?{wanted}")
            items = decode_body(envelope.data, list[msgspec.Raw])
            references = await reading.references(items) if kind is LineKind.REFUND else {}
            where = f"{kind.value.lower()} list, page {number}"
            page = page_of(items, where, lambda item, known=references: _line(kind, item, known))  # type: ignore[misc]
            told = envelope.meta.get("total") if isinstance(envelope.meta, dict) else None
            total = told if type(told) is int else None
            yield LinePage(page.lines, page.unreadable, total)
            # A page may be shorter than asked for: no maximum is documented.
            read += len(items)
            has_more = bool(items) and (len(items) >= PAGE or read < (total or 0))
            number += 1

    def read_statement(self, content: bytes, environment: Environment) -> LinePage:
        domain = next(name for name, one in DOMAINS.items() if one is environment)

        def line_of(row: Mapping[str, str], amount: int | None, fee: int | None) -> ProviderLine | None:
            if amount is None:
                return None
            told = PaystackTransaction(
                status=row["status"].lower(),
                reference=row["reference"],
                domain=domain,
                currency=row["currency"],
                amount=msgspec.Raw(str(amount).encode()),
                id=row.get("id"),  # by which two charges of one reference are told apart
            )
            return _charge(told, row.get("id") or f"of {row['reference']}", row.get("at"), fee)

        return read_csv(content, STATEMENT, line_of)


@dataclass
class _Reading:
    """One reading of one list."""

    provider: ProviderAdapter
    credentials: Mapping[str, str]
    environment: Environment

    def __post_init__(self) -> None:
        self.pace = Pace()

    async def get(self, path: str) -> PaystackEnvelope:
        """A good answer's envelope; raises ProviderFault."""

        async def call() -> PaystackEnvelope:
            answer = await self.provider.send(self.credentials, self.environment, "GET", path, body_max=PAGE_BYTES)
            envelope = decode_body(answer.body, PaystackEnvelope)
            if answer.status != 200 or envelope.status is not True:
                raise fault_of(answer.status, envelope)
            return envelope

        return await self.pace.ask(call)

    async def references(self, items: list[msgspec.Raw]) -> dict[int, str]:
        """Of transactions that refunds name by number alone: the reference of each."""
        found: dict[int, str] = {}
        for item in items:
            try:
                refund = decode_body(item, _ListedRefund)
            except ProviderFault:
                continue  # named as unreadable where it is read
            number = refund.transaction
            if type(number) is not int or number in found or isinstance(refund.transaction_reference, str):
                continue
            try:
                transaction = decode_body((await self.get(f"/transaction/{number}")).data, _ListedTransaction)
            except ProviderFault as fault:
                if fault.kind not in (FaultKind.REJECTED, FaultKind.MALFORMED):
                    raise
                continue  # no such transaction: the refund cannot be read
            found[number] = transaction.reference if isinstance(transaction.reference, str) else ""
        return found


def _line(kind: LineKind, item: msgspec.Raw, references: Mapping[int, str]) -> ProviderLine | None:
    if kind is LineKind.CHARGE:
        told = decode_body(item, _ListedTransaction)
        return _charge(told, told.id, told.created_at or told.createdAt)
    return _refund(item, references) if kind is LineKind.REFUND else _dispute(item)


def _charge(told: PaystackTransaction, id: object, at: object, fee: int | None = None) -> ProviderLine | None:
    """`fee`, in kobo, may be in the amount: a file does not say who bore it."""
    reference = ours(told.reference)
    report = report_of(told, reference or f"other:{word(told.reference)}")
    proven = report.amounts | {amount - fee for amount in report.amounts if fee is not None and fee < amount}
    return line(LineKind.CHARGE, id, proven, at, with_changes(report, amounts=proven))


def _refund(item: msgspec.Raw, references: Mapping[int, str]) -> ProviderLine | None:
    """Read as the event of it would be, so that both are one fact; nothing moved before it was processed. A
    dispute's own list tells what went back for it: told here too, it would count twice."""
    refund = decode_body(item, _ListedRefund)
    amount = kobo_of(refund.amount, UNIT)
    reference = refund.transaction_reference
    if not isinstance(reference, str):
        told = refund.transaction
        reference = told.get("reference") if isinstance(told, dict) else references.get(told)
    if amount is None or not isinstance(reference, str):
        return None
    report = ProviderReport(ours(reference) or f"other:{word(reference)}", Outcome.PENDING, word(refund.status))
    if refund.status == PROCESSED and refund.dispute is None:
        report = _as_event(REFUNDED, item, reference) or foreign(reference, Outcome.REVERSED, refund.status)
    return line(LineKind.REFUND, refund.id, (amount,), refund.created_at or refund.createdAt, report)


def _dispute(item: msgspec.Raw) -> ProviderLine | None:
    dispute = decode_body(item, _ListedDispute)
    reference = dispute.transaction.reference
    name = DISPUTE_RESOLVED if dispute.status in DISPUTE_ENDS else DISPUTED
    report = _as_event(name, item, None) or foreign(reference, Outcome.DISPUTED, dispute.status)
    amount = kobo_of(dispute.transaction.amount, UNIT)
    amounts = report.amounts or (() if amount is None else (amount,))
    at = dispute.createdAt or dispute.created_at
    return line(LineKind.DISPUTE, dispute.id, amounts, at, report) if isinstance(reference, str) else None


def _as_event(name: str, item: msgspec.Raw, reference: str | None) -> ProviderReport | None:
    data = decode_body(item, dict[str, msgspec.Raw])
    if reference is not None:
        data["transaction_reference"] = msgspec.Raw(msgspec.json.encode(reference))
    return read_event(msgspec.json.encode({"event": name, "data": data}))
