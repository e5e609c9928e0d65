"""Payaza's lists of refunds and chargebacks, and the CSV file of its dashboard. It has no list of transactions.

Parameters and fields are those of Payaza's API reference, Fetch Refund History and Chargeback Transaction History.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from payagg.adapters.providers import statements
from payagg.adapters.providers.adapter import ProviderAdapter
from payagg.adapters.providers.amounts import kobo_of
from payagg.adapters.providers.listing import PAGE, PAGE_BYTES, Pace, line, page_of
from payagg.adapters.providers.provider_b.client import PayazaEnvelope, fault_of
from payagg.adapters.providers.provider_b.status_map import ABSENT, OUTCOMES, UNIT, is_known
from payagg.adapters.providers.references import identity, ours, word
from payagg.adapters.providers.transport import decode_body
from payagg.application.ports.providers import LinePage
from payagg.domain.adjustment import OPENED
from payagg.domain.attempt import NO_FACTS, ChargeFacts
from payagg.domain.reconciliation import LineKind, ProviderLine
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import Environment

PATHS = {
    LineKind.REFUND: "/refund-chargeback/refund/merchant/api/refund_history",
    LineKind.DISPUTE: "/refund-chargeback/chargeback/merchant/api/chargeback_requests",
}
# A chargeback under any other word waits for an answer, so that no money counts as kept or lost by mistake.
CHARGEBACK_ENDS = frozenset({"won", "lost", "accepted"})
REFUNDED = "SUCCESS"  # nothing moved before
STATEMENT = statements.StatementShape(
    columns={
        "merchant reference": "reference",
        "merchant transaction reference": "reference",
        "transaction reference": "id",
        "amount received": "amount",
        "transaction fee": "fee",
        "currency": "currency",
        "currency code": "currency",
        "transaction status": "status",
        "status": "status",
    },
    required=("reference", "amount", "currency", "status"),
    units={"amount received": UNIT, "transaction fee": UNIT},
    ignored=frozenset(
        [
            *("transaction type", "channel", "session id", "narration", "branch", "initiated date", "status reason"),
            *("current status date", "customer name", "customer email", "customer phone", "sender name"),
            *("request amount", "amount validation", "virtual account number"),
        ]
    ),
)


class _Currency(msgspec.Struct):
    code: Any = None


class _Returned(msgspec.Struct):
    """The transaction whose money went back."""

    merchant_reference: Any = None
    transaction_reference: Any = None
    currency: _Currency = msgspec.field(default_factory=_Currency)


class _ListedReturn(msgspec.Struct):
    """A refund or a chargeback. `transaction_reference` is a refund's own, but a chargeback's transaction's."""

    transaction: _Returned
    id: Any = None
    transaction_reference: Any = None
    refund_order_id: Any = None
    refund_amount: msgspec.Raw = ABSENT
    original_amt: msgspec.Raw = ABSENT
    mpgs_refund_status: Any = None
    chargeback_status: Any = None


class _Content(msgspec.Struct):
    content: list[msgspec.Raw]
    last: Any = None


@dataclass(frozen=True)
class PayazaLists:
    provider: ProviderAdapter
    kinds = (LineKind.REFUND, LineKind.DISPUTE)

    async def lines(
        self,
        kind: LineKind,
        since: datetime,
        until: datetime,
        credentials: Mapping[str, str],
        environment: Environment,
    ) -> AsyncIterator[LinePage]:
        pace, number, has_more = Pace(), 1, True
        # Days alone, whose zone is not documented: one more on either side loses nothing.
        wanted = {"from": f"{since:%Y-%m-%d}", "to": f"{until:%Y-%m-%d}", "size": PAGE}
        if kind is LineKind.REFUND:
            wanted["refund_status"] = REFUNDED
        while has_more:
            path = f"{PATHS[kind]}?{urlencode({**wanted, 'page': number})}"

            async def call(path: str = path) -> _Content:
                answer = await self.provider.send(credentials, environment, "GET", path, body_max=PAGE_BYTES)
                envelope = decode_body(answer.body, PayazaEnvelope)
                if not (answer.status == 200 and envelope.status == "success"):
                    raise fault_of(answer.status, envelope)
                return decode_body(envelope.data, _Content)

            page = await pace.ask(call)
            yield page_of(page.content, f"{kind.value.lower()} list, page {number}", lambda item: _line(kind, item))
            has_more = bool(page.content) and page.last is not True
            number += 1

    def read_statement(self, content: bytes, environment: Environment) -> LinePage:
        return statements.read(content, STATEMENT, _charge)


def _charge(row: Mapping[str, str], amount: int | None, fee: int | None) -> ProviderLine | None:
    if amount is None:
        return None
    proven = {amount, amount - fee} if fee is not None and fee < amount else {amount}
    told, outcome = row["reference"], OUTCOMES.get(row["status"], Outcome.PENDING)
    is_paid = outcome is Outcome.SUCCEEDED
    report = ProviderReport(
        provider_reference=ours(told) or f"other:{word(told)}",
        outcome=outcome,
        word=word(row["status"]),
        amounts=frozenset(proven),
        currency=word(row["currency"]),
        is_known_status=is_known(row["status"]),
        # By the id, two charges of one reference are told apart.
        facts=ChargeFacts(identity(row.get("id")), fee=fee, received=amount) if is_paid else NO_FACTS,
    )
    return line(LineKind.CHARGE, row.get("id") or f"of {told}", proven, None, report)


def _line(kind: LineKind, item: msgspec.Raw) -> ProviderLine | None:
    told = decode_body(item, _ListedReturn)
    is_refund, paid = kind is LineKind.REFUND, told.transaction
    named = (paid.merchant_reference, paid.transaction_reference, told.refund_order_id, told.transaction_reference)
    reference = next((known for known in map(ours, named) if known is not None), None)
    amount = kobo_of(told.refund_amount if is_refund else told.original_amt, UNIT)
    if amount is None or not any(isinstance(text, str) for text in named):
        return None
    said = told.mpgs_refund_status if is_refund else told.chargeback_status
    details = {"refundId" if is_refund else "disputeId": word(str(told.id))}
    if is_refund:
        outcome = Outcome.REVERSED if said == REFUNDED else Outcome.PENDING
    else:
        # Two words for one state are one fact, which the merchant is told once.
        status = said.lower() if isinstance(said, str) else ""
        outcome, said = Outcome.DISPUTED, status if status in CHARGEBACK_ENDS else OPENED
        details["state"] = said
    report = ProviderReport(
        provider_reference=reference or f"other:{next(word(text) for text in named if isinstance(text, str))}",
        outcome=outcome,
        word=word(said),
        amounts=frozenset({amount}),
        currency=word(paid.currency.code),
        details=details,
    )
    return line(kind, told.id, (amount,), None, report)
