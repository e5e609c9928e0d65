"""Payaza's lists of refunds and chargebacks, and the CSV file of its dashboard. It has no list of transactions.

The names of the fields are not documented beyond the addresses, so each is looked for under every name that Payaza
gives to the same thing elsewhere; what is under none of them is unreadable, and reported as such.
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
REFUNDED = frozenset({"completed", "successful", "success", "processed", "refunded"})
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


class _ListedReturn(msgspec.Struct):
    """A refund or a chargeback."""

    merchant_reference: Any = None
    merchant_transaction_reference: Any = None
    transaction_reference: Any = None
    refund_reference: Any = None
    chargeback_reference: Any = None
    id: Any = None
    refund_amount: msgspec.Raw = ABSENT
    chargeback_amount: msgspec.Raw = ABSENT
    amount: msgspec.Raw = ABSENT
    refund_status: Any = None
    chargeback_status: Any = None
    status: Any = None
    currency: Any = None
    currency_code: Any = None


class _Content(msgspec.Struct):
    content: list[msgspec.Raw]


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
        pace, number, has_more = Pace(), 0, True
        while has_more:
            # Days alone, whose zone is not documented: one more on either side loses nothing.
            days = {"from": f"{since:%Y-%m-%d}", "to": f"{until:%Y-%m-%d}"}
            path = f"{PATHS[kind]}?{urlencode(days | {'page': number, 'size': PAGE})}"

            async def call(path: str = path) -> list[msgspec.Raw]:
                answer = await self.provider.send(credentials, environment, "GET", path, body_max=PAGE_BYTES)
                envelope = decode_body(answer.body, PayazaEnvelope)
                if not (answer.status == 200 and envelope.success is True):
                    raise fault_of(answer.status, envelope)
                is_list = bytes(envelope.data).lstrip()[:1] == b"["
                data = envelope.data
                return decode_body(data, list[msgspec.Raw]) if is_list else decode_body(data, _Content).content

            items = await pace.ask(call)
            yield page_of(items, f"{kind.value.lower()} list, page {number + 1}", lambda item: _line(kind, item))
            has_more = len(items) >= PAGE
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
    is_refund = kind is LineKind.REFUND
    named = (told.merchant_reference, told.merchant_transaction_reference, told.transaction_reference)
    reference = next((known for known in map(ours, named) if known is not None), None)
    id = (told.refund_reference if is_refund else told.chargeback_reference) or told.id
    said = (told.refund_status if is_refund else told.chargeback_status) or told.status
    own = told.refund_amount if is_refund else told.chargeback_amount
    amount = kobo_of(told.amount if bytes(own) in (b"", b"null") else own, UNIT)
    if amount is None or not any(isinstance(text, str) for text in named):
        return None
    status = said.lower() if isinstance(said, str) else ""
    details = {"refundId" if is_refund else "disputeId": word(str(id))}
    if is_refund:
        outcome = Outcome.REVERSED if status in REFUNDED else Outcome.PENDING
    else:
        # Two words for one state are one fact, which the merchant is told once.
        outcome, said = Outcome.DISPUTED, status if status in CHARGEBACK_ENDS else OPENED
        details["state"] = said
    report = ProviderReport(
        provider_reference=reference or f"other:{next(word(text) for text in named if isinstance(text, str))}",
        outcome=outcome,
        word=word(said),
        amounts=frozenset({amount}),
        currency=word(told.currency or told.currency_code),
        details=details,
    )
    return line(kind, id, (amount,), None, report)
