"""What each error of Postgres means: whatever a restart or a switchover makes is a repetition or 503, never a 500."""

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError

from payagg.adapters.postgres.errors import ConnectionLost, RuleBroken, meaning
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.domain.errors import Refusal

# Connections, rollbacks, resources, what others hold, the operator, the system: a fault of the server is none of ours.
CLASSES = ("08", "40", "53", "55", "57", "58")
# One by one: what comes from a primary that is demoted, promoted, stopped or started.
SWITCHOVER = {
    "25006": Unavailable,  # read_only_sql_transaction: a standby, or a primary that was demoted
    "57P01": ConnectionLost,  # admin_shutdown
    "57P02": ConnectionLost,  # crash_shutdown
    "57P03": Unavailable,  # cannot_connect_now: starting, stopping or recovering
    "57P05": ConnectionLost,  # idle_session_timeout
    "25P03": ConnectionLost,  # idle_in_transaction_session_timeout
    "57014": Unavailable,  # query_canceled: a statement_timeout, or a wait for a synchronous standby that was cut short
    "08006": ConnectionLost,  # connection_failure
    "08P01": ConnectionLost,  # protocol_violation: PgBouncer's word for a server that went away
    "40001": Conflict,  # serialization_failure; a standby's conflict with recovery
    "40P01": Conflict,  # deadlock_detected
    "53300": Unavailable,  # too_many_connections: everybody connects again at once
    "55P03": Unavailable,  # lock_not_available
    "28P01": Unavailable,  # invalid_password, of a node that is behind
}


def an_error(code: str) -> psycopg.Error:
    return errors.lookup(code)("words of the server, which may hold a row")


@pytest.mark.parametrize(("code", "means"), SWITCHOVER.items())
def test_each_error_of_a_switchover_has_its_meaning(code: str, means: type[Exception]) -> None:
    error = an_error(code)
    assert type(meaning(error)) is means
    assert type(meaning(DBAPIError("SELECT 1", None, error))) is means


def test_what_the_server_answered_is_told_by_its_name() -> None:
    assert str(meaning(an_error("55P03"))) == "the database answered 55P03, LockNotAvailable"
    assert str(meaning(an_error("28P01"))) == "the database answered 28P01, InvalidPassword"
    assert str(meaning(an_error("42501"))) == "its role lacks a right (42501)"


def test_a_connection_that_ends_without_a_word_is_lost() -> None:
    assert isinstance(meaning(psycopg.OperationalError("server closed the connection")), ConnectionLost)
    # The driver's own, where the connection ended before any answer came.
    assert isinstance(meaning(psycopg.InternalError("got no result from the query")), ConnectionLost)
    # libpq's own, where this process gets no memory for an answer.
    assert isinstance(meaning(psycopg.DatabaseError("out of memory for query result")), ConnectionLost)


def test_an_error_of_ours_is_a_fault_and_one_of_the_callers_a_refusal() -> None:
    for code in ("42601", "42P01", "XX000"):  # what we wrote wrong stays a fault
        assert isinstance(meaning(an_error(code)), RuntimeError), code
    for code in ("22P02", "22021", "22003"):  # what cannot be stored is the caller's
        assert isinstance(meaning(an_error(code)), Refusal), code


def test_every_error_there_is_has_a_meaning_of_ours_and_repeats_none_of_its_words() -> None:
    for code in (code for code in errors._sqlcodes if len(code) == 5 and not code.isalpha()):
        found = meaning(an_error(code))
        of_the_server = ConnectionLost | Conflict | Unavailable
        ours = of_the_server if code.startswith(CLASSES) else of_the_server | Refusal | RuleBroken | RuntimeError
        assert isinstance(found, ours), code
        assert "a row" not in f"{found} {found!r}"
