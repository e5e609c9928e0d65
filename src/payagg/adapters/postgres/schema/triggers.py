"""The state machines, and the rules of payments and attempts, as database triggers: they hold when a program, or a
manual statement, is wrong.

Most rules are a trigger's event and WHEN clause, so a row that obeys costs no function call. The server reads and
compiles each clause, and each CHECK, anew for every statement, so they are short, and name their columns in the event.
Functions, which a session compiles once, compare a final row's changes and hold what every payment and attempt must
obey: a change of status takes 210,000 instructions of a session, and 546,000 where nine CHECKs and a clause do that. A
bulk load by the owner may skip the machines with `SET session_replication_role = replica`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# 23514 is check_violation: to a caller a broken trigger rule and a broken CHECK are the same thing.
REFUSE = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = '23514', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
END $$
"""
# As JSON, so that a column of a later day is guarded too.
_REFUSE_FINAL = """
CREATE OR REPLACE FUNCTION refuse_change_of_final() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    clearable text[] := TG_ARGV[1];
    settable text[] := TG_ARGV[2];
BEGIN
    IF EXISTS (
        SELECT FROM jsonb_each(to_jsonb(OLD)) was JOIN jsonb_each(to_jsonb(NEW)) becomes USING (key)
        WHERE was.value <> becomes.value
          AND NOT (key = ANY(clearable) AND becomes.value = 'null')
          AND NOT (key = ANY(settable) AND was.value IN ('null', 'false'))
    ) THEN
        RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = '23514', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NEW;
END $$;
"""

# As all migrations together leave them.
TRIGGERS = (
    "anomalies_final",
    "anomalies_fixed",
    "anomalies_status_moves",
    "anomalies_status_starts",
    "api_keys_status_moves",
    "api_keys_status_starts",
    "api_keys_while_moving",
    "attempts_rules",
    "audit_append_only",
    "audit_never_emptied",
    "business_gateways_while_moving",
    "businesses_kyc_status_moves",
    "businesses_while_moving",
    "gateways_status_moves",
    "gateways_status_starts",
    "members_while_moving",
    "payments_final",
    "payments_fixed",
    "payments_status_moves",
    "payments_status_starts",
    "resolutions_final",
    "resolutions_fixed",
    "webhook_endpoints_while_moving",
)


@dataclass(frozen=True)
class Moves:
    """A machine as plain words, so that a migration can hold it as it was on the day it was written."""

    initial: str
    pairs: tuple[tuple[str, str], ...]
    final: tuple[str, ...]


def transition_trigger(moves: Moves, table: str, column: str) -> str:
    """Refuses every change of `column` that is not one of the machine's pairs; staying put is no change."""
    pairs = ",".join(f"{start} {end}" for start, end in moves.pairs)
    return _trigger(
        f"{table}_{column}_moves",
        f"UPDATE OF {column} ON {table}",
        f"OLD.{column} <> NEW.{column} AND OLD.{column} || ' ' || NEW.{column} <> ALL ('{{{pairs}}}')",
        _refuse(f"{table}.{column} cannot make that move"),
    )


def initial_trigger(moves: Moves, table: str, column: str, unless: str = "false") -> str:
    """Refuses a new row in any state but the first, except where the SQL condition `unless` holds."""
    return _trigger(
        f"{table}_{column}_starts",
        f"INSERT ON {table}",
        f"NEW.{column} <> '{moves.initial}' AND NOT ({unless})",
        _refuse(f"{table}.{column} starts as {moves.initial}"),
    )


def payment_triggers(moves: Moves, rules: Mapping[str, str]) -> tuple[str, ...]:
    """Refuse a payment against the rules, its first state and each move; replace the triggers of the latter two."""
    pairs = [("", moves.initial), *moves.pairs, *((state, state) for pair in moves.pairs for state in pair)]
    steps = ",".join(f'"{start} {end}"' for start, end in dict.fromkeys(pairs))
    is_step = f"coalesce(OLD.status, '') || ' ' || NEW.status = ANY ('{{{steps}}}')"
    starts, moved = f"payments.status starts as {moves.initial}", "payments.status cannot make that move"
    return (
        _rules("check_payment", rules, is_step),
        *_checked("payments_status_starts", "INSERT", "payments", f"check_payment('{starts}')"),
        *_checked("payments_status_moves", "UPDATE", "payments", f"check_payment('{moved}')"),
    )


def attempt_trigger(rules: Mapping[str, str]) -> tuple[str, ...]:
    """Refuses an attempt against the rules."""
    event = "INSERT OR UPDATE OF state, hand_off_url"
    return _rules("check_attempt", rules), *_checked("attempts_rules", event, "attempts", "check_attempt()")


def _rules(function: str, rules: Mapping[str, str], is_step: str = "true") -> str:
    """`rules` are conditions by name. As for CHECKs, one that is NULL refuses nothing, and a bulk load skips none; it
    skips `is_step` alone, whose message is the trigger's argument."""
    kept = " AND ".join(f"({rule})" for rule in rules.values())
    broken = " ".join(f"WHEN NOT ({rule}) THEN '{name}'" for name, rule in rules.items())
    return f"""
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    rule text;
BEGIN
    IF NOT ({kept} AND {is_step}) THEN
        rule := CASE {broken} END;
        IF rule IS NOT NULL THEN
            RAISE EXCEPTION 'new row for relation "%" violates check constraint "%"', TG_TABLE_NAME, rule
                USING ERRCODE = '23514', CONSTRAINT = rule, TABLE = TG_TABLE_NAME;
        ELSIF current_setting('session_replication_role') <> 'replica' THEN
            RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = '23514', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
    END IF;
    RETURN NEW;
END $$;
"""


def _checked(name: str, event: str, table: str, call: str) -> tuple[str, str]:
    return (
        f"CREATE OR REPLACE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION {call}",
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}",
    )


def final_trigger(moves: Moves, table: str, column: str) -> str:
    """Refuses every change of a row in a final state."""
    return clearing_trigger(moves, table, column)


def clearing_trigger(
    moves: Moves, table: str, column: str, clearable: Sequence[str] = (), settable: Sequence[str] = ()
) -> str:
    """As `final_trigger`, but the columns `clearable` may become NULL, and those of `settable` may get a value where
    they have none (NULL, or false): personal data ends, what comes to be known is added, the rest of the row stays.
    With its function, which a schema of an earlier release lacks."""
    told = f"'{table} in a final state cannot change', '{{{','.join(clearable)}}}', '{{{','.join(settable)}}}'"
    return _REFUSE_FINAL + _trigger(
        f"{table}_final",
        f"UPDATE ON {table}",
        f"OLD.{column} = ANY ('{{{','.join(moves.final)}}}')",
        f"refuse_change_of_final({told})",
    )


def fixed_trigger(table: str, columns: Sequence[str]) -> str:
    """Refuses every change of `columns`."""
    old, new = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
    return _trigger(
        f"{table}_fixed",
        f"UPDATE OF {', '.join(columns)} ON {table}",
        f"({old}) IS DISTINCT FROM ({new})",
        _refuse(f"{table}: {', '.join(columns)} cannot change"),
    )


def append_only_triggers(table: str) -> tuple[str, str]:
    """Refuses every change, deletion and truncation: rows are added and read."""
    calls = f"EXECUTE FUNCTION refuse_change('{table} rows are never changed or deleted')"
    return (
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW {calls}",
        f"CREATE TRIGGER {table}_never_emptied BEFORE TRUNCATE ON {table} FOR EACH STATEMENT {calls}",
    )


def _trigger(name: str, event: str, when: str, call: str) -> str:
    return f"CREATE OR REPLACE TRIGGER {name} BEFORE {event} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION {call}"


def _refuse(message: str) -> str:
    return f"refuse_change('{message}')"
