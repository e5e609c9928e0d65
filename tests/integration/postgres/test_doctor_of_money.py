"""What doctor says: nothing of what the product writes, and each breach that is made by hand or by a broken machine."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import psycopg
import pytest
from payagg_testing.builders import REFERENCE, a_business, a_gateway, a_payment, a_report, an_attempt, an_endpoint
from payagg_testing.clocks import ManualClock, SeededEntropy

from payagg.adapters.postgres.doctor import examine
from payagg.adapters.postgres.schema.triggers import TRIGGERS
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.ports.outside import Unavailable
from payagg.domain.attempt import AttemptState
from payagg.domain.gateway import GatewayStatus
from payagg.domain.payment import Status
from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from tests.support.assembly import services_over
from tests.support.postgres_world import execute

NewDatabase = Callable[..., AbstractContextManager[str]]
OPEN = "PAY-20250131-000PEN"
BARE = "PAY-20250131-00BARE"  # nothing has happened to it yet
OF_PAID, OF_OPEN, OF_BARE = (f"WHERE reference = '{reference}'" for reference in (REFERENCE, OPEN, BARE))
AGAIN = """INSERT INTO {table} SELECT (json_populate_record(own, '{changed}')).* FROM {table} own
    {of_open} AND {one}"""
TWICE_SENT = AGAIN.format(table="attempts", changed='{"number": 2}', of_open=OF_OPEN, one="number = 1")
TWICE_TOLD = AGAIN.format(table="deliveries", changed='{"id": "dlv_x"}', of_open=OF_OPEN, one="endpoint_id IS NULL")
ANOTHER_AMOUNT = """UPDATE events SET body =
    convert_to(replace(convert_from(body, 'UTF8'), '"amount":150000', '"amount":1500'), 'UTF8')"""
ANOTHER_GATEWAY = """UPDATE events SET body =
    convert_to(replace(convert_from(body, 'UTF8'), '"gateway":"provider_a"', '"gateway":"provider_b"'), 'UTF8')"""
SOON = "(now() + interval '3 hours', now() + interval '4 hours')"
RECEIVED = "INSERT INTO inbox (id, provider, environment, digest, body, received_at, next_attempt_at) VALUES"
HANDLED = "INSERT INTO inbox (id, provider, environment, digest, body, received_at, handled_at) VALUES"
KEPT = "INSERT INTO anomalies (id, reference, kind, source, details, at, business_id, environment) VALUES"
DELETED = """INSERT INTO gateways
    (id, slug, name, display_order, is_built_in, status, created_at, updated_at, {columns}) VALUES
    ('gw_old', 'old', 'Old', 0, false, 'DELETED', now(), now() - interval '{age} days', {values})"""
SEALED = {"columns": "credentials", "values": "'x'"}
REPLACED = {"columns": "replaced_secrets, replaced_secrets_until", "values": "'x', now()"}
DRAINED = """UPDATE gateways SET (status, drain_started_at, drain_ends_at) =
    ('DRAINING', now() - interval '2 days', now() - interval '{hours} hours')"""
UNGUARDED = "SET session_replication_role = replica"  # the triggers would let none of it in
# What is done by hand; words of the rule that must find it.
BREACHES = [
    (f"UPDATE anomalies SET event_sequence = 9 {OF_PAID} AND event_sequence = 5", "are numbered"),
    (f"UPDATE anomalies SET event_sequence = 2 {OF_PAID} AND event_sequence = 5", "are numbered"),
    (f"UPDATE payments SET sequence = 2 {OF_OPEN}", "are numbered"),
    (f"UPDATE payments SET sequence = 1 {OF_OPEN}", None),
    (f"UPDATE payments SET sequence = 4 {OF_PAID}", "payment's sequence is"),
    (f"DELETE FROM events {OF_PAID} AND type = 'payment.pending'", "each transition has exactly"),
    (f"DELETE FROM events {OF_PAID} AND type = 'payment.attention'", "each notice"),
    (f"UPDATE events SET type = 'payment.refunded' {OF_PAID} AND sequence = 5", "each notice"),
    (f"UPDATE anomalies SET event_sequence = NULL {OF_PAID} AND event_sequence = 2", "paid is told"),
    (f"UPDATE anomalies SET event_sequence = NULL {OF_PAID} AND event_sequence = 4", "paid is told"),
    (f"{KEPT} ('anm_x', '{OPEN}', 'LATE_SUCCESS', 'verify', '{{}}', now(), 'biz_1', 'SANDBOX')", "paid is told"),
    (f"{KEPT} ('anm_x', '{OPEN}', 'DISPUTE', 'verify', '{{}}', now(), 'biz_1', 'SANDBOX')", None),
    (f"{KEPT} ('anm_x', '{OPEN}', 'MISMATCH', 'verify', '{{}}', now(), 'biz_1', 'SANDBOX')", None),
    (f"{KEPT} ('anm_x', '{REFERENCE}', 'DISPUTE', 'verify', '{{}}', now(), NULL, NULL)", None),
    (f"UPDATE payments SET has_adjustments = false {OF_PAID}", "has adjustments"),
    (f"UPDATE attempts SET next_ask_at = NULL {OF_OPEN}", "will be asked about"),
    (DELETED.format(age=5, **SEALED), "keeps no credentials"),
    (DELETED.format(age=2, **SEALED), None),
    (DELETED.format(age=182, **REPLACED), "keeps no credentials"),
    (DELETED.format(age=179, **REPLACED), None),
    ("UPDATE gateways SET credentials = NULL WHERE slug = 'provider_a'", "gateway can be asked"),
    ("UPDATE gateways SET status = 'DELETED', updated_at = now() WHERE slug = 'provider_a'", None),
    ("ALTER TABLE payments DISABLE TRIGGER payments_fixed", "every trigger"),
    ("DROP TRIGGER audit_append_only ON audit", "every trigger"),
    (f"UPDATE attempts SET next_ask_at = now() + interval '74 hours' {OF_OPEN}", "no instant"),
    (f"UPDATE attempts SET next_ask_at = now() + interval '71 hours' {OF_OPEN}", None),
    (f"UPDATE attempts SET (last_ask_at, next_ask_at) = {SOON} {OF_OPEN}", "no instant"),
    (f"UPDATE attempts SET (confirmed_at, next_ask_at) = {SOON} {OF_PAID}", "no instant"),
    (f"UPDATE attempts SET confirmed_at = now() {OF_PAID}", None),
    (f"UPDATE deliveries SET (last_attempt_at, next_attempt_at) = {SOON} {OF_OPEN}", "no instant"),
    (f"{RECEIVED} ('inb_x', 'a', 'SANDBOX', 'd', 'b', now(), now() + interval '2 hours')", "no instant"),
    (f"UPDATE payments SET created_at = now() + interval '1 hour' {OF_BARE}", "no instant"),
    ("INSERT INTO token_revocations VALUES ('sub', 'ada', now() + interval '1 hour')", "no instant"),
    ("INSERT INTO token_revocations VALUES ('sub', 'ada', now())", None),
    (f"UPDATE payments SET expires_at = now() + interval '31 days' {OF_BARE}", "no instant"),
    (f"UPDATE payments SET expires_at = now() + interval '29 days' {OF_BARE}", None),
    (DRAINED.format(hours=25), "has been due"),
    (DRAINED.format(hours=23), None),
    (f"UPDATE deliveries SET next_attempt_at = now() - interval '25 hours' {OF_OPEN}", "has been due"),
    (f"{RECEIVED} ('inb_x', 'a', 'SANDBOX', 'd', 'b', now(), now() - interval '25 hours')", "has been due"),
    (f"{RECEIVED} ('inb_x', 'a', 'SANDBOX', 'd', 'b', now() - interval '25 hours', now())", "has been due"),
    (f"{RECEIVED} ('inb_x', 'a', 'SANDBOX', 'd', 'b', now() - interval '23 hours', now())", None),
    (f"UPDATE payments SET expires_at = now() - interval '25 hours' {OF_BARE}", "has been due"),
    (f"UPDATE payments SET expires_at = now() - interval '23 hours' {OF_BARE}", None),
    (f"UPDATE attempts SET next_ask_at = now() - interval '25 hours' {OF_OPEN}", "has been due"),
    (f"UPDATE attempts SET gateway = 'renamed' {OF_OPEN}", "of this deployment"),
    (f"DELETE FROM deliveries {OF_OPEN} AND endpoint_id IS NOT NULL", "has a delivery to each"),
    (f"DELETE FROM deliveries {OF_OPEN} AND endpoint_id IS NULL", "has a delivery to each"),
    (f"{ANOTHER_GATEWAY} {OF_OPEN}", "body is as it was written"),
    (f"{HANDLED} ('inb_x', 'a', 'SANDBOX', 'd', '{{}}', now(), now() - interval '32 days')", "nothing is kept"),
    (f"UPDATE events SET metadata_at = 1, metadata_digest = 'x' {OF_OPEN}", "lies apart"),
    (f"INSERT INTO archived_payments VALUES ('{BARE}', 1, '', NULL)", "an archived payment"),
    (f"UPDATE payments SET amount = 15000000 {OF_BARE}", "payment's amount is"),
    (f"DELETE FROM transitions {OF_PAID} AND to_status = 'SUCCESS'", "exactly one final transition"),
    (f"UPDATE transitions SET to_status = 'SUCCESS' {OF_OPEN}", "an open payment"),
    (f"UPDATE payments SET status = 'INITIATED' {OF_OPEN}", "an open payment"),
    (f"UPDATE payments SET status = 'PENDING' {OF_BARE}", "an open payment"),
    ("UPDATE transitions SET from_status = 'INITIATED' WHERE to_status = 'SUCCESS'", "is a move of"),
    ("UPDATE transitions SET trigger = 'FAIL' WHERE to_status = 'SUCCESS'", "is a move of"),
    (f"{ANOTHER_AMOUNT} {OF_OPEN}", "says the amount"),
    (f"DROP INDEX one_hand_off_per_payment; {TWICE_SENT}", "at most one hand-off"),
    (f"DELETE FROM attempts {OF_OPEN}", "payment has a hand-off"),
    (f"UPDATE payments SET (is_test, gateway) = (true, 'sandbox') {OF_OPEN}", "no test payment"),
    ("UPDATE payments SET environment = 'LIVE'; UPDATE transitions SET reason = 'SIMULATED'", "no LIVE payment"),
    (f"DELETE FROM attempts {OF_PAID}", "names the charge"),
    (f"UPDATE transitions SET reason = '{REFERENCE}.2' WHERE to_status = 'SUCCESS'", "names the charge"),
    ("UPDATE transitions SET reason = 'SIMULATED' WHERE to_status = 'SUCCESS'", None),
    (f"UPDATE deliveries SET environment = 'LIVE' {OF_OPEN}", "belong to a payment"),
    (f"UPDATE attempts SET environment = 'LIVE' {OF_OPEN}", "belong to a payment"),
    (f"DELETE FROM events {OF_OPEN}", "a delivery carries"),
    (TWICE_TOLD, "to one endpoint at most once"),
    (f"INSERT INTO idempotency_keys VALUES ('biz_1', 'SANDBOX', 'order-1', '{BARE}')", "names one payment"),
    (f"UPDATE payments SET idempotency_key = 'order-1' {OF_BARE}", "names one payment"),
    (f"UPDATE payments SET settled_at = settled_at + interval '1 second' {OF_PAID}", "payment is settled when"),
]


async def tell(store: PostgresStore) -> None:
    """A payment that was underpaid, refunded in part before its success came, by more than had come, and disputed; and
    one that is open."""
    clock = ManualClock(await store.now())
    settlement = services_over(store, clock=clock, entropy=SeededEntropy()).settlement
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.endpoints.add(an_endpoint())
        await tx.gateways.add(a_gateway("provider_a", GatewayStatus.DISABLED, credentials=b"sealed"))
    own = "https://shop.example/own"
    await store.add_payment(a_payment(reference=BARE, now=clock.now()))
    for reference in (REFERENCE, OPEN):
        payment, _ = await store.add_payment(a_payment(reference=reference, now=clock.now(), webhook_url=own))
        async with store.begin() as tx:
            await tx.attempts.add(an_attempt(payment, 1, AttemptState.HANDED_OFF, now=clock.now()))
            await settlement.write(tx, *payment.hand_over("provider_a", clock.now(), "payer"))
    for report in (
        a_report(amounts=frozenset({49_000})),
        a_report(Outcome.REVERSED, amounts=frozenset({50_000}), details={"refundId": "r1"}),
        a_report(),
        a_report(Outcome.DISPUTED, amounts=frozenset({50_000}), details={"disputeId": "d1", "state": "opened"}),
    ):
        await settlement.report(report, "provider_a", Environment.SANDBOX, "event:provider_a")
    stored = await store.find_payment(REFERENCE)
    assert stored is not None
    assert (stored.status, stored.sequence) == (Status.SUCCESS, 3)
    await store.close()


@pytest.fixture(scope="module")
def filled(new_database: NewDatabase) -> Iterator[str]:
    """The name of a database that holds what `tell` tells: each test has a copy."""
    with new_database() as url:
        asyncio.run(tell(PostgresStore(url, pool_size=2, pgbouncer=False)))
        yield str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


@pytest.fixture
def told(filled: str, new_database: NewDatabase) -> Iterator[str]:
    with new_database(filled) as url:
        yield url


def broken(url: str) -> list[str]:
    providers = ("provider_a", "sandbox")
    return [finding.rule for finding in examine(url, providers=providers).rules if not finding.is_kept]


def test_doctor_finds_nothing_wrong_with_facts_told_before_and_after_the_end(told: str) -> None:
    events = execute(told, f"SELECT sequence, type FROM events {OF_PAID} ORDER BY sequence")
    numbered = ["pending", "attention", "success", "refunded", "disputed"]
    assert events == [(n, f"payment.{word}") for n, word in enumerate(numbered, 1)]
    assert broken(told) == []


@pytest.mark.parametrize(("by_hand", "words"), BREACHES)
def test_doctor_names_what_a_hand_or_a_broken_machine_did(told: str, by_hand: str, words: str | None) -> None:
    execute(told, UNGUARDED, by_hand)
    found = broken(told)
    assert found == [] if words is None else any(words in rule for rule in found)


def test_doctor_waits_for_nobody_who_holds_a_table(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("SET idle_in_transaction_session_timeout = '30s'")  # or one that waits would wait for us
        connection.execute("LOCK TABLE payments")
        with pytest.raises(Unavailable, match="LockNotAvailable"):
            examine(database_url)


def test_doctor_knows_every_trigger_that_there_is(database_url: str) -> None:
    rows = execute(database_url, "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal")
    assert sorted(name for (name,) in rows) == sorted(TRIGGERS)


@pytest.mark.parametrize("kind", ["NO_EVIDENCE", "MISMATCH"])
def test_doctor_lets_a_payment_rest_of_which_people_know_that_nobody_can_answer(told: str, kind: str) -> None:
    known = f"{KEPT} ('anm_x', '{OPEN}', '{kind}', 'reconciler', '{{}}', now(), 'biz_1', 'SANDBOX')"
    execute(told, UNGUARDED, f"UPDATE attempts SET next_ask_at = NULL {OF_OPEN}", known)
    assert broken(told) == []
    closing = "UPDATE anomalies SET status = 'CLOSED', closed_by = 'a', closed_at = now(), close_reason = 'x'"
    execute(told, f"{closing} WHERE id = 'anm_x'")
    [asked] = [finding for finding in examine(told).rules if not finding.is_kept]
    assert "will be asked about" in asked.rule
    assert ("end it by hand" in asked.remedy, "backup" in asked.remedy) == (True, False)
