"""The rules that the schema itself holds, tried past the program with plain SQL."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from payagg.adapters.postgres.connections import sync_engine
from payagg.adapters.postgres.migrations import is_current
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.schema.tables import metadata
from payagg.domain.api_key import API_KEY
from payagg.domain.business import KYC
from payagg.domain.gateway import GATEWAY
from payagg.domain.machine import Machine
from payagg.domain.payment import PAYMENT

NOW = "2025-01-31T12:00:00Z"
PAYMENT_ROW = {
    "reference": "PAY-20250131-000001",
    "business_id": "biz_1",
    "environment": "SANDBOX",
    "amount": 150000,
    "currency": "NGN",
    "status": "INITIATED",
    "sequence": 0,
    "created_at": NOW,
    "updated_at": NOW,
    "expires_at": NOW,
}
BUSINESS_ROW = {
    "id": "biz_1",
    "name": "Shop",
    "status": "ACTIVE",
    "kyc_status": "NOT_SUBMITTED",
    "created_at": NOW,
    "updated_at": NOW,
}
KEY_ROW = {
    "id": "key_1",
    "business_id": "biz_1",
    "environment": "SANDBOX",
    "name": "till",
    "public_key": "spk_1",
    "secret_hash": b"1",
    "secret_last4": "0000",
    "status": "ACTIVE",
    "created_at": NOW,
}
GATEWAY_ROW = {
    "id": "gw_1",
    "slug": "provider-a",
    "name": "A",
    "display_order": 0,
    "is_built_in": False,
    "status": "DISABLED",
    "created_at": NOW,
    "updated_at": NOW,
}
SETTINGS_ROW = {
    "business_id": "biz_1",
    "gateway_id": "gw_1",
    "is_enabled": True,
    "is_default": True,
    "created_at": NOW,
    "updated_at": NOW,
}
ATTEMPT_ROW = {
    "reference": PAYMENT_ROW["reference"],
    "number": 1,
    "gateway": "sandbox",
    "provider_reference": PAYMENT_ROW["reference"],
    "token": "t",
    "state": "HANDED_OFF",
    "lease_until": NOW,
    "hand_off_kind": "SIMULATOR",
    "hand_off_url": "https://pay.example/1",
    "created_at": NOW,
    "asks": 0,
}
AUDIT_ROW = {
    "id": "aud_1",
    "at": NOW,
    "realm": "admin",
    "subject": "ada",
    "action": "gateway.enable",
    "object_kind": "gateway",
    "object_id": "gw_1",
    "changes": "{}",
}
# What a row of each state needs beside the state itself, to meet the other checks.
MACHINES: dict[str, tuple[Machine[Any, Any], str, dict[str, Any], dict[str, dict[str, Any]]]] = {
    "payments": (
        PAYMENT,
        "status",
        PAYMENT_ROW,
        {state: {"settled_at": NOW} for state in ("SUCCESS", "FAILED", "REVERSED")},
    ),
    "gateways": (GATEWAY, "status", GATEWAY_ROW, {"DRAINING": {"drain_ends_at": NOW}}),
    "api_keys": (API_KEY, "status", KEY_ROW, {}),
    "businesses": (KYC, "kyc_status", BUSINESS_ROW, {}),
}
PAIRS = [
    (table, a.value, b.value)
    for table, (machine, *_) in MACHINES.items()
    for a in machine.states
    for b in machine.states
]


class Rows:
    """One transaction that is never committed; each statement may fail by itself."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def add(self, table: str, row: dict[str, Any], **changes: Any) -> None:
        values = {**row, **changes}
        places = ", ".join(["%s"] * len(values))
        self.run(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", *values.values())

    def load(self, table: str, row: dict[str, Any], **changes: Any) -> None:
        """As the owner's bulk load does, past the triggers."""
        self.run("SET session_replication_role = replica")
        self.add(table, row, **changes)
        self.run("SET session_replication_role = DEFAULT")

    def run(self, statement: str, *values: Any) -> Any:
        with self._connection.transaction():
            return self._connection.execute(statement.encode(), values)


@pytest.fixture(scope="module")
def schema(postgres: str) -> str:
    """One migrated database for all these tests: each rolls back what it did."""
    return made(postgres, "schema", migrate)


@pytest.fixture
def rows(schema: str) -> Iterator[Rows]:
    with psycopg.connect(schema) as connection, connection.transaction(force_rollback=True):
        yield Rows(connection)


def made(postgres: str, name: str, fill: Callable[[str], object] = lambda url: None) -> str:
    """The URL of a new database."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    url = postgres.replace("/payagg?", f"/{name}?")
    fill(url)
    return url


def refused(rule: str) -> Any:
    return pytest.raises(psycopg.errors.IntegrityError, match=rule)


def test_the_migrated_schema_is_the_one_the_code_sees(schema: str) -> None:
    with sync_engine(schema) as engine, engine.connect() as connection:
        partitions = set(connection.scalars(text("SELECT relname::text FROM pg_class WHERE relispartition")))
        assert {"events_other", "event_metadata_other"} <= partitions
        options: dict[str, Any] = {"compare_type": True, "compare_server_default": True}
        options["include_name"] = lambda name, kind, parents: kind != "table" or name not in partitions
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_every_check_and_index_of_the_tables_is_in_the_schema(schema: str, postgres: str) -> None:
    # Alembic's comparison looks neither at checks nor at the conditions of indexes.
    url = made(postgres, "made_from_tables")
    with sync_engine(url) as engine:
        metadata.create_all(engine)
    assert definitions(schema) == definitions(url)


def definitions(url: str) -> set[tuple[str, str, str]]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = 'public'::regnamespace AND contype <> 'n' UNION "
            "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
        )
        return {row for row in rows.fetchall() if row[0] != "alembic_version"}


@pytest.mark.parametrize("table", ["rate_hits", "refused_events"])
def test_what_lives_for_an_hour_at_most_is_not_logged(rows: Rows, table: str) -> None:
    assert rows.run("SELECT relpersistence FROM pg_class WHERE relname = %s", table).fetchone() == ("u",)


def test_refused_events_are_bounded(rows: Rows) -> None:
    event = {
        "provider": "provider_a",
        "environment": "LIVE",
        "fault": "WRONG_SECRET",
        "slot": 49,
        "path": "/provider_a",
        "digest": b"d",
        "size": 1,
        "headers": "{}",
        "received_at": NOW,
    }
    rows.add("refused_events", event)
    with refused("refused_events_pkey"):
        rows.add("refused_events", event)
    for changes, rule in (({"slot": 50}, "slot_in_bounds"), ({"fault": "OTHER"}, "fault_known")):
        with refused(rule):
            rows.add("refused_events", event, **changes)


def test_replaced_secrets_have_an_end(rows: Rows) -> None:
    with refused("replaced_secrets_end"):
        rows.add("gateways", GATEWAY_ROW, replaced_secrets=b"s")


@pytest.mark.rule("payments.26")
def test_a_test_payment_is_never_moved_to_a_provider(rows: Rows) -> None:
    rows.add("payments", PAYMENT_ROW, is_test=True, gateway="sandbox")
    with refused("test_is_simulated"):
        rows.run("UPDATE payments SET gateway = 'provider_a'")


def test_a_server_of_the_release_before_adds_payments_that_are_no_test(rows: Rows) -> None:
    rows.add("payments", PAYMENT_ROW)
    assert rows.run("SELECT is_test FROM payments").fetchone() == (False,)


def test_several_processes_may_migrate_at_once(postgres: str) -> None:
    url = made(postgres, "migrated_at_once")
    assert not is_current(url)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(migrate, url) for _ in range(4)]:
            done.result()
    assert is_current(url)


@pytest.mark.parametrize(("table", "start", "end"), PAIRS)
def test_a_status_moves_only_as_its_machine_says(rows: Rows, table: str, start: str, end: str) -> None:
    machine, column, row, needs = MACHINES[table]
    if table == "api_keys":
        rows.add("businesses", BUSINESS_ROW)
    rows.load(table, row, **{column: start, **needs.get(start, {})})
    key = next(iter(row))
    cleared = {name: None for state in needs.values() for name in state}
    changes = {column: end, **cleared, **needs.get(end, {})}
    assignments = ", ".join(f"{name} = %s" for name in changes)
    update = f"UPDATE {table} SET {assignments} WHERE {key} = %s"
    if start == end or (start, end) in machine.pairs():
        rows.run(update, *changes.values(), row[key])
    else:
        with refused(f"{table}.*(cannot make that move|in a final state cannot change)"):
            rows.run(update, *changes.values(), row[key])


@pytest.mark.parametrize("table", ["payments", "gateways", "api_keys"])
def test_a_new_row_starts_in_the_first_state(rows: Rows, table: str) -> None:
    machine, column, row, needs = MACHINES[table]
    rows.add("businesses", BUSINESS_ROW)
    for state in machine.states:
        if state is not machine.initial:
            with refused(f"{table}.{column} starts as {machine.initial.value}"):
                rows.add(table, row, **{column: state.value, **needs.get(state.value, {})})


def test_the_built_in_gateway_is_always_active(rows: Rows) -> None:
    rows.add("gateways", GATEWAY_ROW, is_built_in=True, status="ACTIVE")
    with refused("built_in_stays_active"):
        rows.run("UPDATE gateways SET status = 'DRAINING', drain_ends_at = now()")


@pytest.mark.parametrize(
    "change",
    [
        "reference = 'PAY-20250131-000002'",
        "business_id = 'biz_2'",
        "environment = 'LIVE'",
        "amount = amount + 1",
        "currency = 'USD'",
        "created_at = created_at - interval '1 day'",
        "is_test = true",
    ],
)
def test_the_facts_of_a_payment_never_change(rows: Rows, change: str) -> None:
    rows.add("payments", PAYMENT_ROW)
    with refused("cannot change"):
        rows.run(f"UPDATE payments SET {change}")


@pytest.mark.rule("payments.2")
@pytest.mark.parametrize("change", ["gateway = 'other'", "settled_at = now()", "callback_url = 'x'", "sequence = 9"])
def test_a_final_payment_never_changes(rows: Rows, change: str) -> None:
    rows.add("payments", PAYMENT_ROW)
    rows.run("UPDATE payments SET status = 'SUCCESS', settled_at = %s, sequence = 1", NOW)
    with refused("in a final state cannot change"):
        rows.run(f"UPDATE payments SET {change}")
    rows.run("UPDATE payments SET status = 'SUCCESS', settled_at = %s, sequence = 1", NOW)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"amount": 99}, "amount_in_bounds"),
        ({"amount": 2**53}, "amount_in_bounds"),
        ({"currency": "USD"}, "currency_is_ngn"),
        ({"environment": "TEST"}, "environment_known"),
        ({"environment": "LIVE", "gateway": "sandbox"}, "live_never_simulated"),
        ({"environment": "LIVE", "is_test": True}, "test_is_simulated"),
        ({"is_test": True, "gateway": "provider_a"}, "test_is_simulated"),
        ({"settled_at": NOW}, "final_is_settled"),
        ({"failure_reason": "EXPIRED"}, "only_failures_have_a_reason"),
    ],
)
def test_a_payment_row_holds_what_a_payment_may_be(rows: Rows, changes: dict[str, Any], rule: str) -> None:
    with refused(rule):
        rows.add("payments", PAYMENT_ROW, **changes)


def test_a_live_payment_is_never_moved_to_the_simulator(rows: Rows) -> None:
    rows.add("payments", PAYMENT_ROW, environment="LIVE")
    with refused("live_never_simulated"):
        rows.run("UPDATE payments SET gateway = 'sandbox'")


@pytest.mark.rule("personal-data.5")
@pytest.mark.parametrize("state", ["SUCCESS", "FAILED", "REVERSED"])
def test_of_a_final_payment_the_payer_may_be_cleared_and_nothing_else(rows: Rows, state: str) -> None:
    payer = {"customer_email": "a@b.example", "customer_name": "Ada", "customer_phone": "1", "metadata": '{"a": 1}'}
    final = {"status": state, "settled_at": NOW, "gateway": "provider_a", "idempotency_key": "k", "fingerprint": b"f"}
    rows.load("payments", PAYMENT_ROW, **payer, **final)
    columns = [
        name
        for (name,) in rows.run(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'payments'::regclass AND attnum > 0 AND NOT attisdropped"
        )
    ]
    clearable = {*payer, "fingerprint"}
    for name in columns:
        nothing = f"UPDATE payments SET {name} = NULL"
        if name not in clearable and rows.run(f"SELECT {name} FROM payments").fetchone() != (None,):
            with pytest.raises(psycopg.errors.IntegrityError):
                rows.run(nothing)
    for name in payer:
        with refused("payments in a final state"):
            rows.run(f"UPDATE payments SET {name} = %s", "{}" if name == "metadata" else "other")
    with refused("payments in a final state"):
        rows.run("UPDATE payments SET customer_email = NULL, gateway = 'provider_b'")
    rows.run("UPDATE payments SET " + ", ".join(f"{name} = NULL" for name in sorted(clearable)))
    with refused("payments in a final state"):
        rows.run("UPDATE payments SET customer_email = 'a@b.example'")


def test_a_reference_names_one_payment(rows: Rows) -> None:
    rows.add("payments", PAYMENT_ROW)
    with refused("payments_pkey"):
        rows.add("payments", PAYMENT_ROW, business_id="biz_2")


def test_a_payment_has_one_hand_off(rows: Rows) -> None:
    rows.add("attempts", ATTEMPT_ROW)
    rows.add("attempts", ATTEMPT_ROW, number=2, state="REFUSED", hand_off_url=None)
    with refused("one_hand_off_per_payment"):
        rows.run("UPDATE attempts SET state = 'HANDED_OFF', hand_off_url = 'https://pay.example/2' WHERE number = 2")


def test_a_payment_has_one_claim(rows: Rows) -> None:
    rows.add("attempts", ATTEMPT_ROW, state="CLAIMED", hand_off_url=None)
    with refused("one_claim_per_payment"):
        rows.add("attempts", ATTEMPT_ROW, number=2, state="CLAIMED", hand_off_url=None)


@pytest.mark.parametrize("changes", [{"hand_off_url": None}, {"state": "UNKNOWN"}])
def test_a_hand_off_is_whole(rows: Rows, changes: dict[str, Any]) -> None:
    with refused("hand_off_is_whole"):
        rows.add("attempts", ATTEMPT_ROW, **changes)


@pytest.mark.rule("options.6")
def test_a_business_has_one_default_gateway_and_it_is_enabled(rows: Rows) -> None:
    rows.add("businesses", BUSINESS_ROW)
    rows.add("gateways", GATEWAY_ROW)
    rows.add("gateways", GATEWAY_ROW, id="gw_2", slug="provider-b")
    rows.add("business_gateways", SETTINGS_ROW)
    with refused("one_default_per_business"):
        rows.add("business_gateways", SETTINGS_ROW, gateway_id="gw_2")
    with refused("default_is_enabled"):
        rows.run("UPDATE business_gateways SET is_enabled = false")


@pytest.mark.rule("gateways.3")
def test_a_slug_is_free_again_once_its_gateway_is_deleted(rows: Rows) -> None:
    rows.add("gateways", GATEWAY_ROW)
    with refused("gateways_slug"):
        rows.add("gateways", GATEWAY_ROW, id="gw_2")
    rows.run("UPDATE gateways SET status = 'DELETED'")
    rows.add("gateways", GATEWAY_ROW, id="gw_2")


def test_a_draining_gateway_has_an_end(rows: Rows) -> None:
    rows.load("gateways", GATEWAY_ROW, status="ACTIVE")
    with refused("drain_has_an_end"):
        rows.run("UPDATE gateways SET status = 'DRAINING'")


def test_a_secret_belongs_to_one_key(rows: Rows) -> None:
    rows.add("businesses", BUSINESS_ROW)
    rows.add("api_keys", KEY_ROW)
    with refused("api_keys_secret_hash_key"):
        rows.add("api_keys", KEY_ROW, id="key_2", public_key="spk_2")


@pytest.mark.rule("audit.4")
@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit SET subject = 'eve'", "UPDATE audit SET changes = '{}'", "DELETE FROM audit", "TRUNCATE audit"],
)
def test_an_audit_entry_is_never_changed_or_deleted(rows: Rows, statement: str) -> None:
    rows.add("audit", AUDIT_ROW)
    with refused("audit rows are never changed or deleted"):
        rows.run(statement)
    assert rows.run("SELECT subject FROM audit").fetchall() == [("ada",)]


def test_an_audit_entry_says_by_what_right(rows: Rows) -> None:
    with refused("realm_known"):
        rows.add("audit", AUDIT_ROW, realm="root")


def test_an_inbound_event_is_kept_once(rows: Rows) -> None:
    event = {"id": "in_1", "provider": "a", "environment": "LIVE", "digest": b"d", "body": b"{}", "received_at": NOW}
    rows.add("inbox", event)
    rows.add("inbox", event, id="in_2", environment="SANDBOX")
    with refused("inbox_once"):
        rows.add("inbox", event, id="in_3")
