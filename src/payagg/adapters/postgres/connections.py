"""Connections: libpq reads the URL itself, so several hosts and unix sockets work as it documents.

Of several hosts the one that accepts writes is used, unless the URL says otherwise. Why a database cannot be used is
one line for the operator: no listener, TLS, the role, the database's name.
"""

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from select import POLLIN, poll
from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import Engine, NullPool, create_engine

from payagg.adapters.postgres.primary import TRUSTED, PrimaryConnection, Timelines, newest_primary
from payagg.application.ports.outside import Unavailable

# For locks and look-ups that Postgres keeps for a whole database, which may hold others' tables: our own schema, the
# first one of the role's search path. The release before takes the same locks. 0 where the path names no schema that
# exists.
OWN_SCHEMA = "coalesce((SELECT oid::int FROM pg_namespace WHERE nspname = current_schema()), 0)"


DriverConnection = PrimaryConnection
Connect = Callable[[], Awaitable[DriverConnection]]

# In milliseconds. A request is answered long before; these end a stuck statement that holds locks.
TIMEOUTS = {
    "statement_timeout": 7_000,
    "lock_timeout": 6_000,
    "idle_in_transaction_session_timeout": 20_000,
}
# Nearly every statement finds rows by key: one generic plan, by index even while a table is small, and in the index's
# order: a bitmap would read and sort all payments of a merchant for one page. Where a small table has no index,
# `enable_seqscan` makes a plan so costly (to Postgres 17) that a server with LLVM would compile it for 80 ms.
BY_INDEX = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
# In other forms the driver reads no instant.
FORMS = {"timezone": "UTC", "datestyle": "ISO", "intervalstyle": "postgres"}
CONNECT_WAIT = 5  # seconds for each host of the URL
# TCP keepalives notice a vanished host while a connection is idle, too.
TCP = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 8_000}


def conninfo(database_url: str) -> dict[str, Any]:
    """libpq's parameters for a `postgresql://` URL, with our defaults where it is silent; raises Unavailable."""
    scheme, separator, rest = database_url.partition("://")
    if scheme.split("+")[0] not in ("postgresql", "postgres") or not separator:
        raise Unavailable("the database URL must start with postgresql://")
    try:
        parameters = conninfo_to_dict(f"postgresql://{rest}")
    except psycopg.ProgrammingError:
        # The driver's message contains the URL, password included.
        raise Unavailable("the database URL cannot be read") from None
    if len(each_host(parameters)) > 1:
        parameters.setdefault("target_session_attrs", "read-write")
    return {"application_name": "payagg", "connect_timeout": CONNECT_WAIT, **TCP, **parameters}


def each_host(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """The parameters of each named host; one set when none is named."""
    lists = {name: str(parameters[name]).split(",") for name in ("host", "hostaddr", "port") if parameters.get(name)}
    count = max(len(lists.get("host", [""])), len(lists.get("hostaddr", [""])))
    # One port may serve all hosts.
    return [
        parameters | {name: told[number if len(told) > 1 else 0] for name, told in lists.items()}
        for number in range(count)
    ]


def sync_connection(database_url: str, **parameters: str) -> "psycopg.Connection[Any]":
    """One without timeouts, for migrations and operators; PgBouncer may stand between. READ COMMITTED, whatever the
    database's default: a migration that keeps its first snapshot waits for itself to build an index. `parameters` of
    libpq stand before the URL's. Raises psycopg.Error, and Unavailable for a URL that cannot be read."""
    connection = psycopg.connect(**conninfo(database_url) | parameters, prepare_threshold=None)
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return connection


@contextmanager
def sync_engine(database_url: str) -> Iterator[Engine]:
    """Connections as `sync_connection` makes them, one for each call."""
    engine = create_engine("postgresql+psycopg://", creator=lambda: sync_connection(database_url), poolclass=NullPool)
    try:
        yield engine
    finally:
        engine.dispose()


def connector(database_url: str, *, pgbouncer: bool) -> Connect:
    """How this process connects: READ COMMITTED, with TIMEOUTS, FORMS and BY_INDEX.

    Behind PgBouncer in transaction mode no statement stays prepared, and those settings belong to the database role: a
    setting made on one connection would reach another client's. When the URL names several hosts, all are tried at the
    same time: an unresponsive one delays nobody, and of two that accept writes the last promoted one is used.
    """
    parameters = conninfo(database_url)
    if pgbouncer:
        parameters["prepare_threshold"] = None
    else:
        wanted = {**TIMEOUTS, **FORMS, "default_transaction_isolation": r"read\ committed", **BY_INDEX}
        ours = " ".join(f"-c {name}={value}" for name, value in wanted.items())
        # The operator's options come last and win.
        parameters["options"] = f"{ours} {parameters.get('options') or ''}".strip()

    timelines, hosts = Timelines(), each_host(parameters)

    async def ask(number: int) -> tuple[DriverConnection, bool]:
        connection = await DriverConnection.connect(**hosts[number])
        try:
            is_ahead = await connection.place(timelines)
        except BaseException:
            await connection.close()
            raise
        connection.trusted = TRUSTED if len(hosts) > 1 else connection.trusted
        return connection, is_ahead

    async def through_pgbouncer() -> DriverConnection:
        connection = await DriverConnection.connect(**parameters)
        # The one setting that PgBouncer tracks per client.
        await connection.execute("SET TIME ZONE 'UTC'")
        await connection.commit()
        return connection

    async def connect() -> DriverConnection:
        return await newest_primary(range(len(hosts)), ask)

    return through_pgbouncer if pgbouncer else connect


def was_closed(connection: DriverConnection) -> bool:
    """Whether the server has closed the connection: between statements it sends nothing else, so a poll of the socket
    shows it without a round trip."""
    socket = poll()
    socket.register(connection.fileno(), POLLIN)
    return bool(socket.poll(0))


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
