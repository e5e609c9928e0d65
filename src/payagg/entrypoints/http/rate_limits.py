"""Limits on requests: shared by all processes where guessing is concerned; in the process's own memory where load is,
on which no statement may be spent."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from payagg.application.ports import Clock, Store
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.rate_limit import HitWindow, RateLimit
from payagg.entrypoints.http.client_address import Address, address_of
from payagg.entrypoints.http.routing import AnyRequest, services
from payagg.entrypoints.settings import Settings

Rate = tuple[str, int, int, int]  # a limit's name, its size, what is left of it, seconds until it is whole
RATES = "rates"  # where the scope carries them to the edge
WINDOW_SECONDS = 60
SHOWN_FROM = 10  # from a tenth of a limit on
REMEMBERED_MAX = 10_000


def client_address(request: AnyRequest) -> str:
    """Whom limits are counted against: the IPv4 address, or the IPv6 /64, since one client owns all of it."""
    address = client_ip(request)
    if address is None:
        return "unknown"
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)


def client_ip(request: AnyRequest) -> Address | None:
    """The client's address, None where the server was not told one."""
    client = request.scope.get("client")
    proxies = services(request).settings.trusted_proxies
    return address_of(client[0], request.scope["headers"], proxies) if client else None


@dataclass(frozen=True)
class SharedLimit:
    """At most so many hits per client address in any minute, over all processes. A process that met the limit remembers
    until when, so that a flood is not counted."""

    store: Store
    clock: Clock
    name: str
    limit: RateLimit
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
        """Counts one; raises RATE_LIMITED where there is no room."""
        self.ensure_open(address)
        now = self.clock.now()
        until = await self.store.count_hit(f"{self.name}:{address}", now, self.limit)
        if until is None:
            return
        if len(self.over) >= REMEMBERED_MAX:
            self.over.clear()
        self.over[address] = until
        raise _limited(until, now)


@dataclass(frozen=True)
class LocalLimit:
    """At most so many hits per bucket in any minute, counted by this process alone: N processes let N times as many
    through. Of the buckets used last, REMEMBERED_MAX are kept."""

    clock: Clock
    name: str
    limit: RateLimit
    windows: dict[str | bytes, HitWindow] = field(default_factory=dict)

    def hit(self, request: AnyRequest, bucket: str | bytes) -> None:
        """Counts one; raises RATE_LIMITED where there is no room. Once no more than a tenth is left, the answer's
        headers say so; until then answers are the same whatever was asked before."""
        now = self.clock.now()
        window = self.windows.pop(bucket, None) or HitWindow()
        self.windows[bucket] = window  # at the end: the one used last
        if len(self.windows) > REMEMBERED_MAX:
            del self.windows[next(iter(self.windows))]
        until = window.hit(self.limit, now)
        room = self.limit.most - window.total
        if room * SHOWN_FROM <= self.limit.most:
            scope: Any = request.scope
            reset = _seconds(self.limit.window if until is None else until - now)
            scope.setdefault(RATES, []).append((self.name, self.limit.most, room, reset))
        if until is not None:
            raise _limited(until, now)

    def take_back(self, bucket: str | bytes) -> None:
        """Uncounts one hit."""
        window = self.windows.get(bucket)
        if window is not None:
            window.take_back()
            if not window.total:
                del self.windows[bucket]


@dataclass(frozen=True)
class Limits:
    """Every limit of one process."""

    inbound: SharedLimit  # provider events, by address
    guesses: SharedLimit  # unknown references, by address
    keys: LocalLimit  # requests with a secret key, by key
    bodies: LocalLimit  # refused bodies of routes without a credential, by address
    references: LocalLimit  # process and verify, by reference
    addresses: LocalLimit  # and by address

    @classmethod
    def of(cls, settings: Settings, store: Store, clock: Clock) -> "Limits":
        return cls(
            inbound=SharedLimit(store, clock, "inbound", RateLimit(settings.webhook_rate_limit)),
            guesses=SharedLimit(store, clock, "unknown-reference", RateLimit(settings.unknown_reference_limit)),
            keys=LocalLimit(clock, "key", RateLimit(settings.key_rate_limit)),
            bodies=LocalLimit(clock, "body", RateLimit(settings.refused_body_limit)),
            references=LocalLimit(clock, "reference", RateLimit(settings.reference_rate_limit)),
            addresses=LocalLimit(clock, "address", RateLimit(settings.address_rate_limit)),
        )


def limits(request: AnyRequest) -> Limits:
    found: Limits = request.app.state.limits
    return found


def rate_headers(rates: Sequence[Rate]) -> list[tuple[bytes, bytes]]:
    """What a caller may still send, as the IETF's draft of RateLimit header fields has it (window in seconds)."""
    policy = ", ".join(f'"{name}";q={most};w={WINDOW_SECONDS}' for name, most, _, _ in rates)
    left = ", ".join(f'"{name}";r={room};t={reset}' for name, _, room, reset in rates)
    return [(b"ratelimit-policy", policy.encode()), (b"ratelimit", left.encode())]


def _limited(until: datetime, now: datetime) -> Refusal:
    return Refusal(ErrorCode.RATE_LIMITED, retry_after=_seconds(until - now))


def _seconds(wait: timedelta) -> int:
    """Whole seconds after which the wait is over."""
    return max(1, -(-wait // timedelta(seconds=1)))
