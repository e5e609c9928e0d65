"""Events refused for their signature: counted by reason and kept for a day, so a wrong secret is noticed.

Anybody may send such events, so no body is kept, only harmless headers, and at most SLOTS rows.
"""

import hashlib
import string
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from payagg.application.ports.outside import Clock, Unavailable
from payagg.application.ports.providers import RefusedEvent, SignatureFault
from payagg.application.ports.store import Store
from payagg.application.telemetry import count
from payagg.application.use_case import in_transaction
from payagg.domain.values import Environment

KEPT_FOR = timedelta(days=1)
SLOTS = 50  # per provider, environment and fault
HEADERS = ("content-type", "content-length", "user-agent")
HEADER_MAX = 100  # characters


@dataclass(frozen=True)
class RefusedEvents:
    store: Store
    clock: Clock

    async def keep(
        self,
        provider: str,
        environment: Environment,
        path: str,
        fault: SignatureFault,
        body: bytes,
        headers: Mapping[str, str],
    ) -> None:
        """Counts the event and stores what may be stored. While the database is away nothing is stored, and the refusal
        stands."""
        count("refused_events", provider, environment.value, fault.value)
        digest = hashlib.sha256(body).digest()
        event = RefusedEvent(
            provider=provider,
            environment=environment,
            fault=fault,
            # By the body's digest, so an event sent again replaces its own row.
            slot=digest[0] % SLOTS,
            path=path,
            digest=digest,
            size=len(body),
            headers=harmless(headers, f"x-{provider}-signature"),
            received_at=self.clock.now(),
        )
        with suppress(Unavailable):
            await self.store.keep_refused(event)

    async def recent(self) -> list[RefusedEvent]:
        """Those of the last day, newest first."""
        kept = await in_transaction(self.store, lambda tx: tx.inbox.list_refused())
        return [event for event in kept if event.received_at > self._horizon()]

    async def purge(self) -> int:
        """Deletes what is older than a day; how many there were. For the worker."""
        return await in_transaction(self.store, lambda tx: tx.inbox.purge_refused(self._horizon()))

    def _horizon(self) -> datetime:
        return self.clock.now() - KEPT_FOR


def harmless(headers: Mapping[str, str], signature: str) -> dict[str, str]:
    """The headers that identify nobody, truncated and in printable ASCII; of the signature only its form."""
    kept = {name: _printable(headers[name]) for name in HEADERS if name in headers}
    if headers.get(signature):
        kept[signature] = _shape(headers[signature].strip())
    return kept


def _printable(value: str) -> str:
    return "".join(letter if " " <= letter <= "~" else "?" for letter in value[:HEADER_MAX])


def _shape(signature: str) -> str:
    """The form of a signature, never its value: a wrong encoding is a common mistake."""
    letters = set(signature)
    if letters <= set(string.hexdigits):
        kind = "hexadecimal"
    elif letters <= set(string.ascii_letters + string.digits + "+/="):
        kind = "base64"
    else:
        kind = "other"
    return f"{len(signature)} characters, {kind}"
