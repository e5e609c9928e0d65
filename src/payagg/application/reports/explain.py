"""The timeline of one payment: everything that happened to it, in order, with actor and reason. No personal data."""

from datetime import datetime

from payagg.application.accounts.audit import one_line
from payagg.application.gateways.credentials import GatewayCredentials
from payagg.application.ports.elsewhere import NOWHERE, Elsewhere
from payagg.application.ports.outside import Unavailable
from payagg.application.ports.payments import ArchiveDamaged, ArchivedHistories
from payagg.application.ports.store import Store
from payagg.application.reports.anomalies import facts_of, naira
from payagg.application.reports.timeline import accounts_of, gateways_of, history_of
from payagg.domain.anomaly import Anomaly
from payagg.domain.attempt import Attempt
from payagg.domain.audit import AuditFilter
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import Gateway, GatewayStatus
from payagg.domain.payment import Payment
from payagg.domain.resolution import Resolution

ENTRIES_MAX = 100
Line = tuple[datetime, str]


async def timeline(
    store: Store,
    reference: str,
    archive: ArchivedHistories | None = None,
    sealed: GatewayCredentials | None = None,
    elsewhere: Elsewhere = NOWHERE,
) -> list[str]:
    """Lines to print; raises PAYMENT_NOT_FOUND, or as Elsewhere does. Archived rows are read from the archive; a line
    names what cannot be read. `sealed` opens the accounts that the charges are compared with."""
    payment = await store.find_payment(reference)
    if payment is None:
        await elsewhere.ensure_payment_here(reference)
        raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
    async with store.begin() as tx:
        history = await history_of(tx, reference)
        gateways = await gateways_of(tx, history.attempts)
        calls = await tx.provider_calls.of_payment(reference)
        anomalies = await tx.anomalies.of_payment(reference)
        resolutions = await tx.resolutions.of_payment(reference)
        entries = await tx.audit.list_entries(AuditFilter(object_id=reference), None, ENTRIES_MAX)
    transitions, attempts = history.transitions, history.attempts
    lines: list[Line] = []
    if history.archived is not None:
        _, part = history.archived
        lines.append((part.started_at, f"archive     part {part.number} at {part.folder}"))
        try:
            if archive is None:
                raise ArchiveDamaged("no archive is at hand")
            transitions, attempts, archived_calls = await archive.read(part, reference)
            calls = [*archived_calls, *calls]
        except (ArchiveDamaged, Unavailable, ModuleNotFoundError) as error:
            why = f"archive     its transitions, attempts and provider calls cannot be read: {error}"
            lines.append((part.started_at, why))
    kind = f"{payment.environment.value}, a test payment" if payment.is_test else payment.environment.value
    by = f" with {payment.api_key_id}" if payment.api_key_id is not None else ""
    lines.insert(0, (payment.created_at, f"initiated   {naira(payment.amount)} {kind}{by}"))
    for t in transitions:
        why = t.reason or t.trigger.value
        move = f"{t.from_status.value} -> {t.to_status.value}"
        lines.append((t.at, f"transition  {t.sequence}: {move} by {t.actor} ({why})"))
    accounts = accounts_of(gateways, sealed, payment.environment) if sealed is not None else {}
    for attempt in attempts:
        lines += _attempt(attempt, accounts.get(attempt.gateway_id))
    lines += [(g.updated_at, _deletion_note(g)) for g in gateways if g.status is GatewayStatus.DELETED]
    for c in calls:
        word = f" '{c.word}'" if c.word else ""
        what = f"{c.operation} at {c.gateway}, attempt {c.attempt}: {c.result}{word}"
        lines.append((c.at, f"provider    {what}, {c.duration_ms} ms, for {c.actor}"))
    lines += [(e.created_at, f"event       {e.sequence}: {e.type} {e.id}") for e in history.events]
    for d in history.deliveries:
        to = d.endpoint_id or "the payment's webhookUrl"
        lines.append((d.created_at, f"delivery    {d.id} of {d.event_type} to {to}"))
        if d.last_attempt_at is not None:
            answer = d.last_status_code or d.last_error or "no answer"
            later = f", next {_time(d.next_attempt_at)}" if d.next_attempt_at else ""
            lines.append(
                (d.last_attempt_at, f"delivery    {d.id} {d.status.value} after try {d.attempts}: {answer}{later}")
            )
    lines += [(e.at, f"audit       {e.action} by {e.realm.value}:{e.subject}") for e in entries]
    lines += [line for anomaly in anomalies for line in _anomaly(anomaly)]
    lines += [line for resolution in resolutions for line in _resolution(resolution)]
    # The sort is by instant alone and stable, so of equal instants the cause comes first.
    return [_head(payment), *(f"{_time(at)}  {text}" for at, text in sorted(lines, key=lambda line: line[0]))]


def _head(payment: Payment) -> str:
    why = f" ({payment.failure_reason})" if payment.failure_reason else ""
    facts = f"business {payment.business_id}, expires {_time(payment.expires_at)}"
    return f"{payment.reference}  {payment.status.value}{why}  {facts}"


def _attempt(attempt: Attempt, account: str | None) -> list[Line]:
    """`account` is the fingerprint of the provider account on file."""
    name = f"attempt     {attempt.number} at {attempt.gateway} as {attempt.provider_reference}"
    lines = [(attempt.created_at, f"{name}: claimed")]
    if attempt.hand_off is not None and attempt.handed_off_at is not None:
        lines.append((attempt.handed_off_at, f"{name}: handed off, {attempt.hand_off.kind.value}"))
    else:
        doubt = ", may have been handed off" if attempt.is_in_doubt else ""
        lines.append((attempt.created_at, f"{name}: now {attempt.state.value}{doubt}"))
    if attempt.last_decline is not None and attempt.last_ask_at is not None:
        lines.append((attempt.last_ask_at, f"{name}: card declined, {attempt.last_decline}"))
    if attempt.is_of_other_account(account):
        lines.append((attempt.created_at, f"{name}: made with another provider account than the one on file"))
    if attempt.confirmed_at is not None:
        lines.append((attempt.confirmed_at, f"{name}: paid, {_charge(attempt)}"))
    if attempt.next_ask_at is not None:
        lines.append((attempt.created_at, f"{name}: asked {attempt.asks} times, next {_time(attempt.next_ask_at)}"))
    return lines


def _charge(attempt: Attempt) -> str:
    fee = naira(attempt.fee) if attempt.fee is not None else "not known"
    facts = (attempt.provider_id or "not known", attempt.channel or "not known", fee)
    paid_at = _time(attempt.paid_at) if attempt.paid_at is not None else "not known"
    return "provider's id {}, channel {}, fee {}".format(*facts) + f", paid at {paid_at}"


def _deletion_note(gateway: Gateway) -> str:
    rest = "its credentials stay for settling" if gateway.has_credentials else "its credentials are wiped"
    return f"gateway     {gateway.id} ({gateway.slug}) deleted; {rest}"


def _anomaly(anomaly: Anomaly) -> list[Line]:
    facts = ", ".join(f"{name} {value}" for name, value in facts_of(anomaly.details))
    notice = f", told as event {anomaly.event_sequence}" if anomaly.event_sequence is not None else ""
    name = f"ANOMALY     {anomaly.id}"
    lines = [(anomaly.at, f"{name} {anomaly.kind.value} from {anomaly.source}: {facts}{notice}")]
    for note in anomaly.notes:
        lines.append((datetime.fromisoformat(note["at"]), f"{name} note by {note['by']}: {one_line(note['text'])}"))
    if anomaly.acknowledged_at is not None:
        lines.append((anomaly.acknowledged_at, f"{name} acknowledged by {anomaly.acknowledged_by}"))
    if anomaly.closed_at is not None:
        lines.append(
            (anomaly.closed_at, f"{name} closed by {anomaly.closed_by}: {one_line(anomaly.close_reason or '')}")
        )
    return lines


def _resolution(resolution: Resolution) -> list[Line]:
    name = f"resolution  {resolution.id}"
    why = f"{one_line(resolution.reason)} Evidence: {one_line(resolution.evidence)}"
    lines = [(resolution.requested_at, f"{name} to FAILED asked for by {resolution.requested_by}: {why}")]
    if resolution.confirmed_at is not None:
        lines.append((resolution.confirmed_at, f"{name} confirmed by {resolution.confirmed_by}"))
    return lines


def _time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}Z" if at else "never"
