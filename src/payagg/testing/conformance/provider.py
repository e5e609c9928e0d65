"""provider_a as the harness plays it: a fake on loopback in a thread of its own, and the account stored for it."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from payagg.testing.fake_providers.book import FakeCharge, WebhookMode
from payagg.testing.fake_providers.paystack import FakePaystack, fake_paystack
from payagg.testing.fake_providers.serve import serve_asgi

SECRETS = {"SANDBOX": "sk_test_conformance", "LIVE": "sk_live_conformance"}


class ProviderAccount:
    """`slug` is the gateway's in the deployment, also the segment of its inbound path and of its signature's header."""

    def __init__(self, slug: str = "provider_a") -> None:
        self.slug = slug
        self.fake = FakePaystack(header=f"x-{slug}-signature")
        self.fake.book.webhooks = WebhookMode.NEVER  # the machine sends events itself, as it likes
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(ready),), daemon=True)
        self._thread.start()
        ready.wait()

    @property
    def credentials(self) -> dict[str, str]:
        """What an administrator stores, so that the service calls the fake."""
        url = self.fake.base_url
        return {
            "sandboxSecretKey": SECRETS["SANDBOX"],
            "liveSecretKey": SECRETS["LIVE"],
            "sandboxBaseUrl": url,
            "liveBaseUrl": url,
        }

    def charges(self, reference: str) -> list[FakeCharge]:
        """The charges of a payment, which may have had several attempts."""
        charges = self.fake.book.charges.values()
        return [charge for charge in charges if charge.reference.partition(".")[0] == reference]

    def pay(self, charge: FakeCharge, amount: int | None = None) -> None:
        """The payer pays, the whole amount unless told otherwise (kobo)."""
        charge.status, charge.amount = "success", charge.amount if amount is None else amount

    @property
    def header(self) -> str:
        return self.fake.header

    def signed(self, charge: FakeCharge, environment: str, as_paid: bool) -> tuple[bytes, str]:
        """The event about a charge, as it stands or `as_paid`, and its signature with the secret of `environment`."""
        told = replace(charge, status="success") if as_paid else charge
        body = self.fake.event(told).body
        return body, self.fake.signature(body, SECRETS[environment])

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self, ready: threading.Event) -> None:
        async with self._served() as url:
            self.fake.base_url = url
            ready.set()
            await self._stop.wait()

    @asynccontextmanager
    async def _served(self) -> AsyncIterator[str]:
        async with serve_asgi(fake_paystack(self.fake)) as url:
            yield url


def event_request(provider: ProviderAccount, reference: str, environment: str, forgery: str | None) -> dict[str, Any]:
    """Content and headers of the event about a payment's charge, sent as of `environment`; a forged one tells of a
    success whatever the charge is, and lacks what `forgery` names."""
    charge = provider.charges(reference)[0]
    body, signature = provider.signed(charge, environment, as_paid=forgery is not None)
    headers = {"Content-Type": "application/json", provider.header: signature}
    if forgery == "no signature":
        del headers[provider.header]
    elif forgery == "wrong signature":
        headers[provider.header] = f"{int(signature, 16) ^ 1:0{len(signature)}x}"
    elif forgery == "other bytes":
        body = json.dumps(json.loads(body), indent=1).encode()
    return {"content": body, "headers": headers}
