"""The network under the sender: it resolves, checks every address and dials the checked one, so no second lookup can
lead elsewhere. The URL stays as it is, and TLS is verified against its host name."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence

from payagg.adapters.webhooks.addresses import is_allowed

CONNECT_SECONDS = 5.0
LOOKUPS_MAX = 200  # at once; a slow name server holds a thread each
Address = tuple[socket.AddressFamily, str]
Resolve = Callable[[str], Awaitable[Sequence[Address]]]


class NotConnected(Exception):
    """No address answered."""


class NameUnresolved(NotConnected):
    """No address was found, so nothing is dialled."""


class AddressRefused(NotConnected):
    """One of the host's addresses is not public."""


class Resolver:
    """The system's resolver in threads of its own; callers who ask for one host at one moment share the lookup.

    The threads are daemons: a name server that never answers must not keep the process from ending.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(LOOKUPS_MAX)
        self._asked: dict[str, asyncio.Task[Sequence[Address]]] = {}

    async def __call__(self, host: str) -> Sequence[Address]:
        asked = self._asked.get(host)
        if asked is None:
            asked = self._asked[host] = asyncio.create_task(self._ask(host))
            asked.add_done_callback(lambda done: self._forget(host, done))
        # Shielded: one caller's deadline must not end the lookup that others wait for.
        return await asyncio.shield(asked)

    async def _ask(self, host: str) -> Sequence[Address]:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Sequence[Address]] = loop.create_future()

        def settle(found: Sequence[Address] | Exception) -> None:
            if answered.cancelled():
                return
            if isinstance(found, Exception):
                answered.set_exception(found)
            else:
                answered.set_result(found)

        def work() -> None:
            try:
                found: Sequence[Address] | Exception = _lookup(host)
            except (OSError, UnicodeError) as error:
                found = error
            # The loop may have ended meanwhile; then nobody waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, found)

        async with self._slots:
            threading.Thread(target=work, name="resolve", daemon=True).start()
            return await answered

    def _forget(self, host: str, done: "asyncio.Task[Sequence[Address]]") -> None:
        self._asked.pop(host, None)
        if not done.cancelled():
            done.exception()  # seen, whoever still waits

    def close(self) -> None:
        for asked in list(self._asked.values()):
            asked.cancel()


def _lookup(host: str) -> Sequence[Address]:
    """Every spelling of an address (`0x7f.1`, `2130706433`) comes back from here in its plain form."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((family, str(where[0])) for family, _, _, _, where in found))


class CheckedNetwork:
    """`allow_loopback` adds this machine's own addresses to the public ones, for `dev`."""

    def __init__(self, resolve: Resolve, *, allow_loopback: bool) -> None:
        self._resolve = resolve
        self._allow_loopback = allow_loopback

    async def dial(self, host: str, port: int) -> socket.socket:
        """Raises NotConnected or TimeoutError."""
        async with asyncio.timeout(CONNECT_SECONDS):
            return await self._dial(await self._addresses(host), port)

    async def _addresses(self, host: str) -> Sequence[Address]:
        try:
            found = await self._resolve(host)
        except (OSError, UnicodeError):
            raise NameUnresolved from None
        if not found:
            raise NameUnresolved
        if not all(is_allowed(address, allow_loopback=self._allow_loopback) for _, address in found):
            raise AddressRefused
        return found

    async def _dial(self, addresses: Sequence[Address], port: int) -> socket.socket:
        loop = asyncio.get_running_loop()
        for family, address in addresses:
            dialled = socket.socket(family, socket.SOCK_STREAM)
            try:
                dialled.setblocking(False)
                dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await loop.sock_connect(dialled, (address, port))
            except OSError:
                dialled.close()
            except BaseException:
                dialled.close()
                raise
            else:
                return dialled
        raise NotConnected
