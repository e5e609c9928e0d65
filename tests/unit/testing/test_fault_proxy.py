"""Each fault of the proxy, between a client and a server that notes what reached it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from payagg_testing import Blackhole, Delay, Drip, DropReply, FaultProxy, HalfOpen, Reset
from payagg_testing.network_faults import COMMITTED, Then

pytestmark = pytest.mark.anyio
PATIENCE = 30.0  # seconds; only so that a defect fails instead of hanging
WORD = b"0123456789"


@dataclass
class Echo:
    """Answers with what it hears. `ended`: how many of its connections are over."""

    heard: bytearray = field(default_factory=bytearray)
    connections: int = 0
    ended: int = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while said := await reader.read(65536):
                self.heard += said
                writer.write(said)
        except ConnectionError:
            pass
        finally:
            self.ended += 1
            writer.close()


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, said: bytes) -> bytes:
        self.writer.write(said)
        return await self.read(len(said))

    async def read(self, size: int) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readexactly(size)

    async def hears_nothing(self) -> None:
        """For a moment, in which an answer would have come: nothing can show that none comes later."""
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await self.reader.read(1)

    async def is_reset(self) -> None:
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(ConnectionResetError):
                await self.reader.read()


@dataclass
class EchoSite:
    echo: Echo
    proxy: FaultProxy

    async def client(self) -> Client:
        return Client(*await asyncio.open_connection("127.0.0.1", self.proxy.port))

    async def connected(self) -> Client:
        """One that has been answered."""
        client = await self.client()
        assert await client.ask(WORD) == WORD
        self.echo.heard.clear()
        return client

    async def struck(self, times: int = 1) -> None:
        await until(lambda: self.proxy.struck == times)

    async def ended(self) -> None:
        """The one connection of the server is over."""
        await until(lambda: self.echo.ended == 1)


@asynccontextmanager
async def listening(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@pytest.fixture
async def site() -> AsyncIterator[EchoSite]:
    echo = Echo()
    async with listening(echo.talk) as port, FaultProxy("127.0.0.1", port) as proxy:
        yield EchoSite(echo, proxy)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - the other task sets no event
            await asyncio.sleep(0.005)


async def test_without_a_fault_every_byte_passes_and_so_does_the_end(site: EchoSite) -> None:
    client = await site.client()
    much = bytes(range(256)) * 4096
    assert await client.ask(much) == much
    client.writer.write_eof()
    assert await client.reader.read() == b""
    await until(lambda: site.proxy.connections == 0)
    assert site.echo.ended == 1


async def test_delay_and_drip_pass_everything_on_later_and_at_once_when_they_are_over(site: EchoSite) -> None:
    client = await site.connected()
    site.proxy.impose(Delay(0.01))
    assert await client.ask(WORD) == WORD
    assert site.proxy.struck == 2  # each way
    site.proxy.impose(Drip(3, 0.005))
    client.writer.write(WORD)
    assert await client.reader.read(100) == WORD[:3]
    assert await client.read(7) == WORD[3:]
    site.proxy.impose(Delay(PATIENCE * 10))
    client.writer.write(WORD)
    await site.struck()
    site.proxy.heal()
    assert await client.read(len(WORD)) == WORD


async def test_blackhole_swallows_and_heals_by_a_reset(site: EchoSite) -> None:
    before, untouched = await site.connected(), await site.connected()
    site.proxy.impose(Blackhole())
    new = await site.client()
    for client in (before, new):
        client.writer.write(WORD)
        await client.hears_nothing()
    assert (site.echo.connections, bytes(site.echo.heard)) == (2, b"")
    before.writer.close()
    await new.hears_nothing()
    assert site.echo.ended == 0  # not even the end is told
    site.proxy.heal()
    await new.is_reset()
    await site.ended()
    assert await untouched.ask(WORD) == WORD


@pytest.mark.parametrize("after", [0, 4, 10, 14])
async def test_reset_lets_so_many_bytes_of_an_answer_pass(site: EchoSite, after: int) -> None:
    client = await site.connected()
    site.proxy.impose(Reset(after))
    client.writer.write(WORD)
    if after > len(WORD):
        assert await client.read(len(WORD)) == WORD
        client.writer.write(WORD)
    await site.struck()
    await client.is_reset()
    await site.ended()
    assert len(site.echo.heard) == (20 if after > len(WORD) else 10)


async def test_half_open_hangs_up_on_the_server_alone(site: EchoSite) -> None:
    client = await site.connected()
    site.proxy.impose(HalfOpen())
    client.writer.write(WORD)
    await site.ended()
    await client.hears_nothing()
    client.writer.write(WORD)
    await client.hears_nothing()
    assert bytes(site.echo.heard) == WORD
    site.proxy.heal()
    await client.is_reset()


@pytest.mark.parametrize("then", list(Then))
async def test_drop_reply_delivers_the_request_alone(site: EchoSite, then: Then) -> None:
    client = await site.connected()
    site.proxy.impose(DropReply(then=then), times=1)
    client.writer.write(WORD)
    await site.struck()
    await (client.is_reset() if then is Then.RESET else client.hears_nothing())
    assert bytes(site.echo.heard) == WORD
    again = await site.connected()  # once is once
    site.proxy.impose(DropReply(after=b"INSERT"))  # which may come in two pieces
    assert await again.ask(b"SELECT INS") == b"SELECT INS"
    again.writer.write(b"ERT")
    await again.is_reset()
    assert bytes(site.echo.heard) == b"SELECT INSERT"


@pytest.mark.parametrize("cut", [0, 1, len(COMMITTED) - 1])
async def test_the_answer_of_a_commit_is_found_in_the_middle_of_a_pipeline(site: EchoSite, cut: int) -> None:
    before = b"C\x00\x00\x00\x0dINSERT 0 1\x00" + b"C\x00\x00\x00\x0dROLLBACK\x00"
    said = before + COMMITTED + b"Z\x00\x00\x00\x05I"
    client = await site.connected()
    site.proxy.impose(DropReply(at=COMMITTED, then=Then.SILENCE))
    client.writer.write(said[: len(before) + cut])
    assert await client.read(len(before) + cut) == said[: len(before) + cut]
    client.writer.write(said[len(before) + cut :])
    await site.struck()
    await client.hears_nothing()
    assert bytes(site.echo.heard) == said
