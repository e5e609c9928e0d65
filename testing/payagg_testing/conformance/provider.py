"""Providers as the harness plays them: a fake on loopback in a thread of its own, and the account stored for it."""

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

from payagg.domain.values import CURRENCY
from payagg.entrypoints.dev.fake_providers.book import Book, FakeCharge, WebhookMode
from payagg.entrypoints.dev.fake_providers.payaza import FakePayaza
from payagg.entrypoints.dev.fake_providers.paystack import FakePaystack
from payagg.entrypoints.dev.fake_providers.steering import serve_asgi
from payagg_testing.provider_faults import Fault, faulty_payaza, faulty_paystack

PREFIX = {"SANDBOX": "sandbox", "LIVE": "live"}
FORGERIES = ("no signature", "wrong signature", "other bytes")
MALFORMED = b'{"event": "charge.success", "data": '


class PlayedProvider:
    """`slug` is the gateway's in the deployment, also the segment of its inbound path and of its signature's header.

    `secrets` sign events, by environment; `replaced` did before the last rotation.
    """

    paid_word: ClassVar[str]  # the status of a charge that was paid
    failed_word: ClassVar[str]
    starts_by_call: ClassVar[bool]  # whether the service calls it to start a charge
    malformed_status: ClassVar[int]  # of the answer to a signed event that cannot be read
    fake: FakePaystack | FakePayaza

    def __init__(self, slug: str, app: Any, secrets: dict[str, str]) -> None:
        self.slug = slug
        self.secrets, self.replaced = secrets, dict[str, str]()
        self.rotations = 0
        self.book.webhooks = WebhookMode.NEVER  # the machine sends events itself, as it likes
        self._app = app
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(ready),), daemon=True)
        self._thread.start()
        ready.wait()

    @property
    def book(self) -> Book:
        return self.fake.book

    @property
    def header(self) -> str:
        return self.fake.header

    @property
    def credentials(self) -> dict[str, str]:
        """What an administrator stores, so that the service calls the fake and knows its events."""
        raise NotImplementedError

    def credentials_without(self, environment: str) -> dict[str, str]:
        return {name: value for name, value in self.credentials.items() if not name.startswith(PREFIX[environment])}

    def rotate(self) -> None:
        """Events have new secrets from now on; `credentials` hold them."""
        self.rotations += 1
        self.replaced = self.secrets
        self.secrets = {name: f"signing-{name.lower()}-{self.rotations}" for name in PREFIX}

    def hand_off_fault(self, url: str) -> str | None:
        """What is wrong with the place that the payer is sent to."""
        return None if url.startswith(("http://", "https://")) else "the payer is sent to no URL"

    def arrive(self, url: str) -> str | None:
        """The payer's browser goes to the hand-off's URL; what goes wrong there."""
        return None

    def charges(self, reference: str) -> list[FakeCharge]:
        """The charges of a payment, which may have had several attempts: what follows its reference there is free."""
        return [charge for charge in self.book.charges.values() if charge.reference.startswith(reference)]

    def pay(self, charge: FakeCharge, amount: int, currency: str = CURRENCY) -> None:
        """The payer pays so much, in kobo or the hundredth of another currency."""
        charge.status, charge.amount, charge.currency = self.paid_word, amount, currency

    def decline(self, charge: FakeCharge) -> None:
        charge.status = self.failed_word

    def fail(self, fault: str) -> None:
        """The next call brings this fault, a word of `Fault`."""
        self.book.faults.append(Fault[fault])

    def event(self, charge: FakeCharge, as_paid: bool) -> bytes:
        """The event about a charge, as it stands or `as_paid`."""
        return self.fake.event(replace(charge, status=self.paid_word) if as_paid else charge).body

    def signature(self, body: bytes, secret: str) -> str:
        return self.fake.signature(body, secret)

    def forge(self, signature: str) -> str:
        """Another one of the same form."""
        return f"{int(signature, 16) ^ 1:0{len(signature)}x}"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self, ready: threading.Event) -> None:
        async with self._run_server() as url:
            self.fake.base_url = url
            ready.set()
            await self._stop.wait()

    @asynccontextmanager
    async def _run_server(self) -> AsyncIterator[str]:
        async with serve_asgi(self._app) as url:
            yield url


class ProviderAccount(PlayedProvider):
    """provider_a: a call starts each charge, and a redirect takes the payer there. Its secret key also signs, until
    there is a webhook secret of its own."""

    paid_word, failed_word, malformed_status, starts_by_call = "success", "failed", 400, True
    keys: ClassVar = {"SANDBOX": "sk_test_conformance", "LIVE": "sk_live_conformance"}

    def __init__(self, slug: str = "provider_a") -> None:
        self.fake = FakePaystack(header=f"x-{slug}-signature")
        super().__init__(slug, faulty_paystack(self.fake), dict(self.keys))

    @property
    def credentials(self) -> dict[str, str]:
        stored = dict[str, str]()
        for environment, prefix in PREFIX.items():
            stored |= {f"{prefix}SecretKey": self.keys[environment], f"{prefix}BaseUrl": self.fake.base_url}
            if self.rotations:
                stored[f"{prefix}WebhookSecret"] = self.secrets[environment]
        return stored


class ProviderBAccount(PlayedProvider):
    """provider_b: no call starts a charge. The hand-off carries launch parameters, in its fragment as base64url of
    JSON, and the payer's browser opens the provider's popup with them. Money is naira."""

    paid_word, failed_word, malformed_status, starts_by_call = "Completed", "Failed", 200, False
    keys: ClassVar = {"SANDBOX": "PZ78-PKTEST-CONFORMANCE", "LIVE": "PZ78-PKLIVE-CONFORMANCE"}

    fake: FakePayaza

    def __init__(self, slug: str = "provider_b") -> None:
        self.fake = FakePayaza(header=f"x-{slug}-signature")
        super().__init__(slug, faulty_payaza(self.fake), {name: f"signing-{name.lower()}" for name in PREFIX})

    @property
    def credentials(self) -> dict[str, str]:
        stored = dict[str, str]()
        for environment, prefix in PREFIX.items():
            stored |= {f"{prefix}PublicKey": self.keys[environment], f"{prefix}BaseUrl": f"{self.fake.base_url}/live"}
            stored[f"{prefix}SigningSecret"] = self.secrets[environment]
        return stored

    def hand_off_fault(self, url: str) -> str | None:
        parameters = self._parameters(url)
        if parameters is None:
            return "the hand-off carries no launch parameters"
        known = [
            secret for secret in (*self.secrets.values(), *self.replaced.values()) if secret in parameters.decode()
        ]
        return "the hand-off carries the signing secret" if known else None

    def arrive(self, url: str) -> str | None:
        return self.fake.open(self._parameters(url) or b"")

    def forge(self, signature: str) -> str:
        digest = bytearray(base64.b64decode(signature))
        digest[0] ^= 1
        return base64.b64encode(digest).decode()

    def _parameters(self, url: str) -> bytes | None:
        encoded = url.partition("#")[2]
        try:
            parameters = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
            return parameters if isinstance(json.loads(parameters), dict) else None
        except ValueError:
            return None


def charge_fault(provider: PlayedProvider, reference: str, amount: int, lost: int = 0) -> str | None:
    """What is wrong with the one charge that a payment must have; `amount` is kobo. Before it there may be as many as
    were `lost`: begun, but the answer broke off, so that no payer was ever sent there."""
    charges = provider.charges(reference)
    if not 1 <= len(charges) <= 1 + lost or any(charge.opened != 1 for charge in charges):
        return f"the provider has {len(charges)} charges, begun {[charge.opened for charge in charges]} times"
    if charges[-1].amount != amount:
        return f"the provider was asked for {charges[-1].amount} kobo, the payment is of {amount}"
    return None


def event_request(
    provider: PlayedProvider, reference: str, environment: str, variant: str | None = None
) -> dict[str, Any]:
    """Content and headers of the event about a payment's charge, sent as of `environment`.

    `variant`: None is genuine, and so are "again", in other bytes, and for a day "replaced secret". "malformed" is
    signed and cannot be read. FORGERIES tell of a success whatever the charge is, and lack what their names say.
    """
    is_forged = variant in FORGERIES
    body = MALFORMED if variant == "malformed" else provider.event(provider.charges(reference)[-1], as_paid=is_forged)
    if variant == "again":
        body = json.dumps(json.loads(body), indent=2).encode()
    secrets = provider.replaced if variant == "replaced secret" else provider.secrets
    signature = provider.signature(body, secrets[environment])
    headers = {"Content-Type": "application/json", provider.header: signature}
    if variant == "no signature":
        del headers[provider.header]
    elif variant == "wrong signature":
        headers[provider.header] = provider.forge(signature)
    elif variant == "other bytes":
        body = json.dumps(json.loads(body), indent=1).encode()
    return {"content": body, "headers": headers}
