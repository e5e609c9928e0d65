"""Why a database cannot be used, in one line for the operator: no listener, TLS, the role, the database's name."""

import re

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from payagg.adapters.postgres.connections import conninfo
from payagg.application.ports.outside import Unavailable

# Parts of the message, in the order of checking, and the fault each means. libpq gives no SQLSTATE for a failed
# connection, so its text must do; a message in another language is quoted instead.
CAUSES = (
    (r"SSL|certificate|no encryption", "{host} and we do not agree on TLS: see sslmode and sslrootcert"),
    (r"password authentication failed", "{host} refuses the password of {user}"),
    (r"no password supplied", "{host} wants a password for {user}"),
    (r'role ".*" does not exist', "{host} has no role {user}"),
    (r"no pg_hba\.conf entry|authentication failed", "{host} does not let {user} in from here: see its pg_hba.conf"),
    (r'database ".*" does not exist', "{host} has no database {dbname}: create it, or correct the name"),
    (r"permission denied for database", "{host} does not let {user} use {dbname}: GRANT CONNECT ON DATABASE {dbname}"),
    (r"too many clients|remaining connection slots", "{host} has no connection left: lower PAYAGG_POOL_SIZE"),
    (r"FATAL", "{host} refuses us"),
    (r"", "nobody answers at {host}"),
)


def where(database_url: str) -> str:
    """The database for a person: its name, host, port and our role there, never a password."""
    return "{dbname} at {host} as {user}".format(**_connection_parameters(database_url))


def ensure_reachable(database_url: str) -> None:
    """Connects once; raises Unavailable with one line that names the fault."""
    parameters = conninfo(database_url)
    try:
        with psycopg.connect(**parameters) as connection:
            encoding = connection.info.parameter_status("server_encoding")
    except psycopg.Error as error:
        said = str(error)
        words = next(words for pattern, words in CAUSES if re.search(pattern, said)).format(
            **_connection_parameters(database_url)
        )
        raise Unavailable(f"{words} ({_reason(said)})") from None
    # Names may be any text, and JSON is stored as Postgres reads it.
    if encoding != "UTF8":
        raise Unavailable(f"its encoding is {encoding}: make it with TEMPLATE template0 ENCODING 'UTF8'")


def _reason(said: str) -> str:
    """The informative line, without libpq's prefix that names the server."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = next(
        (line for line in lines if "failed: " in line or "FATAL" in line), lines[0] if lines else "no answer"
    )
    return telling.rpartition("failed: ")[2].replace("FATAL:  ", "").rstrip(".")


def _connection_parameters(database_url: str) -> dict[str, str]:
    """libpq completes the URL from PGHOST and similar variables, or by default."""
    parsed = pq.Conninfo.parse(make_conninfo(**conninfo(database_url)).encode())
    known = {one.keyword.decode(): one.val.decode() for one in (*pq.Conninfo.get_defaults(), *parsed) if one.val}
    host, user = known.get("host") or known.get("hostaddr") or "localhost", known.get("user", "?")
    if not host.startswith("/"):
        host += f":{known.get('port', '5432')}"
    return {"host": host, "user": user, "dbname": known.get("dbname", user)}
