"""Who the client is when proxies stand between, and what is counted against whom."""

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

from payagg.entrypoints.setting_kinds import Networks

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# The names under which a client is counted, each with the number of times that the limit holds for it.
Counted = tuple[tuple[str, int], ...]
ADDRESS_MAX = 64  # characters; an IPv6 address has 45 at most, and may name an interface
# Some proxies name the client's port, too: 192.0.2.1:61001, [2001:db8::1]:61001.
PORT = re.compile(r"^(?:([\d.]+):\d+|\[(.*)\](?::\d+)?)$", re.ASCII)
SITE_TIMES = 10  # a /48 may have as much as ten of its /64s


def address_of(peer: str, headers: Iterable[tuple[bytes, bytes]], proxies: Networks) -> Address | None:
    """The client's address, None where `peer` is none.

    X-Forwarded-For counts only when the peer is a trusted proxy, and then its rightmost address that is not one:
    everything left of that was written by the client.
    """
    address = parse_address(peer)
    if proxies and address is not None:
        hops = [
            hop for name, value in headers if name == b"x-forwarded-for" for hop in value.decode("latin-1").split(",")
        ]
        while hops and any(address in network for network in proxies):
            forwarded_for = parse_address(PORT.sub(r"\1\2", hops.pop().strip()))
            if forwarded_for is None:
                break
            address = forwarded_for
    return address


@lru_cache(4096)
def counted_as(address: Address | None) -> Counted:
    """An IPv4 client is its address. An IPv6 client has a /64 to itself and often a whole /48, so both are counted, the
    /48 at SITE_TIMES the limit. All clients without an address are one."""
    if address is None:
        return (("unknown", 1),)
    if address.version == 4:
        return ((str(address), 1),)
    subnet, site = (ipaddress.IPv6Network((int(address), bits), strict=False) for bits in (64, 48))
    return (str(subnet), 1), (str(site), SITE_TIMES)


def parse_address(text: str) -> Address | None:
    """The address, None where `text` is none; IPv4 within IPv6 (::ffff:192.0.2.1) is IPv4."""
    return _parse(text) if len(text) <= ADDRESS_MAX else None


@lru_cache(4096)  # parsing takes as long as three limits; the texts are others', so only short ones are kept
def _parse(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
