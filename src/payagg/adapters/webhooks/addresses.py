"""The addresses that a merchant's URL may lead to: public ones, by a list stricter than the standard library's.

And the network under the sender: it resolves, checks every address and dials the checked one, so no second lookup can
lead elsewhere. The URL stays as it is, and TLS is verified against its host name."""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address

from payagg.adapters.webhooks.http1 import NoAnswer
from payagg.adapters.webhooks.resolver import Address, Resolve

# Where every public IPv6 address lies; `is_global` says True for most of what is not assigned and lies elsewhere.
UNICAST = ipaddress.ip_network("2000::/3")
# `is_global` says True for these, or says so in some versions of Python: multicast, transition mechanisms that carry
# another address inside, reserved blocks, and the address where a virtual machine on Azure reaches its host.
REFUSED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "168.63.129.16/32",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2002::/16",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)


_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# The public DNS never has names below these: RFC 6761, RFC 6762, RFC 8375, and ICANN's resolution on .internal.
PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".test", ".home.arpa")


def is_public_name(host: str) -> bool:
    """Whether a URL's host is a public address, or a name that the public DNS may have. Makes no look-up."""
    name = host.lower().rstrip(".")
    # A host that ends in a number is an address in any spelling (URL Standard, "ends in a number").
    if ":" in name or _NUMBER.fullmatch(name.rpartition(".")[2]):
        return is_allowed(name, allow_loopback=False)
    return "." in name and not name.endswith(PRIVATE_SUFFIXES)


def is_allowed(text: str, *, allow_loopback: bool) -> bool:
    """Whether the address may be dialled. Only a plain address may, without a scope."""
    try:
        address: IPv4Address | IPv6Address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return allow_loopback
    if isinstance(address, IPv6Address) and address not in UNICAST:
        return False
    return address.is_global and not any(address in network for network in REFUSED)


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
