"""What every conformance machine drives, and its usual form: a service over HTTP, by its URL or in this process.

An ASGI application over any store is driven through httpx's own transport, so what runs against a deployment runs
unchanged against the in-memory store and Postgres.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, Self, TypeVar

import httpx

R = TypeVar("R")
TIMEOUT_SECONDS = 30.0
PATIENCE_SECONDS = 90.0  # altogether, for a service that says 429 and when to come back


@dataclass(frozen=True)
class ServiceCall:
    """A request: `path` is relative to the base URL; `body` is sent as JSON, `content` as it stands. `event`
    is its variant, where it is a provider's (see `event_request`)."""

    method: str
    path: str
    bearer: str | None = field(default=None, repr=False)
    body: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    event: str | None = None


@dataclass(frozen=True)
class ServiceAnswer:
    """A response; `body` is None where it is not JSON."""

    status: int
    body: Any
    headers: Mapping[str, str]
    text: str

    @classmethod
    def of(cls, response: httpx.Response) -> Self:
        try:
            body = response.json()
        except ValueError:
            body = None
        return cls(response.status_code, body, dict(response.headers), response.text)

    @property
    def data(self) -> Any:
        return self.body.get("data") if isinstance(self.body, dict) else None

    @property
    def code(self) -> str | None:
        """The error code of a refusal."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return error.get("code") if isinstance(error, dict) else None

    @property
    def field(self) -> str | None:
        """The input field that a refusal names."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return error.get("field") if isinstance(error, dict) else None

    def __str__(self) -> str:
        return f"{self.status} {self.text[:600]}".rstrip()


class Driver(Protocol):
    """What a machine asks: requests, time where it can be told, and what a worker would do."""

    @property
    def can_wait(self) -> bool: ...

    def send(self, call: ServiceCall) -> ServiceAnswer: ...

    def send_together(self, calls: Sequence[ServiceCall]) -> list[ServiceAnswer]: ...

    def wait(self, duration: timedelta) -> None: ...

    def pause(self, duration: timedelta) -> None: ...

    def work(self) -> None: ...

    def close(self) -> None: ...


class Service:
    """A service under test at `base_url`, which ends in `/api/v1`.

    In process: `transport` holds the application, `run` carries coroutines on its own event loop, `wait` moves its
    clock and `work` does what its worker would. Without `wait` nothing that takes minutes is tried.
    """

    def __init__(
        self,
        base_url: str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        run: Callable[[Coroutine[Any, Any, Any]], Any] | None = None,
        wait: Callable[[timedelta], None] | None = None,
        work: Callable[[], None] | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._runner = asyncio.Runner() if run is None else None
        self._run = self._runner.run if self._runner is not None else run
        self._wait, self._work = wait, work
        self._client = self._in_loop(self._open(transport))

    @property
    def can_wait(self) -> bool:
        return self._wait is not None

    def send(self, call: ServiceCall) -> ServiceAnswer:
        """Raises httpx.TransportError when there is no answer."""
        return self._in_loop(self._send(call))

    def send_together(self, calls: Sequence[ServiceCall]) -> list[ServiceAnswer]:
        """The answers to requests that are under way at one time."""

        async def all_sent() -> list[ServiceAnswer]:
            return list(await asyncio.gather(*map(self._send, calls)))

        return self._in_loop(all_sent())

    def wait(self, duration: timedelta) -> None:
        """The service's clock moves on; only where `can_wait`."""
        assert self._wait is not None, "the clock of this service is not ours"
        self._wait(duration)

    def pause(self, duration: timedelta) -> None:
        """As `wait` where that can be, otherwise in real time: for seconds, not minutes."""
        if self._wait is not None:
            self._wait(duration)
        else:
            time.sleep(duration.total_seconds())

    def work(self) -> None:
        """Lets what is due be done: deliveries, expiry, drains. A deployment does so by itself, a moment later."""
        if self._work is not None:
            self._work()
        else:
            time.sleep(0.05)

    def close(self) -> None:
        self._in_loop(self._client.aclose())
        if self._runner is not None:
            self._runner.close()

    async def _open(self, transport: httpx.AsyncBaseTransport | None) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=transport, timeout=TIMEOUT_SECONDS, trust_env=False)

    async def _send(self, call: ServiceCall) -> ServiceAnswer:
        headers = dict(call.headers)
        content = call.content
        if call.bearer is not None:
            headers["Authorization"] = f"Bearer {call.bearer}"
        if call.body is not None:
            content = json.dumps(call.body).encode()
            headers["Content-Type"] = "application/json"
        began = time.monotonic()
        while True:
            response = await self._client.request(
                call.method, self.base_url + call.path, content=content, headers=headers
            )
            wait = float(response.headers.get("retry-after", "1")) if response.status_code == 429 else 0.0
            if not wait or self._wait is not None or time.monotonic() + wait > began + PATIENCE_SECONDS:
                return ServiceAnswer.of(response)
            await asyncio.sleep(wait)

    def _in_loop(self, coroutine: Coroutine[Any, Any, R]) -> R:
        assert self._run is not None
        result: R = self._run(coroutine)
        return result
