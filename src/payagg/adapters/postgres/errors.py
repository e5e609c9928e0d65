"""Maps the database's errors to those of the use cases. No message repeats a row: rows hold personal data."""

import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from payagg.application.ports.outside import Conflict, Unavailable
from payagg.domain.errors import ErrorCode, Refusal

# Serialisation failure and deadlock.
REPEATABLE = {"40001", "40P01"}
UNIQUE = "23505"
CHECK = "23514"
UNSTORABLE = "The input holds a value that cannot be stored."
FULL = "53100"
# A standby, or a former primary.
TAKES_NO_WRITES = "25006"
# The server ended this connection: shutdown, crash, or an idle transaction.
ENDED = {"57P01", "57P02", "57P05", "25P03", "25P04"}


class RuleBroken(Exception):
    """The schema refused what the use case allowed: our defect. Names the rule, never the row."""


class ConnectionLost(Exception):
    """The connection ended during a statement."""


class Taken(Conflict):
    """Another transaction took the unique value first: a repeat reads and decides again."""


def meaning(error: Exception) -> Exception:
    """The exception to raise for an exception of the driver or SQLAlchemy."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, psycopg.Error):
        return Unavailable("the database client failed") if isinstance(error, SQLAlchemyError) else error
    state = cause.sqlstate
    if (
        state in ENDED
        or (state or "").startswith("08")
        or (state is None and isinstance(cause, psycopg.OperationalError | psycopg.InternalError))
        or (not state and type(cause) is psycopg.DatabaseError)  # libpq's own, as without memory for an answer
    ):
        return ConnectionLost(state or "no answer")
    if state == UNIQUE:
        return Taken(f"{cause.diag.table_name}: {cause.diag.constraint_name}")
    if state in REPEATABLE or _is_outdated_partition(cause):
        return Conflict(state or "")
    if state is not None and state.startswith("22"):
        return Refusal(ErrorCode.VALIDATION_ERROR, UNSTORABLE)
    if state is not None and state.startswith("23"):
        return RuleBroken(f"{cause.diag.table_name}: {cause.diag.constraint_name or cause.diag.column_name or state}")
    if isinstance(cause, psycopg.DataError):
        # The driver refused a value before sending it, for example a text with a zero byte.
        return Refusal(ErrorCode.VALIDATION_ERROR, UNSTORABLE)
    if state == FULL:
        return Unavailable("no space is left on its disk")
    if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError) or state == TAKES_NO_WRITES:
        # Timeouts, too many connections, a standby that takes no writes.
        return Unavailable(f"the database answered {f'{state}, {type(cause).__name__}' if state else 'nothing'}")
    return RuntimeError(f"the database refused a statement: {state} {cause.diag.message_primary}")


def _is_outdated_partition(error: psycopg.Error) -> bool:
    """A row was being inserted into the default partition while its own was attached: a repeat inserts it there.
    Postgres has no code for that, but every other CHECK has a name."""
    return error.sqlstate == CHECK and error.diag.constraint_name is None


class translate_errors:  # noqa: N801 - it reads as a verb, and made of a generator it takes twice as long
    """Raises the mapped error; `lost` is the one for a lost connection.

    Inside a transaction it is a Conflict, for the server has rolled back. While connecting it is Unavailable, and so it
    is at COMMIT, whose outcome is unknown then: that must not be repeated blindly.
    """

    def __init__(self, lost: type[Exception] = Unavailable) -> None:
        self._lost = lost

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, SQLAlchemyError | psycopg.Error):
            means = meaning(error)
            is_lost = isinstance(means, ConnectionLost)
            raise (self._lost("the database connection was lost") if is_lost else means) from None
