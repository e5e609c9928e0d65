"""The network under the sender: it resolves, checks every address and dials the checked one, so no second lookup can
lead elsewhere. The URL stays as it is, and TLS is verified against its host name."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from payagg.adapters.webhooks.addresses import is_allowed
from payagg.adapters.webhooks.http1 import NoAnswer
from payagg.adapters.webhooks.resolver import Address, Resolve

CONNECT_SECONDS = 5.0
ADDRESS_SECONDS = 1.5  # for one of many addresses at least: a lost packet is sent again after a second
# Concurrent look-ups, in all and of one owner: more than the dispatcher's FAILING_MAX, so that slow names alone never
# take all. A slow name server holds two descriptors for each. Tests have their own slots.
LOOKUPS_MAX, LOOKUPS_EACH = 220, 8
TEST_LOOKUPS_MAX, TEST_LOOKUPS_EACH = 16, 2


class Budget:
    """Bounds concurrent look-ups: in all, and by owner, so an owner waits only behind its own."""

    def __init__(self, most: int, each: int) -> None:
        self._all, self._each = asyncio.Semaphore(most), each
        self._owners: dict[str, tuple[asyncio.Semaphore, set[object]]] = {}  # and who has or awaits a place

    @asynccontextmanager
    async def place(self, owner: str) -> AsyncIterator[None]:
        own, users = self._owners.setdefault(owner, (asyncio.Semaphore(self._each), set()))
        user = object()
        users.add(user)
        try:
            async with own, self._all:
                yield
        finally:
            users.discard(user)
            if not users:
                self._owners.pop(owner, None)


class CheckedNetwork:
    """`allow_loopback` adds this machine's own addresses to the public ones, for `dev`."""

    def __init__(self, resolve: Resolve, *, allow_loopback: bool) -> None:
        self._resolve = resolve
        self._allow_loopback = allow_loopback
        self._lookups = Budget(LOOKUPS_MAX, LOOKUPS_EACH)
        self._test_lookups = Budget(TEST_LOOKUPS_MAX, TEST_LOOKUPS_EACH)

    async def dial(self, host: str, port: int, owner: str, *, is_test: bool) -> socket.socket:
        """Raises NoAnswer or TimeoutError. `owner` is the business whose look-ups this one is counted among."""
        lookups = self._test_lookups if is_test else self._lookups
        async with asyncio.timeout(CONNECT_SECONDS):
            async with lookups.place(owner):
                addresses = await self._addresses(host)
            return await self._dial(addresses, port)

    async def _addresses(self, host: str) -> Sequence[Address]:
        found: Sequence[Address] = ()
        with suppress(OSError, UnicodeError):
            found = await self._resolve(host)
        if not found:
            raise NoAnswer("the host name could not be resolved")
        if not all(is_allowed(address, allow_loopback=self._allow_loopback) for _, address in found):
            raise NoAnswer("the host has an address that is not public")
        return found

    async def _dial(self, addresses: Sequence[Address], port: int) -> socket.socket:
        """One address after the other, each for its share of the time: some names have one where nothing answers."""
        loop, share = asyncio.get_running_loop(), max(CONNECT_SECONDS / len(addresses), ADDRESS_SECONDS)
        for family, address in addresses:
            dialled = socket.socket(family, socket.SOCK_STREAM)
            try:
                dialled.setblocking(False)
                dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                async with asyncio.timeout(share):
                    await loop.sock_connect(dialled, (address, port))
            except OSError:  # a TimeoutError is one
                dialled.close()
            except BaseException:
                dialled.close()
                raise
            else:
                return dialled
        raise NoAnswer("the connection was refused")
