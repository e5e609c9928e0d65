"""Merchant webhook endpoints: subscriptions and secrets."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from payagg.application.accounts.businesses import lock_own
from payagg.application.ports.outside import Vault
from payagg.application.ports.store import Transaction
from payagg.application.ports.webhooks import Sender
from payagg.application.schemas.payments import Message
from payagg.application.schemas.views import view_of
from payagg.application.schemas.webhooks import (
    ChangeWebhook,
    CreatedWebhook,
    CreateWebhook,
    TestBody,
    TestDelivery,
    WebhookEndpointView,
)
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.audit import Action, Actor, Changes, changes_of
from payagg.domain.checks import with_changes
from payagg.domain.errors import ErrorCode, Refusal, must_exist
from payagg.domain.rate_limit import RateLimit, over_limit
from payagg.domain.signing import keys_that_sign, secret_text, signed_headers
from payagg.domain.values import Environment
from payagg.domain.webhook import (
    ACTIVE_ENDPOINTS_MAX,
    OLD_SECRETS_MAX,
    SECRET_BYTES,
    TEST_EVENT,
    TEST_EVERY,
    TESTS_A_MINUTE,
    TESTS_AT_ONCE,
    WebhookEndpoint,
    crowded_out,
    parse_endpoint_url,
    parse_events,
    secret_context,
    signing_keys,
)

# What an audit entry shows of an endpoint.
_AUDITED = ("url", "description", "events", "is_active")


@dataclass(frozen=True)
class Webhooks(UseCase):
    vault: Vault
    sender: Sender
    testing: Counter[str] = field(default_factory=Counter)  # running tests in this process, by business

    async def list_endpoints(self, business_id: str) -> list[WebhookEndpointView]:
        async with self.store.begin() as tx:
            return [WebhookEndpointView.of(endpoint) for endpoint in await tx.endpoints.of_business(business_id)]

    @retry_on_conflict
    async def create(self, business_id: str, command: CreateWebhook, *, by: Actor) -> CreatedWebhook:
        """The endpoint and its secret, which is never shown again; raises WEBHOOK_LIMIT_REACHED at the limit of active
        ones. Removes the oldest inactive ones past the list's limit."""
        now = self.clock.now()
        endpoint_id = self.entropy.id("whe", now)
        key = self.entropy.bytes(SECRET_BYTES)
        shown = secret_text(key)
        endpoint = WebhookEndpoint(
            id=endpoint_id,
            business_id=business_id,
            environment=command.environment,
            url=command.url,
            secret=self.vault.seal(key, secret_context(endpoint_id)),
            secret_last4=shown[-4:],
            created_at=now,
            updated_at=now,
            description=command.description,
            events=parse_events(command.events or []),
        )
        async with self.store.begin() as tx:
            (await lock_own(tx, business_id, by)).ensure_active()
            await _ensure_room(tx, business_id)
            await tx.endpoints.add(endpoint)
            changes = changes_of(None, endpoint, "environment", *_AUDITED)
            await self._record(tx, by, Action.WEBHOOK_CREATE, endpoint, changes)
            stored = await tx.endpoints.of_business(business_id)
            for old in crowded_out([one for one in stored if one.environment is endpoint.environment]):
                await self._remove(tx, by, old, now)
        return _created_view(endpoint, shown)

    @retry_on_conflict
    async def change(
        self, business_id: str, endpoint_id: str, command: ChangeWebhook, *, by: Actor
    ) -> WebhookEndpointView:
        """The endpoint as changed; activation counts against the five. Raises VALIDATION_ERROR on `url` or `events`
        whether or not there is such an endpoint, then NOT_FOUND."""
        events = parse_events(command.events) if command.events is not None else None
        if command.url is not None:
            parse_endpoint_url(command.url, Environment.SANDBOX)  # a LIVE one must also be HTTPS, below
        async with self.store.begin() as tx:
            (await lock_own(tx, business_id, by)).ensure_active()
            before = endpoint = must_exist(await tx.endpoints.lock(business_id, endpoint_id))
            if command.url is not None:
                endpoint = replace(endpoint, url=command.url)
            if events is not None:
                endpoint = replace(endpoint, events=events)
            if not isinstance(command.description, msgspec.UnsetType):
                endpoint = replace(endpoint, description=command.description)
            if command.is_active is not None:
                if command.is_active and not endpoint.is_active:
                    await _ensure_room(tx, business_id)
                endpoint = with_changes(endpoint, is_active=command.is_active)
            endpoint = with_changes(endpoint, updated_at=self.clock.now())
            await tx.endpoints.save(endpoint)
            switched_off = before.is_active and not endpoint.is_active
            action = Action.WEBHOOK_DEACTIVATE if switched_off else Action.WEBHOOK_UPDATE
            await self._record(tx, by, action, endpoint, changes_of(before, endpoint, *_AUDITED))
            return WebhookEndpointView.of(endpoint)

    async def deactivate(self, business_id: str, endpoint_id: str, *, by: Actor) -> WebhookEndpointView:
        return await self.change(business_id, endpoint_id, ChangeWebhook(is_active=False), by=by)

    @retry_on_conflict
    async def remove(self, business_id: str, endpoint_id: str, *, by: Actor) -> WebhookEndpointView:
        """The endpoint's last state, deactivated; it is hidden from now on. Raises NOT_FOUND. Removal has a call of its
        own: as a second DELETE, a client's retry would remove what it meant to deactivate."""
        async with self.store.begin() as tx:
            (await lock_own(tx, business_id, by)).ensure_active()
            before = must_exist(await tx.endpoints.lock(business_id, endpoint_id))
            now = self.clock.now()
            await self._remove(tx, by, before, now)
            return WebhookEndpointView.of(replace(before, is_active=False, updated_at=now))

    @retry_on_conflict
    async def rotate_secret(self, business_id: str, endpoint_id: str, *, by: Actor) -> CreatedWebhook:
        """A new secret, shown once; the old ones sign beside it for 24 hours."""
        key = self.entropy.bytes(SECRET_BYTES)
        shown = secret_text(key)
        async with self.store.begin() as tx:
            (await lock_own(tx, business_id, by)).ensure_active()
            endpoint = must_exist(await tx.endpoints.lock(business_id, endpoint_id))
            sealed, now = self.vault.seal(key, secret_context(endpoint_id)), self.clock.now()
            endpoint = endpoint.rotate(sealed, shown[-4:], now, self._previous(endpoint, now))
            await tx.endpoints.save(endpoint)
            await self._record(tx, by, Action.WEBHOOK_ROTATE, endpoint)
        return _created_view(endpoint, shown)

    def _keys(self, endpoint: WebhookEndpoint, now: datetime) -> list[bytes]:
        """What signs at `now`, the newest first; raises ValueError where the newest does not open."""
        return keys_that_sign(((endpoint.id, one) for one in endpoint.signing_secrets(now)), self._unseal)

    def _unseal(self, endpoint_id: str, sealed: bytes) -> list[bytes]:
        return signing_keys(self.vault.open(sealed, secret_context(endpoint_id)))

    def _previous(self, endpoint: WebhookEndpoint, now: datetime) -> bytes | None:
        """All that signs now, sealed: a second rotation must not end the day that the first one gave."""
        try:
            keys = self._keys(endpoint, now)[:OLD_SECRETS_MAX]
        except ValueError:
            return None
        return self.vault.seal(b"".join(keys), secret_context(endpoint.id))

    async def test(self, business_id: str, endpoint_id: str, *, by: Actor) -> TestDelivery:
        """Sends a `webhook.test` now and waits for the answer; raises RATE_LIMITED within TEST_EVERY of the endpoint's
        last one, and past TESTS_A_MINUTE or TESTS_AT_ONCE of the business's."""
        with self._one_of_few(business_id):
            return await self._test(business_id, endpoint_id, by)

    @contextmanager
    def _one_of_few(self, business_id: str) -> Iterator[None]:
        if self.testing[business_id] >= TESTS_AT_ONCE:
            raise over_limit(TEST_EVERY.total_seconds())
        self.testing[business_id] += 1
        try:
            yield
        finally:
            self.testing[business_id] -= 1
            if not self.testing[business_id]:
                del self.testing[business_id]

    async def _test(self, business_id: str, endpoint_id: str, by: Actor) -> TestDelivery:
        asked_at = self.clock.now()
        until = await self.store.count_hit(f"webhook-test:{business_id}", asked_at, RateLimit(TESTS_A_MINUTE))
        if until is not None:
            raise over_limit((until - asked_at).total_seconds())
        endpoint = await self._begin_test(business_id, endpoint_id, by)
        now = self.clock.now()
        body = TestBody(
            id=self.entropy.id("evt", now),
            type=TEST_EVENT,
            created_at=now,
            environment=endpoint.environment,
            sequence=0,
            data=Message("This is a test. No payment is behind it."),
        )
        sent_bytes = msgspec.json.encode(body)
        try:
            keys = self._keys(endpoint, now)
        except ValueError:
            return TestDelivery(False, None, 0, "the signing secret cannot be opened")
        headers = signed_headers(keys, body.id, int(now.timestamp()), sent_bytes)
        sent = await self.sender.send(endpoint.url, headers, sent_bytes)
        return TestDelivery(sent.is_accepted, sent.status_code, sent.duration_ms, sent.error)

    @retry_on_conflict
    async def _begin_test(self, business_id: str, endpoint_id: str, by: Actor) -> WebhookEndpoint:
        async with self.store.begin() as tx:
            endpoint = must_exist(await tx.endpoints.lock(business_id, endpoint_id))
            now = self.clock.now()
            last = endpoint.last_test_at  # dated ahead, where the clock has been set back
            if last is not None and last <= now < last + TEST_EVERY:
                raise over_limit((last + TEST_EVERY - now).total_seconds())
            endpoint = with_changes(endpoint, last_test_at=now)
            await tx.endpoints.save(endpoint)
            await self._record(tx, by, Action.WEBHOOK_TEST, endpoint)
            return endpoint

    async def _remove(self, tx: Transaction, by: Actor, endpoint: WebhookEndpoint, now: datetime) -> None:
        """Retention deletes its row with the last of its log."""
        await tx.endpoints.remove(endpoint.id, now)
        await self._record(
            tx, by, Action.WEBHOOK_REMOVE, endpoint, changes_of(endpoint, None, "environment", *_AUDITED)
        )

    async def _record(
        self, tx: Transaction, by: Actor, action: Action, endpoint: WebhookEndpoint, changes: Changes | None = None
    ) -> None:
        await self.record(tx, by, action, endpoint.id, changes, business_id=endpoint.business_id)


async def _ensure_room(tx: Transaction, business_id: str) -> None:
    active = sum(endpoint.is_active for endpoint in await tx.endpoints.of_business(business_id))
    if active >= ACTIVE_ENDPOINTS_MAX:
        raise Refusal(ErrorCode.WEBHOOK_LIMIT_REACHED)


def _created_view(endpoint: WebhookEndpoint, signing_secret: str) -> CreatedWebhook:
    return view_of(CreatedWebhook, WebhookEndpointView.of(endpoint), signing_secret=signing_secret)
