"""Which of several hosts is taken as the primary: the one on the newest timeline, and nobody waits for a silent one."""

import asyncio
from typing import Any

import psycopg
import pytest

from payagg.adapters.postgres import primary
from payagg.adapters.postgres.connections import conninfo, each_host
from payagg.adapters.postgres.primary import PrimaryConnection, Timelines, newest_primary

CLUSTER = 7


class Answering:
    """A host's connection as `newest_primary` sees it."""

    def __init__(self, timeline: int) -> None:
        self.timeline = timeline
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True


class Hosts:
    """What each host says: a connection to it, a refusal, or nothing. Several words are said one after the other."""

    def __init__(self, **said: list[Any]) -> None:
        self.said = said
        self.asked: list[str] = []

    async def ask(self, host: str) -> Any:
        self.asked.append(host)
        words = self.said[host]
        word = words.pop(0) if len(words) > 1 else words[0]
        if word is None:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        if isinstance(word, Exception):
            raise word
        return word

    async def newest_primary(self) -> Any:
        async with asyncio.timeout(60):
            return await newest_primary(list(self.said), self.ask)


REFUSAL = psycopg.OperationalError("session is read-only")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primary, "AGAIN", 0.01)
    monkeypatch.setattr(primary, "SECOND_LOOK", 0.05)


async def test_a_host_that_says_nothing_holds_nobody_up() -> None:
    taking = Answering(1)
    assert await Hosts(silent=[None], standby=[REFUSAL], primary=[(taking, False)]).newest_primary() is taking
    assert not taking.is_closed


async def test_a_host_that_refused_and_then_says_nothing_is_waited_for_once() -> None:
    promoted = Answering(2)
    hosts = Hosts(frozen=[None], other=[REFUSAL, None], standby=[*[REFUSAL] * 8, (promoted, True)])
    assert await hosts.newest_primary() is promoted
    assert hosts.asked.count("other") == 2


async def test_of_two_that_take_writes_the_one_on_the_newer_timeline_is_taken() -> None:
    woken, promoted = Answering(1), Answering(2)
    hosts = Hosts(woken=[(woken, False)], promoted=[(promoted, True)])
    assert await hosts.newest_primary() is promoted
    assert (woken.is_closed, promoted.is_closed) == (True, False)


async def test_each_refusal_is_awaited_and_the_last_is_told() -> None:
    hosts = Hosts(one=[REFUSAL], other=[psycopg.OperationalError("connection refused")])
    with pytest.raises(psycopg.OperationalError):
        await hosts.newest_primary()
    assert sorted(hosts.asked) == ["one", "other"]


async def test_a_caller_that_gives_up_leaves_no_connection_behind() -> None:
    late = Answering(1)

    class Late(Hosts):
        async def ask(self, host: str) -> Any:
            try:
                return await super().ask(host)
            except asyncio.CancelledError:
                return late, False

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await newest_primary(["silent"], Late(silent=[None]).ask)
    assert late.is_closed


def placed(timelines: Timelines, cluster: int, timeline: int) -> PrimaryConnection:
    connection = PrimaryConnection.__new__(PrimaryConnection)
    connection.timelines, connection.cluster, connection.timeline = timelines, cluster, timeline
    timelines.meet(cluster, timeline)
    return connection


def test_a_connection_is_deposed_once_a_newer_timeline_of_its_cluster_is_met() -> None:
    timelines = Timelines()
    old, another, silent = placed(timelines, CLUSTER, 1), placed(timelines, 8, 1), placed(timelines, CLUSTER, 0)
    assert not old.is_stale_primary
    new = placed(timelines, CLUSTER, 2)
    assert [one.is_stale_primary for one in (old, new, another, silent)] == [True, False, False, False]


def test_each_host_has_its_port() -> None:
    for url, told in (
        ("postgresql://u@a,b:5433/db", [("a", None), ("b", "5433")]),
        ("postgresql://u@a:1,b:2/db", [("a", "1"), ("b", "2")]),
        ("postgresql://u@/db?host=a,b&port=7", [("a", "7"), ("b", "7")]),
        ("postgresql://u@a/db", [("a", None)]),
        ("postgresql:///db", [(None, None)]),
    ):
        assert [(one.get("host"), one.get("port") or None) for one in each_host(conninfo(url))] == told


def test_of_several_hosts_the_primary_is_meant_unless_the_url_says_otherwise() -> None:
    assert conninfo("postgresql://u@a,b/db")["target_session_attrs"] == "read-write"
    assert conninfo("postgresql://u@a,b/db?target_session_attrs=any")["target_session_attrs"] == "any"
    assert "target_session_attrs" not in conninfo("postgresql://u@a/db")
