"""Two servers that both take writes, as when a primary that was replaced wakes: only what the newer one says counts."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from payagg.adapters.postgres.connections import connector
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.outside import Unavailable

WHO = Statement("SELECT name FROM servers", reads=True)


@dataclass(frozen=True)
class Two:
    old: EmbeddedPostgres
    new: EmbeddedPostgres

    def url(self, *servers: EmbeddedPostgres) -> str:
        folders = ",".join(parse_qs(urlsplit(server.url).query)["host"][0] for server in servers)
        return f"postgresql://payagg@/payagg?host={folders}"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """`new` was a copy of `old` until it was promoted."""
    folder = tmp_path_factory.mktemp("two")
    folder.chmod(0o711)
    with ExitStack() as stack:
        with EmbeddedPostgres(folder / "old", durable=False) as first, psycopg.connect(first.url) as connection:
            connection.execute("CREATE TABLE servers AS SELECT 'old' AS name")
        data = folder / "new" / "postgres"
        shutil.copytree(folder / "old" / "postgres", data)
        (data / "standby.signal").touch()
        owner = (folder / "old" / "postgres").stat()
        for one in (data, *data.rglob("*")):
            shutil.chown(one, owner.st_uid, owner.st_gid)
        old = stack.enter_context(EmbeddedPostgres(folder / "old", durable=False))
        new = stack.enter_context(EmbeddedPostgres(folder / "new", durable=False))
        with psycopg.connect(new.superuser_url, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        with psycopg.connect(new.url) as connection:
            connection.execute("UPDATE servers SET name = 'new'")
        yield Two(old, new)


async def who(pool: StatementPool) -> str:
    [(name,)] = await pool.read(WHO)
    return str(name)


async def test_of_two_that_take_writes_the_one_promoted_last_is_asked(two: Two) -> None:
    for servers in ((two.old, two.new), (two.new, two.old)):
        pool = StatementPool(connector(two.url(*servers), pgbouncer=False), 2)
        assert await who(pool) == "new"
        await pool.close()


async def test_a_connection_to_the_old_one_is_not_used_once_the_new_one_is_known(two: Two) -> None:
    connects = [connector(two.url(one), pgbouncer=False) for one in (two.old, two.new)]
    first, second = await connects[0](), await connects[1]()
    assert (first.cluster, first.timeline) == (second.cluster, second.timeline - 1)
    await second.close()

    pool = StatementPool(connects[0], 2)
    assert await who(pool) == "old"
    [held] = pool._idle
    timelines = held._connection.timelines
    assert timelines is not None
    timelines.meet(second.cluster, second.timeline)
    # Neither the connection that is there nor a new one to that server.
    with pytest.raises(Unavailable):
        await who(pool)
    await first.close()
    await pool.close()


async def test_a_connection_to_one_of_several_hosts_is_made_anew_after_silence(two: Two) -> None:
    pool = StatementPool(connector(two.url(two.old, two.new), pgbouncer=False), 2)
    await who(pool)
    [first] = pool._idle
    await who(pool)
    assert pool._idle == [first]
    first._connection.trusted = 0.0
    await who(pool)
    assert first not in pool._idle
    await pool.close()
