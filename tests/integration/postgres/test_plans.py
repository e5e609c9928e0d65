"""Every statement that is hot or sweeps, as the product sends it, on full tables: found by index, few rows touched."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from payagg_testing.builders import NOW, a_payment, an_attempt, an_endpoint, an_entry, an_event, an_id

from payagg.adapters.postgres.delivery_queue.queue import PostgresDeliveryQueue
from payagg.adapters.postgres.fast_path.statements import OF_REFERENCES, ORIGINALS, PAYMENTS, FastPath
from payagg.adapters.postgres.repositories.attempts import ATTEMPTS_OF
from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresTransaction
from payagg.application.ports.payments import ProviderCall
from payagg.application.ports.providers import ProviderEvent
from payagg.application.ports.reports import AdjustmentFilter, AnomalyFilter
from payagg.application.ports.webhooks import DeliveryAttemptResult, DeliveryResult
from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus, Severity
from payagg.domain.audit import AuditFilter
from payagg.domain.payment import Status, Trigger
from payagg.domain.payment_search import PaymentCursor, PaymentFilter
from payagg.domain.rate_limit import RateLimit
from payagg.domain.values import Environment
from payagg.entrypoints.http.api.metrics import snapshot
from tests.integration.postgres.query_plans import (
    BIG,
    EVERYBODY,
    Plan,
    Recorder,
    Watched,
    as_of_a_start,
    fill,
    nth,
    parents,
    watched,
)
from tests.support.assembly import services_over
from tests.support.postgres_world import execute

SANDBOX = Environment.SANDBOX
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
TX = Callable[[PostgresTransaction], Awaitable[Any]]
MANY = 64
prefixes = map("N{:02d}".format, count())  # of references that are drawn here
TOUCHED_MAX = 2_000  # rows that one step may look at: some for each lane or row that it is about, never the table


async def save(tx: PostgresTransaction) -> None:
    payment = await tx.payments.lock(nth(4))
    assert payment is not None
    moved, transition = payment.move(Trigger.PROCESS, NOW, actor="test")
    assert transition is not None
    await tx.payments.save(moved, transition)


async def save_attempt(tx: PostgresTransaction) -> None:
    await tx.attempts.save((await tx.attempts.of_payment(nth(1)))[0], "token")


async def add_facts(tx: PostgresTransaction) -> None:
    call = ProviderCall("call_1", nth(1), 1, "provider_a", "fetch", "PENDING", None, 20, "test", NOW)
    await tx.attempts.add(an_attempt(a_payment(reference=nth(0)), number=2))
    await tx.provider_calls.add(call)
    await tx.anomalies.add(Anomaly("anm_1", nth(1), AnomalyKind.MISMATCH, "test", {}, NOW))


async def close_anomaly(tx: PostgresTransaction) -> None:
    await tx.anomalies.add(Anomaly("anm_1", nth(1), AnomalyKind.MISMATCH, "test", {}, NOW))
    anomaly = await tx.anomalies.lock("anm_1")
    assert anomaly is not None
    await tx.anomalies.save(anomaly.close("admin:ada", "Done.", NOW))


async def emit(tx: PostgresTransaction) -> None:
    large = b'{"data":{"metadata":{"note":"%s"}}}' % (b"n" * 2_000)
    event = replace(an_event(an_id("evt", 7), body=large), reference=nth(1), sequence=2)
    await tx.webhook_events.emit(event, [])


async def redeliver(tx: PostgresTransaction) -> None:
    page, _ = await tx.webhook_events.deliveries("whe_0", 5, 1)
    found = await tx.webhook_events.delivery("whe_0", page[0].id)
    assert found is not None
    await tx.webhook_events.redeliver(found, NOW)


async def receive(tx: PostgresTransaction) -> None:
    event = ProviderEvent("inb_1", "provider_a", SANDBOX, b"digest", b"{}", NOW, next_attempt_at=NOW)
    assert await tx.inbox.add(event)
    await tx.inbox.save(replace(event, attempts=1))


async def clear_payers(tx: PostgresTransaction) -> None:
    references = [nth(4 * n + 2) for n in range(100)]
    await tx.upkeep.clear_payer(references)
    found = await tx.webhook_events.of_payments(references)
    assert len(found) == 100
    await tx.webhook_events.save_bodies(found[:3])


async def endpoints(tx: PostgresTransaction) -> None:
    await tx.endpoints.of_business(BIG)
    await tx.endpoints.subscribers(BIG, SANDBOX)
    await tx.endpoints.save(replace(an_endpoint("whe_0"), business_id=BIG))


async def merchants(tx: PostgresTransaction) -> None:
    await tx.gateway_choices.merchants("gw_1", None, 500, 20)
    await tx.gateway_choices.merchants("gw_1", "shop 7", 0, 20)
    await tx.gateway_choices.overrides("gw_1")
    await tx.gateway_choices.opt_outs()


async def audit(tx: PostgresTransaction) -> None:
    await tx.audit.add(an_entry())
    minute: dict[str, Any] = {"since": NOW + MINUTE / 2, "until": NOW + MINUTE}
    for wanted in (
        AuditFilter(),
        AuditFilter(**minute),
        AuditFilter(business_id="biz_7"),
        AuditFilter(business_id=BIG, action="webhook.test"),
        AuditFilter(subject="user 7", **minute),
        AuditFilter(object_id="whe_77"),
        AuditFilter(action="webhook.create", until=NOW + MINUTE),
        AuditFilter(action="gateway.enable"),
    ):
        await tx.audit.list_entries(wanted, None, 101)
        await tx.audit.list_entries(wanted, an_id("aud", 70_000, NOW + MINUTE), 101)


def listed(after: PaymentCursor | None = None, business_id: str | None = BIG, **wanted: Any) -> TX:
    one = PaymentFilter(business_id, SANDBOX if business_id else None, **wanted)
    return lambda tx: tx.payment_search.page(one, NOW, after, 20)


def totals(business_id: str | None, day: datetime) -> TX:
    wanted = PaymentFilter(business_id, SANDBOX, since=day, until=day + HOUR)
    return lambda tx: tx.payment_search.totals(wanted, NOW, 2_000_000)


def adjustments(business_id: str, **wanted: Any) -> TX:
    return lambda tx: tx.adjustments.page(AdjustmentFilter(business_id, SANDBOX, **wanted), 21)


def adjusted(business_id: str | None) -> TX:
    wanted = PaymentFilter(business_id, SANDBOX, since=NOW, until=NOW + timedelta(milliseconds=500))
    return lambda tx: tx.adjustments.totals(wanted)


AT_A = ("provider_a", SANDBOX)
# Indexes that several uses go by.
DUE = {"attempts_due", "attempts_pkey", "payments_pkey"}
DECIDES = {"payments_pkey", "attempts_pkey"}
LOG = {"deliveries_of_endpoint", "deliveries_due"}
EVENTS = {"events_of_business", "event_metadata_pkey"}
STORY = {"events_pkey", "deliveries_pkey", "event_metadata_pkey"}
KEYED = {"idempotency_keys_pkey", "payments_pkey"}
OF_PAYMENT = {"anomalies_of_payment"}
ADJUSTMENTS = {"anomalies_of_business", "anomalies_of_payment", "payments_pkey"}
# Each list asks whether a clock that was ahead dated any payment.
OF_ALL = {"payments_by_creation", "payments_pkey"}
OF_BUSINESS = {"payments_by_business", *OF_ALL}
OF_EMAIL = {"payments_by_payer", *OF_ALL}
MIDDLE = PaymentCursor(NOW - 12 * HOUR, nth(0))
BEFORE_ALL = NOW - 100 * HOUR
# Lists and summaries by what they are filtered by: none of them reads what it does not show.
SEARCHES: dict[str, tuple[TX, set[str]]] = {
    "payments of a merchant": (listed(business_id="biz_7"), OF_BUSINESS),
    "payments of the big merchant": (listed(), OF_BUSINESS),
    "deep page of the big merchant": (listed(MIDDLE), OF_BUSINESS),
    "hour of the big merchant": (listed(since=NOW - 13 * HOUR, until=NOW - 12 * HOUR), OF_BUSINESS),
    "status that the big merchant has none of": (listed(status=Status.REVERSED), OF_BUSINESS),
    "failures of the big merchant": (listed(MIDDLE, status=Status.FAILED), OF_BUSINESS),
    "open payments of the big merchant": (listed(status=Status.INITIATED), OF_BUSINESS),
    "payments of an address": (listed(business_id="biz_2", email="payer2@example.com"), OF_EMAIL),
    "payments of everybody's address": (listed(MIDDLE, email=EVERYBODY), OF_EMAIL),
    "payments of another's address": (listed(business_id="biz_7", email=EVERYBODY), OF_EMAIL),
    "failures of everybody's address": (listed(status=Status.FAILED, email=EVERYBODY), OF_EMAIL),
    "payments of an address at every merchant": (listed(MIDDLE, None, email=EVERYBODY), OF_EMAIL),
    "payment searched by reference": (listed(reference=nth(5)), {"payments_pkey"}),
    "payment searched by idempotency key": (listed(idempotency_key="order 5"), KEYED),
    "payments of all merchants": (listed(business_id=None), OF_ALL),
    "deep page of all merchants": (
        lambda tx: tx.payment_search.page(PaymentFilter(environment=SANDBOX), NOW, MIDDLE, 20),
        OF_ALL,
    ),
    "status that nobody has": (listed(business_id=None, status=Status.REVERSED), OF_ALL),
    "failures of all merchants": (listed(MIDDLE, None, status=Status.FAILED), OF_ALL),
    "summary of a merchant": (totals(BIG, NOW - HOUR), {"payments_by_business"}),
    "summary of a time without payments": (totals(BIG, BEFORE_ALL), {"payments_by_business"}),
    "summary of all merchants": (totals(None, BEFORE_ALL), {"payments_by_creation"}),
}

# What is done in one transaction, and the indexes of large tables that it goes by.
IN_A_TRANSACTION: dict[str, tuple[TX, set[str]]] = {
    "payment locked": (lambda tx: tx.payments.lock(nth(1)), {"payments_pkey"}),
    "payment read": (lambda tx: tx.payments.get(nth(1)), {"payments_pkey"}),
    "payment moved": (save, {"payments_pkey"}),
    "expired payments": (lambda tx: tx.upkeep.lock_expired(NOW, 100), {"payments_by_expiry"}),
    "attempts of a payment": (lambda tx: tx.attempts.of_payment(nth(1)), {"attempts_pkey"}),
    "attempt recorded": (save_attempt, {"attempts_pkey"}),
    "asks that are due": (lambda tx: tx.attempts.due_checks(*AT_A, NOW, 100, MINUTE), DUE),
    "asks about what was in the air": (lambda tx: tx.attempts.due_checks(*AT_A, NOW, 100, MINUTE, NOW), DUE),
    "count of open attempts": (lambda tx: tx.attempts.count_open("gw_1", 1000), {"attempts_unsettled"}),
    "no open attempts of a gateway": (lambda tx: tx.attempts.count_open("gw_2", 1), {"attempts_unsettled"}),
    "open payments since": (lambda tx: tx.upkeep.list_initiated(NOW, nth(1), 100), {"payments_by_expiry"}),
    "asks made due": (lambda tx: tx.attempts.hasten_checks(*AT_A, NOW), {"attempts_due", "attempts_pkey"}),
    "oldest ask": (lambda tx: tx.attempts.oldest_check(NOW), {"attempts_due"}),
    "payment with what decides on it": (lambda tx: tx.payments.lock_aggregate(nth(1)), DECIDES),
    "payment with what a change needs": (
        lambda tx: tx.payments.lock_for_status(nth(1)),
        {"payments_pkey", "attempts_pkey", "anomalies_of_payment", "events_of_business"},
    ),
    "transitions of a payment": (lambda tx: tx.payments.transitions(nth(1)), {"transitions_pkey"}),
    "calls about a payment": (lambda tx: tx.provider_calls.of_payment(nth(1)), {"provider_calls_pkey"}),
    "last answer about a payment": (lambda tx: tx.provider_calls.last_answer(nth(1)), {"provider_calls_pkey"}),
    "anomalies": (lambda tx: tx.anomalies.page(AnomalyFilter(), 50), {"anomalies_pkey"}),
    "open anomalies": (lambda tx: tx.anomalies.page(AnomalyFilter(AnomalyStatus.OPEN), 50), {"anomalies_unclosed"}),
    "open anomalies of a severity and an assignee": (
        lambda tx: tx.anomalies.page(
            AnomalyFilter(AnomalyStatus.OPEN, severity=Severity.MONEY_GONE, assignee="ada"), 50
        ),
        {"anomalies_unclosed"},
    ),
    "requests to end a payment": (lambda tx: tx.resolutions.latest(nth(1)), set()),
    "anomalies by kind": (lambda tx: tx.anomalies.count_open(), {"anomalies_unclosed"}),
    "anomaly closed": (close_anomaly, {"anomalies_pkey"}),
    "old anomalies": (lambda tx: tx.anomalies.forget(NOW + MINUTE, 100), {"anomalies_to_forget", "anomalies_pkey"}),
    "anomalies of a payment": (lambda tx: tx.anomalies.of_payment(nth(1)), OF_PAYMENT),
    "payments handed to a provider on a day": (
        lambda tx: tx.reconciliations.handed_off(*AT_A, NOW, NOW + MINUTE, "", 1000),
        {"attempts_handed_off", "payments_pkey"},
    ),
    "payments of a gateway": (lambda tx: tx.reconciliations.of_gateway(*AT_A, [nth(1), nth(2)]), {"payments_pkey"}),
    "anomalies of no payment": (lambda tx: tx.reconciliations.unknown([nth(1)]), OF_PAYMENT),
    "anomalies of a page of payments": (lambda tx: tx.anomalies.of_payments([*map(nth, range(20))]), OF_PAYMENT),
    "adjustments of a merchant": (adjustments("biz_7"), ADJUSTMENTS),
    "adjustments of the big merchant": (adjustments(BIG), ADJUSTMENTS),
    "deep page of adjustments": (adjustments(BIG, after=an_id("anm", 0, NOW + MINUTE)), ADJUSTMENTS),
    "adjustments that need attention": (
        adjustments(BIG, needs_attention=True),
        {"anomalies_needing_attention", "anomalies_of_payment", "payments_pkey"},
    ),
    "adjustments added up": (adjusted(BIG), {"anomalies_told_business", "anomalies_of_payment", "payments_pkey"}),
    "adjustments of all added up": (adjusted(None), {"anomalies_told", "anomalies_of_payment", "payments_pkey"}),
    "attempt, call and anomaly added": (add_facts, {"payments_pkey"}),
    "event emitted": (emit, set()),
    "endpoints": (endpoints, set()),
    "deliveries log": (lambda tx: tx.webhook_events.deliveries("whe_7", 20, 20), LOG),
    "deliveries log of the big merchant": (lambda tx: tx.webhook_events.deliveries("whe_0", 40, 20), LOG),
    "deliveries log by cursor": (lambda tx: tx.webhook_events.deliveries("whe_0", 0, 20, an_id("dlv", 5000)), LOG),
    "delivery sent again": (redeliver, {"deliveries_of_endpoint", "deliveries_due", "deliveries_pkey"}),
    "delivery to a payment's own address": (
        lambda tx: tx.webhook_events.own_delivery(nth(1), an_id("dlv", 1)),
        {"deliveries_pkey"},
    ),
    "events caught up": (lambda tx: tx.webhook_events.page(BIG, SANDBOX, an_id("evt", 5000), 100), EVENTS),
    "last event of a business": (lambda tx: tx.webhook_events.last_id("biz_7", SANDBOX), {"events_of_business"}),
    "last event of the big merchant": (lambda tx: tx.webhook_events.last_id(BIG, SANDBOX), {"events_of_business"}),
    "last anomaly": (lambda tx: tx.anomalies.last_id(), {"anomalies_pkey"}),
    "events from the start": (lambda tx: tx.webhook_events.page("biz_7", SANDBOX, None, 100), EVENTS),
    "events and deliveries of a payment": (lambda tx: tx.webhook_events.of_payment(nth(1)), STORY),
    "old payers": (lambda tx: tx.upkeep.settled_with_payer(NOW + MINUTE, 100), {"payments_by_payer_day"}),
    "payments of one payer": (
        lambda tx: tx.upkeep.of_payer("ada@example.com", nth(500), 1000),
        {"payments_pkey"},
    ),
    "payers cleared": (clear_payers, {"payments_pkey", "attempts_pkey", "events_pkey", "event_metadata_pkey"}),
    "old idempotency keys": (
        lambda tx: tx.upkeep.forget_keys(NOW + MINUTE, 100),
        {"idempotency_keys_by_day", "idempotency_keys_pkey", "payments_pkey"},
    ),
    "old inbox events": (lambda tx: tx.inbox.remove(NOW + MINUTE, "", 100), {"inbox_pkey"}),
    "old inbox bodies": (lambda tx: tx.inbox.empty(NOW + MINUTE, 100), {"inbox_to_empty", "inbox_pkey"}),
    "what a clock that was ahead left behind": (
        lambda tx: tx.upkeep.pull_back(NOW, ""),
        {"attempts_unsettled", "attempts_pkey", "deliveries_next", "deliveries_pkey", "inbox_due", "inbox_pkey"},
    ),
    "inbound event": (receive, {"inbox_pkey"}),
    "inbox due": (lambda tx: tx.inbox.lock_due(NOW, 100), {"inbox_due"}),
    "audit": (audit, {"audit_pkey", "audit_of_business", "audit_of_subject", "audit_of_object", "audit_of_action"}),
    "businesses": (lambda tx: tx.businesses.list_businesses("shop 7", "biz_5", 101), set()),
    **SEARCHES,
    "names of businesses": (lambda tx: tx.businesses.names([BIG, "biz_7"]), set()),
    "merchants of a gateway": (merchants, set()),
    "choices of a business": (lambda tx: tx.gateway_choices.of_business(BIG), set()),
}


async def initiate(hot: FastPath) -> None:
    prefix = next(prefixes)
    payments = [
        a_payment(reference=f"PAY-20250131-{prefix}{n:03d}", idempotency_key=prefix + str(n)) for n in range(MANY)
    ]
    assert all(created for _, created in await asyncio.gather(*map(hot.add_payment, payments)))


async def initiate_cached(hot: FastPath) -> None:
    prefix = next(prefixes)
    keys = [await hot.find_key(sha256(str(n).encode()).digest()) for n in range(MANY)]
    payments = [
        a_payment(
            reference=f"PAY-20250131-{prefix}{n:03d}", business_id=key.business.id, idempotency_key=prefix + str(n)
        )
        for n, key in enumerate(keys)
        if key is not None
    ]
    answers = await asyncio.gather(*map(hot.add_payment, payments, keys))
    assert [created for _, created in answers] == [True] * MANY


async def replay(hot: FastPath) -> None:
    payments = [
        a_payment(reference=f"PAY-20250131-TRY{n:03d}", business_id=BIG, idempotency_key=f"order {n * 5}")
        for n in range(MANY)
    ]
    assert not any(created for _, created in await asyncio.gather(*map(hot.add_payment, payments)))


async def find_originals(hot: FastPath) -> None:
    keys = await asyncio.gather(*(hot.find_key(sha256(str(number).encode()).digest()) for number in range(MANY)))
    asked = (hot.find_original(BIG, SANDBOX, f"order {n * 5}", key) for n, key in enumerate(keys))
    assert None not in await asyncio.gather(*asked)


async def find(hot: FastPath) -> None:
    keys = await asyncio.gather(*(hot.find_key(sha256(str(number).encode()).digest()) for number in range(MANY)))
    assert None not in keys
    found = await asyncio.gather(*(hot.find_payment(nth(number), key) for number, key in enumerate(keys)))
    assert None not in found
    await asyncio.gather(*(hot.find_payment(nth(number)) for number in range(MANY)))


async def find_checkouts(hot: FastPath) -> None:
    assert None not in await asyncio.gather(*(hot.find_checkout(nth(number)) for number in range(MANY)))


async def find_with_attempts(hot: FastPath) -> None:
    assert None not in await asyncio.gather(*(hot.find_with_attempts(nth(number)) for number in range(MANY)))


async def use(hot: FastPath) -> None:
    await asyncio.gather(*(hot.touch_key(f"key_{number}", NOW) for number in range(MANY)))


async def deliver(queue: PostgresDeliveryQueue) -> None:
    claimed = await queue.claim(NOW, 300, 100, MINUTE)
    assert len(claimed) == 300
    await queue.finish([DeliveryResult(one, DeliveryAttemptResult(200, None, 5), NOW, None) for one in claimed[:200]])
    await queue.release(claimed[200:])


HELD = {"api_keys_pkey"}
ADDED = HELD | {"payments_pkey"}  # looked up, whether the reference is taken
REPLAYED = HELD | KEYED
FOUND = HELD | {"payments_pkey", "api_keys_secret_hash_key"}
# What callers of one moment share, as it is sent directly and through PgBouncer.
SHARED: dict[str, tuple[Callable[[FastPath], Awaitable[None]], set[str]]] = {
    "initiate": (initiate, ADDED),
    "initiate with a cached key": (initiate_cached, ADDED | {"api_keys_secret_hash_key"}),
    "initiate replayed": (replay, REPLAYED),
    "originals found": (find_originals, REPLAYED | {"api_keys_secret_hash_key"}),
    "payment and key found": (find, FOUND),
    "checkouts found": (find_checkouts, {"payments_pkey"}),
    "attempts found": (find_with_attempts, {"payments_pkey", "attempts_pkey"}),
    "keys used": (use, {"api_keys_pkey"}),
}
# What else is not done in a transaction of the caller's.
ALONE: dict[str, tuple[Callable[[Watched], Awaitable[Any]], set[str]]] = {
    "choices of businesses": (lambda on: on.store.find_choices(BIG), set()),
    "ask begun": (lambda on: on.store.begin_check(nth(1), 1, NOW, MINUTE), {"attempts_pkey"}),
    "whose secrets sign events": (lambda on: on.store.find_retiring_gateways("provider_a"), set()),
    "hit counted, old ones swept": (lambda on: on.store.count_hit("in:1", NOW + 5 * MINUTE, RateLimit(100)), set()),
    "deliveries claimed and finished": (
        lambda on: deliver(on.store.queue),
        {"deliveries_next", "deliveries_due", "deliveries_pkey", "events_pkey", "event_metadata_pkey"},
    ),
    "suspect claimed": (
        lambda on: on.store.queue.claim_poison_message(NOW, MINUTE),
        {"deliveries_suspect", "deliveries_pkey", "events_pkey", "event_metadata_pkey"},
    ),
    "old deliveries and events purged": (
        lambda on: on.store.queue.purge(NOW + timedelta(seconds=1), 500),
        {"deliveries_of_endpoint", "deliveries_pkey", "events_of_business", "events_pkey", "event_metadata_pkey"},
    ),
    "metrics": (
        lambda on: snapshot(services_over(on.store)),
        {"anomalies_unclosed", "attempts_due", "deliveries_next", "inbox_due"},
    ),
}


for one in sorted(Path(__file__).parent.glob("*/plans.py")):
    IN_A_TRANSACTION |= import_module(f"tests.integration.postgres.{one.parent.name}.plans").IN_A_TRANSACTION
BOUNCED = "{} through PgBouncer"
ALL: dict[str, set[str]] = {name: indexes for name, (_, indexes) in (IN_A_TRANSACTION | SHARED | ALONE).items()}
ALL |= {BOUNCED.format(name): indexes for name, (_, indexes) in SHARED.items()}


class Undone(Exception):
    pass


async def drive(database_url: str) -> list[Plan]:
    recorder = Recorder(parents(database_url))
    on = watched(database_url, recorder)
    for name, (use, _) in IN_A_TRANSACTION.items():
        with suppress(Undone):
            async with on.store.begin() as tx:
                with recorder.naming(name):
                    await use(tx)
                    await tx.payments._connection.flush()
                raise Undone
    for name, (share, _) in SHARED.items():
        with recorder.naming(name):
            await share(on.hot)
        with recorder.naming(BOUNCED.format(name)):
            await share(on.bounced)
    for name, (call, _) in ALONE.items():
        with recorder.naming(name):
            await call(on)
    await on.close()
    return recorder.plans


@pytest.fixture(scope="module")
def full_tables(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    with new_database() as url:
        fill(url)
        yield url


@pytest.fixture(params=[False, True], ids=["statistics of now", "statistics of a start"])
def plans(
    full_tables: str, new_database: Callable[..., AbstractContextManager[str]], request: pytest.FixtureRequest
) -> Iterator[list[Plan]]:
    """Of a copy of the full tables, as the drive changes them."""
    with new_database(str(psycopg.conninfo.conninfo_to_dict(full_tables)["dbname"])) as url:
        if request.param:
            as_of_a_start(url)
        yield asyncio.run(drive(url))


@pytest.mark.long
def test_every_use_goes_by_its_indexes_and_looks_at_few_rows(plans: list[Plan]) -> None:
    from_end_to_end = [plan for plan in plans if any(visit.index is None for visit in plan.visits)]
    assert not from_end_to_end, "\n\n".join(map(str, from_end_to_end))
    looks_at_more = [plan for plan in plans if any(visit.rows > TOUCHED_MAX for visit in plan.visits)]
    assert not looks_at_more, "\n\n".join(map(str, looks_at_more))
    met: dict[str, set[str]] = {plan.name: set() for plan in plans}
    for plan in plans:
        met[plan.name] |= {visit.index for visit in plan.visits if visit.index is not None}
    assert met == ALL


LOOK_UPS = {
    **{"PAYMENTS": PAYMENTS, "ORIGINALS": ORIGINALS},
    **{"OF_REFERENCES": OF_REFERENCES, "ATTEMPTS_OF": ATTEMPTS_OF},
}


@pytest.mark.parametrize("statement", LOOK_UPS.values(), ids=LOOK_UPS)
def test_a_plan_of_a_time_without_payments_looks_each_up(statement: Statement, database_url: str) -> None:
    """A session keeps it until the server has counted them: a join would read them all for each batch."""
    plan = execute(database_url, "EXPLAIN (GENERIC_PLAN) " + statement.sql.decode())
    told = "\n".join(line for (line,) in plan)
    assert "Index Cond: (reference = " in told, told
    assert not re.search("Seq Scan|Hash|Merge", told), told


WRITTEN_FOR_EACH_PAYMENT = [
    *("payments", "idempotency_keys", "transitions", "attempts", "provider_calls"),
    *("events", "event_metadata", "deliveries", "inbox"),
]


def test_every_index_that_a_payment_pays_for_serves_a_statement_or_a_rule(database_url: str) -> None:
    """The unique ones are rules of their own."""
    rows = execute(
        database_url,
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE i.indrelid::regclass::text = ANY(%s) AND NOT i.indisunique",
        values=[WRITTEN_FOR_EACH_PAYMENT],
    )
    used = set[str]().union(*ALL.values())
    assert {name for (name,) in rows} - used == set()
