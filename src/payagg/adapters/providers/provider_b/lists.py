"""Payaza's lists of refunds and chargebacks, and the CSV file of its dashboard. It has no list of transactions.

Parameters and fields are those of Payaza's API reference, Fetch Refund History and Chargeback Transaction History. It
does not say whose reference a line names its transaction by, so where none is ours Payaza is asked for ours.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

import msgspec

from payagg.adapters.providers.adapter import ProviderAdapter
from payagg.adapters.providers.listing import PAGE, PAGE_BYTES, Pace, StatementShape, line, page_of, read_csv
from payagg.adapters.providers.provider_b.client import (
    OWN_QUERY,
    PayazaEnvelope,
    PayazaTransaction,
    fault_of,
    is_unknown_reference,
)
from payagg.adapters.providers.provider_b.status_map import ABSENT, OUTCOMES, UNIT, is_known
from payagg.adapters.providers.transport import decode_body
from payagg.adapters.providers.values import identity, kobo_of, ours, word
from payagg.application.ports.providers import LinePage
from payagg.domain.adjustment import OPENED
from payagg.domain.attempt import NO_FACTS, ChargeFacts
from payagg.domain.reconciliation import LineKind, ProviderLine
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment

PATHS = {
    LineKind.REFUND: "/refund-chargeback/refund/merchant/api/refund_history",
    LineKind.DISPUTE: "/refund-chargeback/chargeback/merchant/api/chargeback_requests",
}
# A chargeback under any other word waits for an answer, so that no money counts as kept or lost by mistake.
CHARGEBACK_ENDS = frozenset({"won", "lost", "accepted"})
REFUNDED = "SUCCESS"  # nothing moved before
STATEMENT = StatementShape(
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
        ask = partial(self._ask, Pace(), credentials, environment)
        number, has_more = 1, True
        # Days alone, whose zone is not documented: one more on either side loses nothing.
        wanted = {"from": f"{since:%Y-%m-%d}", "to": f"{until:%Y-%m-%d}", "size": PAGE}
        if kind is LineKind.REFUND:
            wanted["refund_status"] = REFUNDED
        while has_more:
            envelope = await ask(f"{PATHS[kind]}?{urlencode({**wanted, 'page': number})}")
            page = decode_body(envelope.data, _Content)
            where, ours_of = f"{kind.value.lower()} list, page {number}", await _references(ask, page.content)
            yield page_of(page.content, where, lambda item, known=ours_of: _line(kind, item, known))  # type: ignore[misc]
            has_more = bool(page.content) and page.last is not True
            number += 1

    async def _ask(
        self, pace: Pace, credentials: Mapping[str, str], environment: Environment, path: str
    ) -> PayazaEnvelope:
        """A good answer's envelope, or that of no such transaction; raises ProviderFault."""

        async def call() -> PayazaEnvelope:
            answer = await self.provider.send(credentials, environment, "GET", path, body_max=PAGE_BYTES)
            envelope = decode_body(answer.body, PayazaEnvelope)
            is_good = answer.status == 200 and (envelope.success is True or envelope.status == "success")
            if not (is_good or is_unknown_reference(envelope)):
                raise fault_of(answer.status, envelope)
            return envelope

        return await pace.ask(call)

    def read_statement(self, content: bytes, environment: Environment) -> LinePage:
        return read_csv(content, STATEMENT, _charge)


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


def _names(told: _ListedReturn) -> list[str]:
    """What may name its transaction."""
    names = (told.transaction.transaction_reference, told.refund_order_id, told.transaction_reference)
    return [name for name in names if isinstance(name, str)]


async def _references(
    ask: Callable[[str], Awaitable[PayazaEnvelope]], items: Sequence[msgspec.Raw]
) -> dict[str, object]:
    """Of transactions that lines name by Payaza's own reference alone: the one that their merchant gave each."""
    found: dict[str, object] = {}
    for item in items:
        try:
            names = _names(decode_body(item, _ListedReturn))
            if names and names[0] not in found and not any(map(ours, names)):
                found[names[0]] = None
                envelope = await ask(f"{OWN_QUERY}?{urlencode({'transaction_reference': names[0]})}")
                found[names[0]] = decode_body(envelope.data, PayazaTransaction).merchant_transaction_reference
        except ProviderFault as fault:
            if fault.kind not in (FaultKind.REJECTED, FaultKind.MALFORMED):
                raise
    return found


def _line(kind: LineKind, item: msgspec.Raw, references: Mapping[str, object]) -> ProviderLine | None:
    told = decode_body(item, _ListedReturn)
    is_refund, names = kind is LineKind.REFUND, _names(told)
    amount = kobo_of(told.refund_amount if is_refund else told.original_amt, UNIT)
    if amount is None or not names:
        return None
    reference = next(filter(None, map(ours, names)), None) or ours(references.get(names[0]))
    said = told.mpgs_refund_status if is_refund else told.chargeback_status
    status = said.lower() if isinstance(said, str) else ""
    details = {"refundId" if is_refund else "disputeId": word(str(told.id))}
    if is_refund:
        outcome = Outcome.REVERSED if status == REFUNDED.lower() else Outcome.PENDING
    else:
        # Two words for one state are one fact, which the merchant is told once.
        outcome, said = Outcome.DISPUTED, status if status in CHARGEBACK_ENDS else OPENED
        details["state"] = said
    report = ProviderReport(
        provider_reference=reference or f"other:{word(names[0])}",
        outcome=outcome,
        word=word(said),
        amounts=frozenset({amount}),
        currency=word(told.transaction.currency.code),
        details=details,
    )
    return line(kind, told.id, (amount,), None, report)
