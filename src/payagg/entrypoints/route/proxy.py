"""Sending a request to its cell: the choice, the cell that says "not here", the cell that does not answer."""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from math import ceil
from time import monotonic
from typing import Protocol

import httpx

from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.rate_limit import EPOCH, RateLimit, TokenBucket
from payagg.entrypoints.http.server.client_address import Counted
from payagg.entrypoints.http.server.places import By, Destination, prefix_in
from payagg.entrypoints.route.directory import CellLookup, CellsAway, Directory, NobodyKnows
from payagg.entrypoints.route.messages import Incoming
from payagg.entrypoints.route.metrics import FOLLOWED, UNREACHABLE
from payagg.entrypoints.route.upstream import Headers, Unreachable

FOLLOWED_MAX = 2  # times that one request is sent on to the cell that another one named
MISDIRECTED, UNAUTHORIZED = 421, 401
RETRY_SECONDS = 2
SAFE = ("GET", "HEAD", "OPTIONS")
LOOKED_UP = (By.KEY, By.BUSINESS)
NAMED = (By.KEY, By.BUSINESS, By.REFERENCE)
REMEMBERED_MAX = 10_000


class Guesses:
    """How many unknown names a client may ask about, each of which costs every cell a question. Names that a cell
    has take nothing, however many come at once: a router that just started has none."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def ensure_open(self, client: Counted) -> None:
        """Raises RATE_LIMITED where none is left."""
        for name, times in client:
            bucket, limit = self._buckets.get(name), RateLimit(self._most * times)
            if bucket is None:
                continue
            wait = bucket.take(limit, _now())
            if wait:
                raise Refusal(ErrorCode.RATE_LIMITED, retry_after=max(1, ceil(wait)))
            bucket.give_back(limit)

    def hit(self, client: Counted) -> None:
        """Counts one that no cell has."""
        now = _now()
        for name, times in client:
            limit = RateLimit(self._most * times)
            bucket = self._buckets.pop(name, None) or TokenBucket(limit, now)
            self._buckets[name] = bucket
            if len(self._buckets) > REMEMBERED_MAX:
                self._buckets.popitem(last=False)
            bucket.take(limit, now)


class CellUpstream(CellLookup, Protocol):
    """A cell that takes requests; Upstream is one."""

    async def send(self, method: str, target: bytes, headers: Headers, body: httpx.AsyncByteStream) -> httpx.Response:
        """Raises Unreachable."""


class CellProxy:
    def __init__(self, cells: Mapping[str, CellUpstream], guesses_max: int) -> None:
        self.cells = cells
        self.home = next(iter(cells))
        self.directory = Directory(cells)
        self._guesses = Guesses(guesses_max)

    async def deliver(self, request: Incoming, place: Destination, client: Counted) -> tuple[str, httpx.Response]:
        """The cell that answered and its answer, whose body is still to be read. Raises Refusal for what the router
        answers by itself: 503 for a cell that cannot be asked, never 401 or 404 in its place."""
        cell = self.directory.find(place) if place.by in NAMED else None
        is_fresh = cell is None
        cell = cell or await self._choose(place, request, client)
        followed, is_repeated = 0, False
        while True:
            try:
                response = await self.cells[cell].send(
                    request.method, request.target, request.headers, request.stream()
                )
            except Unreachable as error:
                UNREACHABLE.labels(cell).inc()
                if not request.is_repeatable:
                    raise away(cell) from None
                if error.was_sent:
                    # It may have been done, and only what asks may be asked twice.
                    if request.method not in SAFE or is_repeated:
                        raise away(cell) from None
                    is_repeated = True
                    continue
                moved = None if is_fresh else await self._look_up_again(place, cell)
                if moved in (None, cell):
                    raise away(cell) from None
                cell, is_fresh = str(moved), True
                continue
            if response.status_code == MISDIRECTED:
                cell = await self._follow(response, request, place, cell, followed)
                followed, is_fresh = followed + 1, True
                continue
            if response.status_code == UNAUTHORIZED and place.by is By.KEY and not is_fresh and request.is_repeatable:
                is_fresh = True
                if b'"INVALID_API_KEY"' in await response.aread():
                    moved = await self._look_up_again(place, cell, is_denied=True)
                    if moved not in (None, cell):
                        await response.aclose()
                        cell = str(moved)
                        continue
            return cell, response

    async def _choose(self, place: Destination, request: Incoming, client: Counted) -> str:
        if place.by in LOOKED_UP:
            return await self._looked_up(place, client)
        if place.by is By.REFERENCE:
            return place.name[:3] if place.name[:3] in self.cells else self.home
        if place.by is By.EVENT:
            # A wrong guess costs a hop: the cell hands the event on.
            return prefix_in(request.body, self.cells) or self.home
        if place.by is By.CHOICE:
            if place.name not in self.cells:
                raise invalid("X-Payagg-Cell", f"Must be one of {', '.join(self.cells)}.")
            return place.name
        return self.home

    async def _looked_up(self, place: Destination, client: Counted) -> str:
        """What no cell has is refused by the home cell, in the words that one installation has for it."""
        self._guesses.ensure_open(client)
        try:
            return await self.directory.ask(place)
        except NobodyKnows:
            self._guesses.hit(client)
            return self.home
        except CellsAway:
            raise away() from None

    async def _look_up_again(self, place: Destination, cell: str, *, is_denied: bool = False) -> str | None:
        """Where a name is now that was in `cell`, asked anew now and then; None where nobody has it. `is_denied`: the
        cell itself answered that it is not there, so whoever is away may have it: raises 503."""
        if place.by not in LOOKED_UP or not self.directory.may_ask_again(place):
            return cell
        try:
            return await self.directory.ask(place)
        except NobodyKnows:
            self.directory.forget(place)
            return None
        except CellsAway:
            if is_denied:
                raise away() from None
            self.directory.keep(place, cell)
            return cell

    async def _follow(
        self, response: httpx.Response, request: Incoming, place: Destination, cell: str, followed: int
    ) -> str:
        """The cell that a 421 names. It never reaches the client: nothing was done, so it may try again."""
        await response.aclose()
        to = response.headers.get("x-payagg-cell", "")
        FOLLOWED.labels(cell).inc()
        if to not in self.cells:
            raise away(cell)
        if place.by in NAMED:
            self.directory.keep(place, to)
        if followed >= FOLLOWED_MAX or not request.is_repeatable:
            raise away(to)
        return str(to)


def away(cell: str | None = None) -> Refusal:
    """For whoever is in a cell that cannot be asked."""
    named = "A cell" if cell is None else f"The cell {cell}"
    return Refusal(ErrorCode.SERVICE_UNAVAILABLE, f"{named} cannot be reached; try again.", retry_after=RETRY_SECONDS)


def _now() -> datetime:
    return datetime.fromtimestamp(EPOCH.timestamp() + monotonic(), UTC)
