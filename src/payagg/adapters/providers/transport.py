"""One bounded HTTP exchange with a provider: every call of every adapter goes through `exchange`."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from payagg.adapters.webhooks.addresses import ADDRESS_SECONDS, is_public_name
from payagg.adapters.webhooks.resolver import Address, Resolve
from payagg.domain.errors import Refusal
from payagg.domain.report import FaultKind, ProviderFault
from payagg.domain.values import LOOPBACK, parse_url

T = TypeVar("T")
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
CONNECT_SECONDS = 5.0
CALL_SECONDS = 15.0
BODY_MAX = 256 * 1024

# At debug level these write request headers, and with them a provider's secret key.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True)
class ProviderAnswer:
    status: int
    body: bytes = field(repr=False)


async def _by_system(host: str) -> Sequence[Address]:
    """Leaves it to the system, which knows names of one's own network. But the loop has it look up two at a time and
    gives none up: a name whose name servers are silent holds up every other, the database's as well."""
    return [(socket.AF_UNSPEC, host)]


@dataclass(frozen=True)
class Transport:
    """`allow_loopback` admits plain http to this machine, for `dev` alone; `deadline` is seconds for a whole call."""

    allow_loopback: bool = False
    deadline: float = CALL_SECONDS
    resolve: Resolve = _by_system

    def is_allowed(self, base_url: str) -> bool:
        """Whether a provider may be called there: https on a public host, or loopback where allowed."""
        return self.is_page(base_url) and "?" not in base_url and "#" not in base_url

    def is_page(self, url: str) -> bool:
        """Whether a payer may be sent there."""
        try:
            parse_url(url, "url")
        except Refusal:
            return False
        parts = urlsplit(url)
        host = parts.hostname or ""
        if host in LOOPBACK:
            return self.allow_loopback
        return parts.scheme == "https" and is_public_name(host)

    async def exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        body_max: int = BODY_MAX,
    ) -> ProviderAnswer:
        """One request and its whole answer; raises ProviderFault. Never retried: only the caller can judge a lost
        answer. A 429 or 5xx is a fault here; the caller reads every other status."""
        try:
            async with asyncio.timeout(self.deadline):
                answer = await self._exchange(method, url, headers, content, body_max)
        except (TimeoutError, httpx.TimeoutException):
            raise ProviderFault(FaultKind.TIMEOUT) from None
        except (httpx.ConnectError, socket.gaierror):
            raise ProviderFault(FaultKind.UNREACHABLE) from None
        # A TLS record that breaks after the handshake comes through httpx as it is, an OSError.
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError):
            raise ProviderFault(FaultKind.MALFORMED, "the connection or the answer broke off") from None
        if answer.status == httpx.codes.TOO_MANY_REQUESTS:
            raise ProviderFault(FaultKind.RATE_LIMITED)
        if answer.status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise ProviderFault(FaultKind.SERVER_ERROR, f"status {answer.status}")
        return answer

    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, body_max: int
    ) -> ProviderAnswer:
        # A new connection for each call: a request on a pooled one that the provider just closed fails like a lost
        # answer, and a lost answer to a charge is expensive to resolve.
        async with httpx.AsyncClient(verify=_tls(), trust_env=False, follow_redirects=False) as client:
            request = client.build_request(
                method, url, headers={**headers, "Accept-Encoding": "identity"}, content=content
            )
            response = await self._send(client, request)
            try:
                body = bytearray()
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > body_max:
                        raise ProviderFault(FaultKind.MALFORMED, "the answer is too large")
                return ProviderAnswer(response.status_code, bytes(body))
            finally:
                await response.aclose()

    async def _send(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        """To the first of the host's addresses that takes a connection. TLS is verified against the name."""
        host = request.extensions["sni_hostname"] = request.url.raw_host.decode()
        # IPv4 first: on a machine whose IPv6 leads nowhere each call would wait for that.
        found = sorted(await self.resolve(host), key=lambda one: one[0] is socket.AF_INET6)
        for (family, address), (following, _) in pairwise(found):
            # The last of IPv4 has all the time too: what follows may lead nowhere.
            connect = ADDRESS_SECONDS if following is family else CONNECT_SECONDS
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):  # nothing was sent yet
                return await self._send_to(address, client, request, connect)
        return await self._send_to(found[-1][1], client, request, CONNECT_SECONDS)

    async def _send_to(
        self, address: str, client: httpx.AsyncClient, request: httpx.Request, connect: float
    ) -> httpx.Response:
        request.url = request.url.copy_with(host=address)
        request.extensions["timeout"] = httpx.Timeout(self.deadline, connect=min(connect, self.deadline)).as_dict()
        return await client.send(request, stream=True)


def decode_body(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """A provider's JSON as `kind`; raises ProviderFault(MALFORMED), whose words hold nothing of the body."""
    try:
        decoder = _decoders.get(kind) or _decoders.setdefault(kind, msgspec.json.Decoder(kind))
        value: T = decoder.decode(raw)
        return value
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise ProviderFault(FaultKind.MALFORMED, "the body is not what the protocol says") from None


@cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)
