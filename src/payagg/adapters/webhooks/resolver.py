"""Resolves a merchant's host name. Every look-up ends in bounded time and leaves no thread or socket. The library is
loaded at the first one: it takes 3 MiB, and a server without worker seldom looks a name up."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver as DnsResolver
    from dns.resolver import Answer

T = TypeVar("T")
Address = tuple[socket.AddressFamily, str]
Resolve = Callable[[str], Awaitable[Sequence[Address]]]
NameServers = tuple[tuple[str, int], ...]  # address and port
LOOKUP_SECONDS = 4.0  # shorter than a connection's, so that there is time left to dial
QUESTION_SECONDS = 2.0  # until it is asked again, or of the next name server
OTHER_SECONDS = 0.5  # for the other family, once one is known: some name servers never answer for AAAA (RFC 8305, 3)
KEPT_MAX = 10_000  # cached answers, each for its TTL
# Bytes of an answer that is used: what one datagram carries anywhere, some seventy addresses. One of 64 KB takes 0.6 MB
# of the cache, as often as its owner makes up names, and has thousands of addresses to dial.
ANSWER_MAX = 1232
FAMILIES = {"AAAA": socket.AF_INET6, "A": socket.AF_INET}  # by the type of the record


class Resolver:
    """The system's name servers, or those given, and the system's file of hosts. A name is asked for as it stands:
    search domains are for names of one's own network."""

    def __init__(
        self,
        name_servers: NameServers = (),
        *,
        configuration: Path = Path("/etc/resolv.conf"),
        hosts: Path = Path("/etc/hosts"),
    ) -> None:
        self._name_servers = name_servers
        self._dns = _ReloadedFile(configuration, self._configure)
        self._hosts = _ReloadedFile(hosts, _read_hosts)

    async def __call__(self, host: str) -> Sequence[Address]:
        """Raises OSError or UnicodeError where there is no such host, or no answer in LOOKUP_SECONDS."""
        known = _spelt(host) or self._hosts.current().get(host.lower().rstrip("."))
        if known:
            return known
        resolver, name = self._dns.current(), f"{host.rstrip('.')}."
        asks = [asyncio.create_task(_ask(resolver, name, kind)) for kind in FAMILIES]
        try:
            await _one_and_soon_the_other(asks)
        finally:
            for ask in asks:
                ask.cancel()
        found = [address for ask in asks for address in _found(ask)]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "no address was found")
        return found

    @cached_property
    def _answers(self) -> Any:
        from dns.resolver import LRUCache

        class SmallAnswers(LRUCache):
            def put(self, key: Any, value: Any) -> None:
                if not _is_large(value):
                    super().put(key, value)

        return SmallAnswers(KEPT_MAX)

    def _configure(self, path: Path) -> "DnsResolver":
        from dns.asyncresolver import Resolver as DnsResolver
        from dns.nameserver import Do53Nameserver

        resolver = DnsResolver(configure=False)
        if self._name_servers:
            resolver.nameservers = [Do53Nameserver(address, port) for address, port in self._name_servers]
        else:
            resolver.read_resolv_conf(path)
        resolver.cache = self._answers
        resolver.timeout, resolver.lifetime = QUESTION_SECONDS, LOOKUP_SECONDS
        return resolver


async def _ask(resolver: "DnsResolver", name: str, kind: str) -> list[Address]:
    from dns.exception import DNSException

    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            answer = await resolver.resolve(name, kind, raise_on_no_answer=False)
    except DNSException as error:
        raise socket.gaierror(socket.EAI_NONAME, type(error).__name__) from None
    if _is_large(answer):
        raise socket.gaierror(socket.EAI_NONAME, "the name has too many addresses")
    return [(FAMILIES[kind], record.address) for record in answer]


async def _one_and_soon_the_other(asks: list["asyncio.Task[list[Address]]"]) -> None:
    """Once one has found an address, the other has OTHER_SECONDS left."""
    for ask in asyncio.as_completed(asks):
        with suppress(Exception):  # whatever it is, the other may find one
            if await ask:
                break
    await asyncio.wait(asks, timeout=OTHER_SECONDS)


def _found(ask: "asyncio.Task[list[Address]]") -> list[Address]:
    return [] if not ask.done() or ask.cancelled() or ask.exception() else ask.result()


def _is_large(answer: "Answer") -> bool:
    return len(answer.response.wire or b"") > ANSWER_MAX


def _spelt(host: str) -> list[Address]:
    """The address that the host spells: any spelling (`0x7f.1`, `2130706433`) comes back in its plain form. Asks
    nobody."""
    with suppress(OSError):
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return [(family, str(where[0])) for family, _, _, _, where in found]
    if host == "localhost" or host.endswith(".localhost"):  # RFC 6761, 6.3: of no name server
        return [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
    return []


def _read_hosts(path: Path) -> dict[str, list[Address]]:
    """hosts(5): an address and its names on each line."""
    found: dict[str, list[Address]] = {}
    for line in path.read_text(errors="replace").splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        with suppress(ValueError):
            family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
            for name in names:
                found.setdefault(name.lower(), []).append((family, address))
    return found


@dataclass
class _ReloadedFile(Generic[T]):
    """What was read from a file of the system; read again when the file has changed."""

    path: Path
    read: Callable[[Path], T]
    _seen: tuple[int, T] | None = field(default=None, init=False)

    def current(self) -> T:
        """Raises OSError where the file cannot be read and never could: somebody may be writing it."""
        try:
            changed = self.path.stat().st_mtime_ns
        except OSError:
            changed = -1
        if self._seen is None or changed not in (-1, self._seen[0]):
            try:
                self._seen = changed, self.read(self.path)
            except Exception:  # noqa: BLE001 - the library's, for one that is empty, is no OSError
                if self._seen is None:
                    raise socket.gaierror(socket.EAI_AGAIN, f"{self.path} cannot be read") from None
        return self._seen[1]
