"""What doctor says: nothing of what the product writes, and each breach that is made by hand or by a broken machine."""

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

OPEN = "PAY-20250131-000PEN"
BARE = "PAY-20250131-00BARE"  # nothing has happened to it yet
NUMBERED = (
    "transitions and notices are numbered 1, 2, ... without a gap, up to the payment's sequence or beyond its end"
)
LAST = "a final payment's sequence is its last transition's"
MOVED = "each transition has exactly one event, of the matching type"
NOTICED = "each notice of an anomaly has exactly one event, of the matching type"
TOLD = "what became of money that was paid is told, and so is money that does not fit its payment"
MARKED = "a payment with a told fact has adjustments"
ASKED = "a PENDING payment will be asked about, or people know that nobody can answer"
WIPED = "a deleted gateway keeps no credentials beyond its settling, and no secret once no event of it is proved"
GUARDED = "every trigger that guards a table is there and switched on"
AHEAD = "no instant lies further ahead than a rule can put it"
OVERDUE = "nothing that the worker does has been due for more than a day"
ASKABLE = "a charge that is to be asked about is of a provider of this deployment"
DELIVERED = "an event has a delivery to each endpoint that wanted it"
UNCHANGED = "an event's body is as it was written"
EMPTIED = "of a provider's event nothing is kept 30 days after it was handled"
APART = "metadata that lies apart from its event exists"
ARCHIVED = "an archived payment is final, and its whole history is in a part that was read back"
AMOUNT = "a payment's amount is the one that it was initiated with"
ENDED, OPEN_END = (
    "a final payment has exactly one final transition, to its own status",
    "an open payment stands where its last transition ended",
)
MOVES = "each transition is a move of the payment machine and starts where the last one ended"
SAID = "an event says the amount and currency of its payment"
ONE_HAND_OFF, A_HAND_OFF = "a payment has at most one hand-off", "a PENDING payment has a hand-off"
SIMULATED, INVENTED = "no test payment ever met a provider", "no LIVE payment ever met the simulator"
CHARGED = "a payment that was paid names the charge that was paid"
BELONGS = "an attempt, an event and a delivery belong to a payment of their environment"
CARRIED, ONCE = "a delivery carries an event that exists", "an event goes to one endpoint at most once"
KEYED, SETTLED = (
    "an idempotency key names one payment, which carries it",
    "a payment is settled when its final transition says",
)
AGAIN = """INSERT INTO {table} SELECT (json_populate_record(own, '{changed}')).* FROM {table} own
    WHERE reference = '{reference}' AND {one}"""
TWICE_SENT = AGAIN.format(table="attempts", changed='{"number": 2}', reference=OPEN, one="number = 1")
TWICE_TOLD = AGAIN.format(table="deliveries", changed='{"id": "dlv_x"}', reference=OPEN, one="endpoint_id IS NULL")
ANOTHER_AMOUNT = """UPDATE events SET body =
    convert_to(replace(convert_from(body, 'UTF8'), '"amount":150000', '"amount":1500'), 'UTF8')"""
ANOTHER_GATEWAY = """UPDATE events SET body =
    convert_to(replace(convert_from(body, 'UTF8'), '"gateway":"provider_a"', '"gateway":"provider_b"'), 'UTF8')"""
SOON = "(now() + interval '3 hours', now() + interval '4 hours')"
RECEIVED = "INSERT INTO inbox (id, provider, environment, digest, body, received_at, next_attempt_at) VALUES"
HANDLED = "INSERT INTO inbox (id, provider, environment, digest, body, received_at, handled_at) VALUES"
KEPT = "INSERT INTO anomalies (id, reference, kind, source, details, at, business_id, environment) VALUES"
DELETED = """INSERT INTO gateways (id, slug, name, display_order, is_built_in, status, created_at, updated_at, {column})
    VALUES ('gw_old', 'old', 'Old', 0, false, 'DELETED', now(), now() - interval '{age} days', 'x')"""
DRAINED = """UPDATE gateways SET (status, drain_started_at, drain_ends_at) =
    ('DRAINING', now() - interval '2 days', now() - interval '{hours} hours')"""
# What is done by hand; the rules that must find it.
BREACHES = [
    (f"UPDATE anomalies SET event_sequence = 9 WHERE event_sequence = 5 AND reference = '{REFERENCE}'", NUMBERED),
    (f"UPDATE anomalies SET event_sequence = 2 WHERE event_sequence = 5 AND reference = '{REFERENCE}'", NUMBERED),
    (f"UPDATE payments SET sequence = 2 WHERE reference = '{OPEN}'", NUMBERED),
    (f"UPDATE payments SET sequence = 1 WHERE reference = '{OPEN}'", None),
    (f"UPDATE payments SET sequence = 4 WHERE reference = '{REFERENCE}'", LAST),
    (f"DELETE FROM events WHERE type = 'payment.pending' AND reference = '{REFERENCE}'", MOVED),
    (f"DELETE FROM events WHERE type = 'payment.attention' AND reference = '{REFERENCE}'", NOTICED),
    (f"UPDATE events SET type = 'payment.refunded' WHERE sequence = 5 AND reference = '{REFERENCE}'", NOTICED),
    (f"UPDATE anomalies SET event_sequence = NULL WHERE event_sequence = 2 AND reference = '{REFERENCE}'", TOLD),
    (f"UPDATE anomalies SET event_sequence = NULL WHERE event_sequence = 4 AND reference = '{REFERENCE}'", TOLD),
    (f"{KEPT} ('anm_x', '{OPEN}', 'LATE_SUCCESS', 'verify', '{{}}', now(), 'biz_1', 'SANDBOX')", TOLD),
    (f"{KEPT} ('anm_x', '{OPEN}', 'DISPUTE', 'verify', '{{}}', now(), 'biz_1', 'SANDBOX')", None),
    (f"{KEPT} ('anm_x', '{OPEN}', 'MISMATCH', 'verify', '{{}}', now(), 'biz_1', 'SANDBOX')", None),
    (f"{KEPT} ('anm_x', '{REFERENCE}', 'DISPUTE', 'verify', '{{}}', now(), NULL, NULL)", None),
    (f"UPDATE payments SET has_adjustments = false WHERE reference = '{REFERENCE}'", MARKED),
    (f"UPDATE attempts SET next_ask_at = NULL WHERE reference = '{OPEN}'", ASKED),
    (DELETED.format(column="credentials", age=5), WIPED),
    (DELETED.format(column="credentials", age=2), None),
    (DELETED.format(column="replaced_secrets, replaced_secrets_until", age=182).replace("'x'", "'x', now()"), WIPED),
    (DELETED.format(column="replaced_secrets, replaced_secrets_until", age=179).replace("'x'", "'x', now()"), None),
    ("ALTER TABLE payments DISABLE TRIGGER payments_fixed", GUARDED),
    ("DROP TRIGGER audit_append_only ON audit", GUARDED),
    (f"UPDATE attempts SET next_ask_at = now() + interval '74 hours' WHERE reference = '{OPEN}'", AHEAD),
    (f"UPDATE attempts SET next_ask_at = now() + interval '71 hours' WHERE reference = '{OPEN}'", None),
    (f"UPDATE attempts SET (last_ask_at, next_ask_at) = {SOON} WHERE reference = '{OPEN}'", AHEAD),
    (f"UPDATE attempts SET (confirmed_at, next_ask_at) = {SOON} WHERE reference = '{REFERENCE}'", AHEAD),
    (f"UPDATE attempts SET confirmed_at = now() WHERE reference = '{REFERENCE}'", None),
    (f"UPDATE deliveries SET (last_attempt_at, next_attempt_at) = {SOON} WHERE reference = '{OPEN}'", AHEAD),
    (f"{RECEIVED} ('inb_x', 'provider_a', 'SANDBOX', 'd', 'b', now(), now() + interval '2 hours')", AHEAD),
    (f"UPDATE payments SET created_at = now() + interval '1 hour' WHERE reference = '{BARE}'", AHEAD),
    ("INSERT INTO token_revocations VALUES ('sub', 'ada', now() + interval '1 hour')", AHEAD),
    ("INSERT INTO token_revocations VALUES ('sub', 'ada', now())", None),
    (f"UPDATE payments SET expires_at = now() + interval '31 days' WHERE reference = '{BARE}'", AHEAD),
    (f"UPDATE payments SET expires_at = now() + interval '29 days' WHERE reference = '{BARE}'", None),
    (DRAINED.format(hours=25), OVERDUE),
    (DRAINED.format(hours=23), None),
    (f"UPDATE deliveries SET next_attempt_at = now() - interval '25 hours' WHERE reference = '{OPEN}'", OVERDUE),
    (f"{RECEIVED} ('inb_x', 'provider_a', 'SANDBOX', 'd', 'b', now(), now() - interval '25 hours')", OVERDUE),
    (f"{RECEIVED} ('inb_x', 'provider_a', 'SANDBOX', 'd', 'b', now() - interval '25 hours', now())", OVERDUE),
    (f"{RECEIVED} ('inb_x', 'provider_a', 'SANDBOX', 'd', 'b', now() - interval '23 hours', now())", None),
    (f"UPDATE payments SET expires_at = now() - interval '25 hours' WHERE reference = '{BARE}'", OVERDUE),
    (f"UPDATE payments SET expires_at = now() - interval '23 hours' WHERE reference = '{BARE}'", None),
    (f"UPDATE attempts SET next_ask_at = now() - interval '25 hours' WHERE reference = '{OPEN}'", OVERDUE),
    (f"UPDATE attempts SET gateway = 'renamed' WHERE reference = '{OPEN}'", ASKABLE),
    (f"DELETE FROM deliveries WHERE endpoint_id IS NOT NULL AND reference = '{OPEN}'", DELIVERED),
    (f"DELETE FROM deliveries WHERE endpoint_id IS NULL AND reference = '{OPEN}'", DELIVERED),
    (f"{ANOTHER_GATEWAY} WHERE reference = '{OPEN}'", UNCHANGED),
    (f"{HANDLED} ('inb_x', 'provider_a', 'SANDBOX', 'd', '{{}}', now(), now() - interval '32 days')", EMPTIED),
    (f"UPDATE events SET metadata_at = 1, metadata_digest = 'x' WHERE reference = '{OPEN}'", APART),
    (f"INSERT INTO archived_payments VALUES ('{BARE}', 1, '', NULL)", ARCHIVED),
    (f"UPDATE payments SET amount = 15000000 WHERE reference = '{BARE}'", AMOUNT),
    (f"DELETE FROM transitions WHERE to_status = 'SUCCESS' AND reference = '{REFERENCE}'", ENDED),
    (f"UPDATE transitions SET to_status = 'SUCCESS' WHERE reference = '{OPEN}'", OPEN_END),
    (f"UPDATE payments SET status = 'INITIATED' WHERE reference = '{OPEN}'", OPEN_END),
    (f"UPDATE payments SET status = 'PENDING' WHERE reference = '{BARE}'", OPEN_END),
    ("UPDATE transitions SET from_status = 'INITIATED' WHERE to_status = 'SUCCESS'", MOVES),
    ("UPDATE transitions SET trigger = 'FAIL' WHERE to_status = 'SUCCESS'", MOVES),
    (f"{ANOTHER_AMOUNT} WHERE reference = '{OPEN}'", SAID),
    (f"DROP INDEX one_hand_off_per_payment; {TWICE_SENT}", ONE_HAND_OFF),
    (f"DELETE FROM attempts WHERE reference = '{OPEN}'", A_HAND_OFF),
    (f"UPDATE payments SET (is_test, gateway) = (true, 'sandbox') WHERE reference = '{OPEN}'", SIMULATED),
    ("UPDATE payments SET environment = 'LIVE'; UPDATE transitions SET reason = 'SIMULATED'", INVENTED),
    (f"DELETE FROM attempts WHERE reference = '{REFERENCE}'", CHARGED),
    (f"UPDATE transitions SET reason = '{REFERENCE}.2' WHERE to_status = 'SUCCESS'", CHARGED),
    ("UPDATE transitions SET reason = 'SIMULATED' WHERE to_status = 'SUCCESS'", None),
    (f"UPDATE deliveries SET environment = 'LIVE' WHERE reference = '{OPEN}'", BELONGS),
    (f"UPDATE attempts SET environment = 'LIVE' WHERE reference = '{OPEN}'", BELONGS),
    (f"DELETE FROM events WHERE reference = '{OPEN}'", CARRIED),
    (TWICE_TOLD, ONCE),
    (f"INSERT INTO idempotency_keys VALUES ('biz_1', 'SANDBOX', 'order-1', '{BARE}')", KEYED),
    (f"UPDATE payments SET idempotency_key = 'order-1' WHERE reference = '{BARE}'", KEYED),
    (f"UPDATE payments SET settled_at = settled_at + interval '1 second' WHERE reference = '{REFERENCE}'", SETTLED),
]


@pytest.fixture
async def told(store: PostgresStore) -> PostgresStore:
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
    return store


def broken(url: str) -> list[str]:
    providers = ("provider_a", "sandbox")
    return [finding.rule for finding in examine(url, providers=providers).rules if not finding.is_kept]


async def test_doctor_finds_nothing_wrong_with_facts_told_before_and_after_the_end(
    told: PostgresStore, database_url: str
) -> None:
    async with told.begin() as tx:
        events, _ = await tx.webhook_events.of_payment(REFERENCE)
    numbered = ["pending", "attention", "success", "refunded", "disputed"]
    assert [(e.sequence, e.type) for e in events] == [(n, f"payment.{word}") for n, word in enumerate(numbered, 1)]
    assert broken(database_url) == []


@pytest.mark.parametrize(("by_hand", "rule"), BREACHES)
async def test_doctor_names_what_a_hand_or_a_broken_machine_did(
    told: PostgresStore, database_url: str, by_hand: str, rule: str | None
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("SET session_replication_role = replica")  # the triggers would let none of it in
        connection.execute(by_hand.encode())
    assert broken(database_url) == [] if rule is None else rule in broken(database_url)


def test_doctor_waits_for_nobody_who_holds_a_table(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("SET idle_in_transaction_session_timeout = '30s'")  # or one that waits would wait for us
        connection.execute("LOCK TABLE payments")
        with pytest.raises(Unavailable, match="LockNotAvailable"):
            examine(database_url)


def test_doctor_knows_every_trigger_that_there_is(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal").fetchall()
    assert sorted(name for (name,) in rows) == sorted(TRIGGERS)


@pytest.mark.parametrize("kind", ["NO_EVIDENCE", "MISMATCH"])
async def test_doctor_lets_a_payment_rest_of_which_people_know_that_nobody_can_answer(
    told: PostgresStore, database_url: str, kind: str
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(f"UPDATE attempts SET next_ask_at = NULL WHERE reference = '{OPEN}'".encode())
        known = f"{KEPT} ('anm_x', '{OPEN}', '{kind}', 'reconciler', '{{}}', now(), 'biz_1', 'SANDBOX')"
        connection.execute(known.encode())
    assert broken(database_url) == []
    with psycopg.connect(database_url) as connection:
        closing = "UPDATE anomalies SET status = 'CLOSED', closed_by = 'a', closed_at = now(), close_reason = 'x'"
        connection.execute(f"{closing} WHERE id = 'anm_x'".encode())
    [asked] = [finding for finding in examine(database_url).rules if not finding.is_kept]
    assert (asked.rule, "end it by hand" in asked.remedy, "backup" in asked.remedy) == (ASKED, True, False)
