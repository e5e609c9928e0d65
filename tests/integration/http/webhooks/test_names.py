"""Names of merchants and providers: asked of a real name server, which may be silent, and never at another's cost."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import psutil
import pytest
from dns.rdatatype import A, to_text

from payagg.adapters.providers import registry
from payagg.adapters.providers.transport import Transport
from payagg.adapters.webhooks import resolver
from payagg.adapters.webhooks.resolver import Resolver
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application.ports.webhooks import DeliveryAttemptResult
from payagg.application.webhooks.dispatcher import CONCURRENT
from payagg.domain.report import FaultKind, ProviderFault
from tests.support.receivers import a_receiver, until


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """`silent...` gets no answer, `four...` none for AAAA, `missing...` is no name, `crowded...` has a thousand
    addresses, any other is this machine. `asked` has every question."""

    asked: list[tuple[str, str]] = field(default_factory=list)  # name and type
    delay: Callable[[str], float] = lambda _: 0.0
    port: int = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # uvloop has a class of its own
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        [question] = query.question
        name = question.name.to_text(omit_final_dot=True)
        self.asked.append((name, to_text(question.rdtype)))
        if name.startswith("silent") or (name.startswith("four") and question.rdtype != A):
            return
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        if name.startswith("missing"):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif question.rdtype == A:
            hosts = 1000 if name.startswith("crowded") else 1
            addresses = [f"127.0.{number // 250}.{1 + number % 250}" for number in range(hosts)]
            answer.answer.append(dns.rrset.from_text_list(question.name, 60, "IN", "A", addresses))
        sent = answer.to_wire(max_size=65_535)
        asyncio.get_running_loop().call_later(self.delay(name), self._transport.sendto, sent, address)


@asynccontextmanager
async def a_name_server(delay: Callable[[str], float] = lambda _: 0.0) -> AsyncIterator[NameServer]:
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: NameServer(delay=delay), local_addr=("127.0.0.1", 0)
    )
    try:
        yield server
    finally:
        transport.close()


LOOPBACK = [(socket.AF_INET, "127.0.0.1")]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}  # as every process of the product


def resolver_of(server: NameServer) -> Resolver:
    return Resolver((("127.0.0.1", server.port),))


async def test_a_name_is_asked_for_once_and_what_needs_no_name_server_asks_none() -> None:
    async with a_name_server() as server:
        resolve = resolver_of(server)
        for host in ("localhost", "shop.localhost", "127.1", "0x7f.1", "2130706433", "::1"):
            assert {address for _, address in await resolve(host)} <= {"127.0.0.1", "::1"}, host
        assert server.asked == []
        for host in ("shop.example", "Shop.Example."):
            assert await resolve(host) == LOOPBACK
        assert sorted(server.asked) == [("shop.example", "A"), ("shop.example", "AAAA")]
        with pytest.raises(OSError, match="no address"):
            await resolve("missing.example")


async def test_a_name_of_a_thousand_addresses_has_none_and_takes_no_room() -> None:
    async with a_name_server() as server:
        resolve = resolver_of(server)
        for times in (1, 2):
            with pytest.raises(OSError, match="no address"):
                await resolve("crowded.example")
            assert server.asked.count(("crowded.example", "A")) == times


async def test_the_systems_hosts_and_name_servers_are_read_again_when_they_change(tmp_path: Path) -> None:
    hosts, configuration = tmp_path / "hosts", tmp_path / "resolv.conf"
    hosts.write_text("# ours\n\n10.1.2.3  Inner.example inner # not public\nnonsense x.example\n::1 inner.example\n")
    configuration.write_text("search corp.example\nnameserver 127.0.0.9\n")
    resolve = Resolver(hosts=hosts, configuration=configuration)
    assert await resolve("inner.example") == [(socket.AF_INET, "10.1.2.3"), (socket.AF_INET6, "::1")]
    assert resolve._dns.current().nameservers == ["127.0.0.9"]
    hosts.write_text("10.9.9.9 inner.example\n")
    configuration.write_text("nameserver 127.0.0.8\nnameserver 127.0.0.7\n")
    assert await resolve("inner.example") == [(socket.AF_INET, "10.9.9.9")]
    assert resolve._dns.current().nameservers == ["127.0.0.8", "127.0.0.7"]
    for half_written in ("", "nameserver 127.\n"):
        configuration.write_text(half_written)
        assert resolve._dns.current().nameservers == ["127.0.0.8", "127.0.0.7"]
        with pytest.raises(OSError, match="cannot be read"):
            await Resolver(configuration=configuration)("shop.example")
    hosts.unlink()
    assert await resolve("inner.example") == [(socket.AF_INET, "10.9.9.9")]


async def test_a_slow_name_server_is_waited_for_and_a_silent_one_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "LOOKUP_SECONDS", 0.9)
    async with a_name_server(delay=lambda name: 0.5 if name.startswith("slow") else 0.0) as server:
        resolve = resolver_of(server)
        for number in range(3):
            await resolve(f"quick{number}.example")  # what is quick now says nothing of the next name
        assert await resolve("slow.example") == LOOPBACK
        with pytest.raises((OSError, TimeoutError)):
            await resolve("silent.example")
        ours = psutil.Process()
        before = ours.num_fds()
        with pytest.raises((OSError, TimeoutError)):
            await asyncio.gather(*(resolve(f"silent{number}.example") for number in range(20)))
        await until(lambda: ours.num_fds() <= before)


async def test_a_name_server_that_answers_for_one_family_alone_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some drop every question for AAAA."""
    monkeypatch.setattr(resolver, "LOOKUP_SECONDS", 600.0)
    async with a_name_server() as server, asyncio.timeout(20):
        resolve, ours = resolver_of(server), psutil.Process()
        before = ours.num_fds()
        assert await resolve("four.example") == LOOPBACK
        await until(lambda: ours.num_fds() <= before)


async def test_one_owners_silent_names_delay_nobody_else() -> None:
    """As many as a worker sends at once."""
    async with a_name_server() as server, a_receiver() as receiver:
        sender, port = HttpSender(allow_loopback=True, resolve=resolver_of(server)), receiver.origin.rpartition(":")[2]

        async def send(host: str) -> DeliveryAttemptResult:
            return await sender.send(f"http://{host}.example:{port}/", {}, b"{}")

        waiting = [asyncio.create_task(send(f"silent{number}")) for number in range(CONCURRENT)]
        await until(lambda: len(server.asked) >= CONCURRENT // 2)  # its socket has no room for all at once
        for number in range(20):
            assert (await send(f"shop{number}")).is_accepted
        assert not any(task.done() for task in waiting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await sender.close()


async def test_a_providers_silent_name_delays_no_other_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's look-ups are two at a time and cannot be given up: those of new database connections, too."""
    async with a_name_server() as server, a_receiver() as receiver:
        monkeypatch.setattr(registry, "Resolver", lambda: resolver_of(server))
        transport: Transport = cast(Any, registry.providers_of(allow_loopback=True)["provider_a"])._transport
        port = receiver.origin.rpartition(":")[2]

        async def call(host: str) -> int:
            return (await transport.exchange("POST", f"http://{host}.example:{port}/", {}, b"{}")).status

        waiting = [asyncio.create_task(call(f"silent{number}")) for number in range(20)]
        await until(lambda: len(server.asked) >= 2 * len(waiting))
        assert await call("provider") == 200
        assert receiver.received[0].headers["host"] == f"provider.example:{port}"
        assert not any(task.done() for task in waiting)
        for ended in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(ended, ProviderFault)
            assert ended.kind is FaultKind.UNREACHABLE  # nothing was sent, so another choice is free
