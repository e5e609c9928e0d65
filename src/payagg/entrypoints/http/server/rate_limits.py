"""Limits on requests: shared by all processes where guessing is concerned; in the process's own memory where load is,
on which no statement may be spent."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from math import ceil
from typing import Any

from payagg.application.ports.outside import Clock
from payagg.application.ports.store import Store
from payagg.domain.rate_limit import RateLimit, TokenBucket, over_limit
from payagg.domain.values import CLOCK_SLACK, Environment
from payagg.entrypoints.http.server.client_address import SITE_TIMES, Address, Counted, address_of, counted_as
from payagg.entrypoints.http.server.routing import AnyRequest, services
from payagg.entrypoints.settings import Settings

Rate = tuple["LocalLimit", float]  # a limit, and what is left of it
RATES = "rates"  # where the scope carries them to the edge
WINDOW_SECONDS = 60
REMEMBERED_MAX = 10_000
CHANGES_A_MINUTE = 600  # of one business's managers: an entry of the audit trail takes 1 KB and is kept for good


def client_of(request: AnyRequest) -> Counted:
    """Whom limits per address are counted against."""
    return counted_as(client_ip(request))


def client_ip(request: AnyRequest) -> Address | None:
    """The client's address, None where the server was not told one."""
    client = request.scope.get("client")
    proxies = services(request).settings.trusted_proxies
    return address_of(client[0], request.scope["headers"], proxies) if client else None


@dataclass(frozen=True)
class SharedLimit:
    """At most so many hits per client in any minute, over all processes. A process that met the limit remembers until
    when, so that a flood does not reach the database."""

    store: Store
    clock: Clock
    name: str
    limit: RateLimit
    over: dict[str, datetime] = field(default_factory=dict)

    def ensure_open(self, client: Counted) -> None:
        """Raises RATE_LIMITED where this process met the limit."""
        now = self.clock.now()
        for name, _ in client:
            until = self.over.get(name)
            # A date that a clock ahead of time has set holds nobody up.
            if until is not None and now < until <= now + self.limit.window + CLOCK_SLACK:
                raise over_limit((until - now).total_seconds())
            self.over.pop(name, None)

    async def hit(self, client: Counted) -> None:
        """Counts one; raises RATE_LIMITED where there is no room."""
        self.ensure_open(client)
        now = self.clock.now()
        for name, times in client:
            limit = self.limit if times == 1 else RateLimit(self.limit.most * times, self.limit.window)
            until = await self.store.count_hit(f"{self.name}:{name}", now, limit)
            if until is not None:
                if len(self.over) >= REMEMBERED_MAX:
                    self.over.clear()
                self.over[name] = until
                raise over_limit((until - now).total_seconds())


@dataclass(frozen=True)
class LocalLimit:
    """A bucket of tokens for each caller, counted by this process alone: N processes let N times as many through. Of
    the buckets used last, REMEMBERED_MAX are kept."""

    name: str
    limit: RateLimit
    buckets: OrderedDict[str | bytes, TokenBucket] = field(default_factory=OrderedDict)  # the one used last at the end

    @cached_property
    def policy(self) -> bytes:
        return f'"{self.name}";q={self.limit.most};w={WINDOW_SECONDS}'.encode()

    def hit(self, request: AnyRequest, key: str | bytes, now: datetime) -> None:
        """Takes a token, of which the answer's headers tell; raises RATE_LIMITED where there is none."""
        bucket = self._bucket(key, now)
        wait = bucket.take(self.limit, now)
        scope: Any = request.scope
        scope[RATES].append((self, bucket.left))
        if wait:
            raise over_limit(wait)

    def spend(self, key: str | bytes, tokens: int, now: datetime, what: str) -> None:
        """Takes so many tokens, of which no header tells; raises RATE_LIMITED with the words `what`."""
        wait = self._bucket(key, now).take(self.limit, now, tokens)
        if wait:
            raise over_limit(wait, what)

    def _bucket(self, key: str | bytes, now: datetime) -> TokenBucket:
        buckets = self.buckets
        bucket = buckets.get(key)
        if bucket is None:
            bucket = buckets[key] = TokenBucket(self.limit, now)
            if len(buckets) > REMEMBERED_MAX:
                buckets.popitem(last=False)
        else:
            buckets.move_to_end(key)
        return bucket

    def give_back(self, request: AnyRequest, key: str | bytes) -> None:
        """As if it had not been asked: the answer tells nothing of this limit, either."""
        bucket = self.buckets.get(key)
        if bucket is not None:
            bucket.give_back(self.limit)
            if bucket.left >= self.limit.most:
                del self.buckets[key]
        scope: Any = request.scope
        scope[RATES] = [rate for rate in scope[RATES] if rate[0] is not self]


@dataclass(frozen=True)
class AddressLimit:
    """A LocalLimit of clients, and one of the sites that they are of."""

    clients: LocalLimit
    sites: LocalLimit

    @classmethod
    def of(cls, name: str, most: int) -> "AddressLimit":
        return cls(LocalLimit(name, RateLimit(most)), LocalLimit(f"{name}-48", RateLimit(most * SITE_TIMES)))

    def hit(self, request: AnyRequest, client: Counted, now: datetime) -> None:
        for name, times in client:
            self._of(times).hit(request, name, now)

    def give_back(self, request: AnyRequest, client: Counted) -> None:
        for name, times in client:
            self._of(times).give_back(request, name)

    def _of(self, times: int) -> LocalLimit:
        return self.clients if times == 1 else self.sites


@dataclass(frozen=True)
class Limits:
    """Every limit of one process."""

    inbound: SharedLimit  # provider events, by address
    guesses: SharedLimit  # unknown references and sign-ins at an issuer, by address
    keys: LocalLimit  # requests with a secret key, by key
    businesses: LocalLimit  # and by business and environment
    bytes_a_day: Mapping[Environment, LocalLimit]  # of bodies sent with a secret key, by business or by key
    changes: LocalLimit  # by managers, by business
    bodies: AddressLimit  # refused bodies of process
    references: LocalLimit  # a payer's requests, by reference: one checkout link
    addresses: AddressLimit  # process and verify

    @classmethod
    def of(cls, settings: Settings, store: Store, clock: Clock) -> "Limits":
        return cls(
            inbound=SharedLimit(store, clock, "inbound", RateLimit(settings.webhook_rate_limit)),
            guesses=SharedLimit(store, clock, "unknown-reference", RateLimit(settings.unknown_reference_limit)),
            keys=LocalLimit("key", RateLimit(settings.key_rate_limit)),
            businesses=LocalLimit("business", RateLimit(settings.business_rate_limit)),
            bytes_a_day={
                environment: LocalLimit("bytes", RateLimit(most, timedelta(days=1)))
                for environment, most in (
                    (Environment.SANDBOX, settings.sandbox_bytes_a_day),
                    (Environment.LIVE, settings.live_bytes_a_day),
                )
            },
            changes=LocalLimit("changes", RateLimit(CHANGES_A_MINUTE)),
            bodies=AddressLimit.of("body", settings.refused_body_limit),
            references=LocalLimit("reference", RateLimit(settings.reference_rate_limit)),
            addresses=AddressLimit.of("address", settings.address_rate_limit),
        )


def limits(request: AnyRequest) -> Limits:
    app: Any = request.scope["litestar_app"]
    found: Limits = app.limits
    return found


def rate_headers(rates: Sequence[Rate]) -> list[tuple[bytes, bytes]]:
    """What a caller may still send, as draft-ietf-httpapi-ratelimit-headers-11 has it; times in seconds."""
    policies, told = [], []
    for own, left in rates:
        limit, name = own.limit, own.name.encode()
        policies.append(own.policy)
        # What is left, and in how many seconds all of it is.
        told.append(b'"%b";r=%d;t=%d' % (name, left, ceil((limit.most - left) / limit.rate)))
    return [(b"ratelimit-policy", b", ".join(policies)), (b"ratelimit", b", ".join(told))]
