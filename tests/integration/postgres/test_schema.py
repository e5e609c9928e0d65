"""The rules that the schema itself holds, tried past the program with plain SQL."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import product
from typing import Any

import psycopg
import pytest

from payagg.adapters.postgres.migrations import is_current
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.repositories.payments import MOVING
from payagg.adapters.postgres.schema.tables import SCHEMA, metadata
from payagg.domain.anomaly import ANOMALY
from payagg.domain.api_key import API_KEY
from payagg.domain.business import KYC
from payagg.domain.gateway import GATEWAY
from payagg.domain.machine import Machine
from payagg.domain.payment import PAYMENT
from tests.support.postgres_world import execute

NOW = "2025-01-31T12:00:00Z"
REFERENCE = "PAY-20250131-000001"
HEARD = {"provider": "provider_a", "environment": "LIVE", "digest": b"d", "received_at": NOW}
MADE = {"created_at": NOW, "updated_at": NOW}
# A row of each table that its rules let in.
ROWS: dict[str, dict[str, Any]] = {
    "payments": {
        **{"reference": REFERENCE, "business_id": "biz_1", "environment": "SANDBOX", "amount": 150000},
        **{"currency": "NGN", "status": "INITIATED", "sequence": 0, "expires_at": NOW, **MADE},
    },
    "businesses": {"id": "biz_1", "name": "Shop", "status": "ACTIVE", "kyc_status": "NOT_SUBMITTED", **MADE},
    "api_keys": {
        **{"id": "key_1", "business_id": "biz_1", "environment": "SANDBOX", "name": "till", "public_key": "spk_1"},
        **{"secret_hash": b"1", "secret_last4": "0000", "status": "ACTIVE", "created_at": NOW},
    },
    "gateways": {
        **{"id": "gw_1", "slug": "provider-a", "name": "A", "display_order": 0, "is_built_in": False},
        **{"status": "DISABLED", **MADE},
    },
    "business_gateways": {"business_id": "biz_1", "gateway_id": "gw_1", "is_enabled": True, "is_default": True, **MADE},
    "attempts": {
        **{"reference": REFERENCE, "number": 1, "gateway": "sandbox", "provider_reference": REFERENCE, "token": "t"},
        **{"state": "HANDED_OFF", "lease_until": NOW, "hand_off_kind": "SIMULATOR", "created_at": NOW, "asks": 0},
        "hand_off_url": "https://pay.example/1",
    },
    "audit": {
        **{"id": "aud_1", "at": NOW, "realm": "admin", "subject": "ada", "action": "gateway.enable"},
        **{"object_kind": "gateway", "object_id": "gw_1", "changes": "{}"},
    },
    "anomalies": {"id": "anm_1", "kind": "MISMATCH", "source": "verify", "details": "{}", "at": NOW},
    "inbox": {**HEARD, "id": "in_1", "body": b"{}"},
    "refused_events": {**HEARD, "fault": "WRONG_SECRET", "slot": 49, "path": "/provider_a", "size": 1, "headers": "{}"},
}
# What a row of each state needs beside the state itself, to meet the other checks.
MACHINES: dict[str, tuple[Machine[Any, Any], str, dict[str, dict[str, Any]]]] = {
    "payments": (PAYMENT, "status", {state: {"settled_at": NOW} for state in ("SUCCESS", "FAILED", "REVERSED")}),
    "gateways": (GATEWAY, "status", {"DRAINING": {"drain_ends_at": NOW}}),
    "api_keys": (API_KEY, "status", {}),
    "businesses": (KYC, "kyc_status", {}),
    "anomalies": (ANOMALY, "status", {"CLOSED": {"closed_at": NOW, "closed_by": "ada", "close_reason": "Done."}}),
}


class Rows:
    """One transaction that is never committed; each statement may fail by itself."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def add(self, table: str, **changes: Any) -> None:
        """The table's row with what is different in this one."""
        values = {**ROWS[table], **changes}
        places = ", ".join(["%s"] * len(values))
        self.run(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", *values.values())

    def load(self, table: str, **changes: Any) -> None:
        """As the owner's bulk load does, past the triggers."""
        self.run("SET session_replication_role = replica")
        self.add(table, **changes)
        self.run("SET session_replication_role = DEFAULT")

    def undone(self) -> Any:
        """A block whose writes go away at its end."""
        return self._connection.transaction(force_rollback=True)

    def run(self, statement: str, *values: Any) -> Any:
        with self._connection.transaction():
            return self._connection.execute(statement.encode(), values)


@pytest.fixture(scope="module")
def schema(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    """One migrated database for all these tests: each rolls back what it did."""
    with new_database() as url:
        yield url


@pytest.fixture
def rows(schema: str) -> Iterator[Rows]:
    with psycopg.connect(schema) as connection, connection.transaction(force_rollback=True):
        yield Rows(connection)


def refused(rule: str) -> Any:
    return pytest.raises(psycopg.errors.IntegrityError, match=rule)


def test_the_migrated_schema_is_the_one_that_is_written_down(schema: str, empty_url: str) -> None:
    execute(empty_url, SCHEMA)
    assert definitions(schema) == definitions(empty_url)


def test_statements_see_every_column(rows: Rows) -> None:
    found = rows.run(
        "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'public'"
        " AND table_name <> 'alembic_version'"
        " AND NOT (SELECT relispartition FROM pg_class WHERE oid = table_name::text::regclass)"
    )
    seen = {(table.name, column.name) for table in metadata.tables.values() for column in table.columns}
    assert seen == set(found.fetchall())


def definitions(url: str) -> set[tuple[str, str, str]]:
    rows = execute(
        url,
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace AND contype <> 'n' UNION "
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' UNION "
        "SELECT table_name, column_name, concat_ws(' ', data_type, udt_name, is_nullable, column_default) "
        "FROM information_schema.columns WHERE table_schema = 'public' UNION "
        "SELECT relname, relpersistence::text || relkind::text, concat(reloptions) FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')",
    )
    return {(table, name, definition) for table, name, definition in rows if table != "alembic_version"}


def test_a_change_of_status_writes_to_no_index(rows: Rows) -> None:
    found = (
        "SELECT DISTINCT i.indexrelid::regclass::text FROM pg_index i JOIN pg_depend d ON d.objid = i.indexrelid"
        " JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid"
        " WHERE i.indrelid = 'payments'::regclass AND d.refobjid = i.indrelid AND a.attname = ANY(%s)"
    )
    written = [*MOVING, "has_adjustments"]
    assert rows.run(found, written).fetchall() == []
    rows.run("CREATE INDEX in_the_way ON payments (expires_at) WHERE status = 'INITIATED'")
    assert rows.run(found, written).fetchall() == [("in_the_way",)]


@pytest.mark.parametrize("table", ["rate_hits", "refused_events"])
def test_what_lives_for_an_hour_at_most_is_not_logged(rows: Rows, table: str) -> None:
    assert rows.run("SELECT relpersistence FROM pg_class WHERE relname = %s", table).fetchone() == ("u",)


def test_a_server_of_the_release_before_adds_payments_that_are_no_test(rows: Rows) -> None:
    rows.add("payments")
    assert rows.run("SELECT is_test FROM payments").fetchone() == (False,)


def test_several_processes_may_migrate_at_once(empty_url: str) -> None:
    assert not is_current(empty_url)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(migrate, empty_url) for _ in range(4)]:
            done.result()
    assert is_current(empty_url)


@pytest.mark.parametrize("table", MACHINES)
def test_a_status_moves_only_as_its_machine_says(rows: Rows, table: str) -> None:
    machine, column, needs = MACHINES[table]
    if table == "api_keys":
        rows.add("businesses")
    cleared = {name: None for state in needs.values() for name in state}
    for start, end in product([state.value for state in machine.states], repeat=2):
        changes = {column: end, **cleared, **needs.get(end, {})}
        update = f"UPDATE {table} SET {', '.join(f'{name} = %s' for name in changes)}"
        with rows.undone():
            rows.load(table, **{column: start, **needs.get(start, {})})
            if start == end or (start, end) in machine.pairs:
                rows.run(update, *changes.values())
            else:
                with refused(f"{table}.*(cannot make that move|in a final state cannot change)"):
                    rows.run(update, *changes.values())


@pytest.mark.parametrize("table", ["payments", "gateways", "api_keys", "anomalies"])
def test_a_new_row_starts_in_the_first_state(rows: Rows, table: str) -> None:
    machine, column, needs = MACHINES[table]
    rows.add("businesses")
    for state in machine.states:
        if state is not machine.initial:
            with refused(f"{table}.{column} starts as {machine.initial.value}"):
                rows.add(table, **{column: state.value, **needs.get(state.value, {})})


@pytest.mark.parametrize(
    ("table", "changes", "rule"),
    [
        ("payments", {"amount": 99}, "amount_in_bounds"),
        ("payments", {"amount": 2**53}, "amount_in_bounds"),
        ("payments", {"currency": "USD"}, "currency_is_ngn"),
        ("payments", {"environment": "TEST"}, "environment_known"),
        ("payments", {"environment": "LIVE", "gateway": "sandbox"}, "live_never_simulated"),
        ("payments", {"environment": "LIVE", "is_test": True}, "test_is_simulated"),
        ("payments", {"is_test": True, "gateway": "provider_a"}, "test_is_simulated"),
        ("payments", {"settled_at": NOW}, "final_is_settled"),
        ("payments", {"failure_reason": "EXPIRED"}, "only_failures_have_a_reason"),
        ("payments", {"fee": 1}, "fee_has_its_net"),
        ("payments", {"fee": 1, "net_amount": -1}, "fee_has_its_net"),
        ("payments", {"status": "LOST"}, "status_known"),
        ("gateways", {"replaced_secrets": b"s"}, "replaced_secrets_end"),
        ("attempts", {"hand_off_url": None}, "hand_off_is_whole"),
        ("attempts", {"state": "UNKNOWN"}, "hand_off_is_whole"),
        ("attempts", {"state": "LOST", "hand_off_url": None}, "state_known"),
        ("audit", {"realm": "root"}, "realm_known"),
        ("refused_events", {"slot": 50}, "slot_in_bounds"),
        ("refused_events", {"fault": "OTHER"}, "fault_known"),
    ],
)
def test_a_row_holds_what_its_kind_may_be(rows: Rows, table: str, changes: dict[str, Any], rule: str) -> None:
    for store in (rows.add, rows.load):
        with rows.undone(), pytest.raises(psycopg.errors.CheckViolation) as caught:
            store(table, **changes)
        assert (caught.value.diag.constraint_name, caught.value.diag.table_name) == (rule, table)


@pytest.mark.rule("payments.26")
@pytest.mark.parametrize(
    ("table", "row", "change", "rule"),
    [
        ("payments", {"is_test": True, "gateway": "sandbox"}, "gateway = 'provider_a'", "test_is_simulated"),
        ("payments", {"environment": "LIVE"}, "gateway = 'sandbox'", "live_never_simulated"),
        ("payments", {}, "reference = 'PAY-20250131-000002'", "cannot change"),
        ("payments", {}, "business_id = 'biz_2'", "cannot change"),
        ("payments", {}, "environment = 'LIVE'", "cannot change"),
        ("payments", {}, "amount = amount + 1", "cannot change"),
        ("payments", {}, "currency = 'USD'", "cannot change"),
        ("payments", {}, "created_at = created_at - interval '1 day'", "cannot change"),
        ("payments", {}, "is_test = true", "cannot change"),
        ("payments", {}, "status = 'FAILED'", "final_is_settled"),
        ("payments", {}, "failure_reason = 'EXPIRED'", "only_failures_have_a_reason"),
        ("payments", {"fee": 1, "net_amount": 1}, "net_amount = NULL", "fee_has_its_net"),
        ("attempts", {}, "state = 'REFUSED'", "hand_off_is_whole"),
        ("attempts", {}, "hand_off_url = NULL", "hand_off_is_whole"),
        ("gateways", {"status": "ACTIVE"}, "status = 'DRAINING'", "drain_has_an_end"),
        (
            "gateways",
            {"is_built_in": True, "status": "ACTIVE"},
            "status = 'DRAINING', drain_ends_at = now()",
            "built_in_stays_active",
        ),
    ],
)
def test_a_row_is_never_changed_against_its_rules(
    rows: Rows, table: str, row: dict[str, Any], change: str, rule: str
) -> None:
    rows.load(table, **row)
    with refused(rule):
        rows.run(f"UPDATE {table} SET {change}")


@pytest.mark.parametrize(
    ("table", "first", "second", "rule"),
    [
        ("payments", {}, {"business_id": "biz_2"}, "payments_pkey"),
        ("attempts", {"state": "CLAIMED", "hand_off_url": None}, {"number": 2}, "one_claim_per_payment"),
        ("attempts", {}, {"number": 2}, "one_hand_off_per_payment"),
        ("api_keys", {}, {"id": "key_2", "public_key": "spk_2"}, "api_keys_secret_hash_key"),
        ("refused_events", {}, {}, "refused_events_pkey"),
        ("inbox", {}, {"id": "in_2"}, "inbox_once"),
    ],
)
def test_of_two_rows_that_are_one_thing_the_second_is_refused(
    rows: Rows, table: str, first: dict[str, Any], second: dict[str, Any], rule: str
) -> None:
    rows.add("businesses")
    rows.add(table, **first)
    with refused(rule):
        rows.add(table, **{**first, **second})


@pytest.mark.rule("payments.2")
@pytest.mark.parametrize("change", ["gateway = 'other'", "settled_at = now()", "callback_url = 'x'", "sequence = 9"])
def test_a_final_payment_never_changes(rows: Rows, change: str) -> None:
    rows.add("payments")
    rows.run("UPDATE payments SET status = 'SUCCESS', settled_at = %s, sequence = 1", NOW)
    with refused("in a final state cannot change"):
        rows.run(f"UPDATE payments SET {change}")
    rows.run("UPDATE payments SET status = 'SUCCESS', settled_at = %s, sequence = 1", NOW)


@pytest.mark.rule("personal-data.5")
@pytest.mark.parametrize("state", ["SUCCESS", "FAILED", "REVERSED"])
def test_of_a_final_payment_the_payer_may_be_cleared_and_nothing_else(rows: Rows, state: str) -> None:
    payer = {"customer_email": "a@b.example", "customer_name": "Ada", "customer_phone": "1", "metadata": '{"a": 1}'}
    final = {"status": state, "settled_at": NOW, "gateway": "provider_a", "idempotency_key": "k", "fingerprint": b"f"}
    rows.load("payments", **payer, **final)
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


def test_a_second_attempt_cannot_become_a_second_hand_off(rows: Rows) -> None:
    rows.add("attempts")
    rows.add("attempts", number=2, state="REFUSED", hand_off_url=None)
    with refused("one_hand_off_per_payment"):
        rows.run("UPDATE attempts SET state = 'HANDED_OFF', hand_off_url = 'https://pay.example/2' WHERE number = 2")


@pytest.mark.rule("options.6")
def test_a_business_has_one_default_gateway_and_it_is_enabled(rows: Rows) -> None:
    rows.add("businesses")
    rows.add("gateways")
    rows.add("gateways", id="gw_2", slug="provider-b")
    rows.add("business_gateways")
    with refused("one_default_per_business"):
        rows.add("business_gateways", gateway_id="gw_2")
    with refused("default_is_enabled"):
        rows.run("UPDATE business_gateways SET is_enabled = false")


@pytest.mark.rule("audit.4")
@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit SET subject = 'eve'", "UPDATE audit SET changes = '{}'", "DELETE FROM audit", "TRUNCATE audit"],
)
def test_an_audit_entry_is_never_changed_or_deleted(rows: Rows, statement: str) -> None:
    rows.add("audit")
    with refused("audit rows are never changed or deleted"):
        rows.run(statement)
    assert rows.run("SELECT subject FROM audit").fetchall() == [("ada",)]
