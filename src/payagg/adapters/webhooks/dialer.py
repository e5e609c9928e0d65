"""The network under the sender: it resolves, checks every address and dials the checked one, so no second lookup can
lead elsewhere. The URL stays as it is, and TLS is verified against its host name."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress

from payagg.adapters.webhooks.addresses import is_allowed
from payagg.adapters.webhooks.http1 import NoAnswer
from payagg.adapters.webhooks.resolver import Address, Resolve

CONNECT_SECONDS = 5.0
ADDRESS_SECONDS = 1.5  # for one of many addresses at least: a lost packet is sent again after a second


class CheckedNetwork:
    """`allow_loopback` adds this machine's own addresses to the public ones, for `dev`."""

    def __init__(self, resolve: Resolve, *, allow_loopback: bool) -> None:
        self._resolve = resolve
        self._allow_loopback = allow_loopback

    async def dial(self, host: str, port: int) -> socket.socket:
        """Raises NoAnswer or TimeoutError."""
        async with asyncio.timeout(CONNECT_SECONDS):
            return await self._dial(await self._addresses(host), port)

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
