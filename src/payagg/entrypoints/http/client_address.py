"""Who the client is when proxies stand between."""

import ipaddress
from collections.abc import Iterable

from payagg.entrypoints.setting_kinds import Networks

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def address_of(peer: str, headers: Iterable[tuple[bytes, bytes]], proxies: Networks) -> Address | None:
    """The client's address, None where `peer` is none.

    X-Forwarded-For counts only when the peer is a trusted proxy, and then its rightmost address that is not one:
    everything left of that was written by the client.
    """
    address = _parsed(peer)
    if proxies and address is not None:
        hops = [
            hop for name, value in headers if name == b"x-forwarded-for" for hop in value.decode("latin-1").split(",")
        ]
        while hops and any(address in network for network in proxies):
            forwarded_for = _parsed(hops.pop().strip())
            if forwarded_for is None:
                break
            address = forwarded_for
    return address


def _parsed(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
