"""Limits per client address, shared by all processes; and who the client is when proxies stand between."""

import ipaddress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from litestar import Request

from payagg.application.ports import Clock, Store
from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.http.routing import services

WINDOW = timedelta(minutes=1)
REMEMBERED_MAX = 10_000


def client_address(request: Request[Any, Any, Any]) -> str:
    """Whom limits are counted against: the IPv4 address, or the IPv6 /64, since one client owns all of it."""
    address = client_ip(request)
    if address is None:
        return "unknown"
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)


def client_ip(request: Request[Any, Any, Any]) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The client's address, None where the server was not told one.

    X-Forwarded-For counts only when the peer is a trusted proxy, and then its rightmost address that is not one:
    everything left of that was written by the client.
    """
    trusted = services(request).settings.trusted_proxies
    client = request.scope.get("client")
    address = _parsed(client[0]) if client else None
    if trusted and address is not None:
        hops = [
            hop
            for name, value in request.scope["headers"]
            if name == b"x-forwarded-for"
            for hop in value.decode("latin-1").split(",")
        ]
        while hops and any(address in network for network in trusted):
            told = _parsed(hops.pop().strip())
            if told is None:
                break
            address = told
    return address


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if address.version == 6 else None
    return mapped or address


@dataclass(frozen=True)
class Limit:
    """At most `most` hits per WINDOW and client address. A process that met the limit remembers it until the window
    ends, so that a flood does not reach the database."""

    store: Store
    clock: Clock
    name: str
    most: int
    over: dict[str, datetime] = field(default_factory=dict)

    def ensure_open(self, address: str) -> None:
        """Raises RATE_LIMITED while this process knows the address to be over the limit."""
        until = self.over.get(address)
        if until is None:
            return
        now = self.clock.now()
        if now < until:
            raise _limited(until, now)
        del self.over[address]

    async def hit(self, address: str) -> None:
        """Counts one; raises RATE_LIMITED from hit `most` + 1 on."""
        now = self.clock.now()
        if await self.store.count_hit(f"{self.name}:{address}", now, WINDOW) <= self.most:
            return
        seconds = WINDOW.total_seconds()
        until = now + timedelta(seconds=seconds - now.timestamp() % seconds)
        if len(self.over) >= REMEMBERED_MAX:
            self.over.clear()
        self.over[address] = until
        raise _limited(until, now)


def _limited(until: datetime, now: datetime) -> Refusal:
    return Refusal(ErrorCode.RATE_LIMITED, retry_after=max(1, round((until - now).total_seconds())))
