"""Events from providers: proven by their signature, kept before they are acknowledged, handled from the inbox.

A provider may deliver an event once, twice, late, out of order or never. No order is assumed, and an event that cannot
be handled now stays in the inbox.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

import structlog

from payagg.application.gateways.payment_options import PaymentOptions
from payagg.application.payments.provider_calls import no_crash
from payagg.application.payments.refused_events import RefusedEvents
from payagg.application.payments.settlement import Settlement
from payagg.application.ports.elsewhere import NOWHERE, Elsewhere
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.ports.providers import (
    LONGEST_RETRY,
    Provider,
    ProviderEvent,
    ProviderEventRoute,
    SignatureFault,
)
from payagg.application.telemetry import count, trace_of
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.adjustment import is_named
from payagg.domain.attempt import payment_reference
from payagg.domain.checks import with_changes
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.report import Outcome, ProviderFault
from payagg.domain.values import Environment

RETRY_BATCH = 50
# The first handling follows the acknowledgement at once; the inbox retries when it has not ended by then.
FIRST_RETRY = timedelta(seconds=30)
_log = structlog.get_logger("payagg.provider_events")


class EventResult(Enum):
    """The outcome of an event that is no report; stored as its `result`."""

    IGNORED = "IGNORED"  # authentic, but not about a payment of ours
    MALFORMED = "MALFORMED"  # authentic, and no event
    HANDED_OVER = "HANDED_OVER"  # handled by the cell that its payment moved to


@dataclass(frozen=True)
class ProviderEvents(UseCase):
    payment_options: PaymentOptions
    settlement: Settlement
    refused_events: RefusedEvents
    crash_point: Callable[[str], None] = no_crash
    elsewhere: Elsewhere = NOWHERE

    async def receive(self, route: ProviderEventRoute, body: bytes, headers: Mapping[str, str]) -> None:
        """Returning means: the event is durable, or was before. `headers` has lower-case names.

        Raises the route's `unconfigured` code, INVALID_WEBHOOK_SIGNATURE, or VALIDATION_ERROR for a signed body that
        is malformed where the route refuses those. MISDIRECTED_REQUEST for a payment of another cell: that one looks at
        the signature, and nothing is kept here.
        """
        provider = self.payment_options.providers[route.slug]
        if self.elsewhere is not NOWHERE:
            await self._ensure_here(provider, body)
        fault = await self._fault(route, body, headers)
        if fault is not None:
            await self.refused_events.keep(route.slug, route.environment, route.path, fault, body, headers)
            unconfigured = fault is SignatureFault.NO_CREDENTIALS
            raise Refusal(route.unconfigured if unconfigured else ErrorCode.INVALID_WEBHOOK_SIGNATURE)
        self.crash_point("W1")
        # The raw body holds the payer, and a code to charge the card again: it is verified and never stored.
        kept = provider.redact_event(body)
        event = await self._keep(route, hashlib.sha256(body).digest(), kept)
        self.crash_point("W2")
        is_handled = event is not None and await self._handle_now(event)
        self.crash_point("W4")
        if route.refuses_malformed and not is_handled:
            try:
                provider.read_event(kept)
            except ProviderFault:
                raise Refusal(ErrorCode.VALIDATION_ERROR, "The payload is malformed.") from None

    async def retry_due(self) -> int:
        """Handles events whose first handling failed or died, oldest first; how many. For the worker."""
        taken = await self._take_due()
        for event in taken:
            await self._handle_now(event)
        return len(taken)

    async def _ensure_here(self, provider: Provider, body: bytes) -> None:
        try:
            report = provider.read_event(body)
        except ProviderFault:
            return
        if report is not None:
            await self.elsewhere.ensure_event_here(payment_reference(report.provider_reference))

    async def _fault(self, route: ProviderEventRoute, body: bytes, headers: Mapping[str, str]) -> SignatureFault | None:
        """Why the signature is refused; None when it is right for any gateway of this slug, whatever its status: a
        draining, disabled or deleted one still receives events of its payments."""
        provider, sealed = self.payment_options.providers[route.slug], self.payment_options.gateway_credentials
        now = self.clock.now()
        gateways = await self.store.find_retiring_gateways(route.slug)

        def secrets(environment: Environment) -> list[Mapping[str, str]]:
            return [secret for gateway in gateways for secret in sealed.signing(gateway, environment, now)]

        own = secrets(route.environment)
        if not own:
            return SignatureFault.NO_CREDENTIALS
        if any(provider.is_authentic(body, headers, secret, route.environment) for secret in own):
            return None
        if not headers.get(f"x-{route.slug}-signature"):
            return SignatureFault.NO_SIGNATURE
        for other in Environment:
            if other is not route.environment and any(
                provider.is_authentic(body, headers, secret, other) for secret in secrets(other)
            ):
                return SignatureFault.OTHER_ENVIRONMENT
        return SignatureFault.WRONG_SECRET

    async def _keep(self, route: ProviderEventRoute, digest: bytes, body: bytes) -> ProviderEvent | None:
        """The stored event; None when an equal body is stored already."""
        now = self.clock.now()
        event = ProviderEvent(
            id=self.entropy.id("inb", now),
            provider=route.slug,
            environment=route.environment,
            digest=digest,
            body=body,
            received_at=now,
            attempts=1,
            next_attempt_at=now + FIRST_RETRY,
        )
        return event if await self.store.keep_event(event) else None

    @retry_on_conflict
    async def _take_due(self) -> list[ProviderEvent]:
        """Due events for this process, none that another holds or has handled. An event whose process dies is due again
        after its pause; one that waits here for longer is handled twice, which changes nothing."""
        async with self.store.begin() as tx:
            now = self.clock.now()
            taken = [_postpone(event, now) for event in await tx.inbox.lock_due(now, RETRY_BATCH)]
            for event in taken:
                await tx.inbox.save(event)
            return taken

    async def _handle_now(self, event: ProviderEvent) -> bool:
        """Handles a stored event; a failure leaves it due again, so the caller may acknowledge it. Whether it was
        handled and is well-formed."""
        is_handled = False
        try:
            result = await self.handle(event)
            is_handled = result != EventResult.MALFORMED.value
        except (Unavailable, Conflict) as problem:
            result = type(problem).__name__
            _log.warning("inbound event postponed", event_id=event.id, provider=event.provider, reason=str(problem))
        except Exception as problem:  # noqa: BLE001 - the event is stored and its next attempt scheduled
            result = type(problem).__name__
            _log.error("inbound event not handled", event_id=event.id, provider=event.provider, trace=trace_of(problem))
        count("inbound_events", event.provider, event.environment.value, result)
        return is_handled

    async def handle(self, event: ProviderEvent) -> str:
        """Applies the event and stores its result, which is returned; safe to repeat, since settling the same report
        twice changes nothing. Raises Unavailable where its payment is in another cell, or on its way there, that cannot
        take it."""
        provider = self.payment_options.providers.get(event.provider)
        if provider is None:
            raise Unavailable("no provider has this slug any more")
        try:
            report = provider.read_event(event.body)
        except ProviderFault:
            return await self._close(event, EventResult.MALFORMED)
        if report is None:
            return await self._close(event, EventResult.IGNORED)
        if report.outcome is Outcome.REVERSED and not is_named(report.details):
            # Two refunds of the same amount are two facts; the same event twice is one.
            report = with_changes(report, details={**report.details, "eventDigest": event.digest.hex()[:16]})
        actor = f"event:{event.provider}"
        try:
            settled = await self.settlement.report(report, event.provider, event.environment, actor, event=event)
        except Refusal as moved:
            if moved.cell is None:
                raise
            await self.elsewhere.hand_over(event, moved.cell)
            return await self._close(event, EventResult.HANDED_OVER)
        return settled.effect.value

    @retry_on_conflict
    async def _close(self, event: ProviderEvent, result: EventResult) -> str:
        """Stores that there was nothing to apply here."""
        async with self.store.begin() as tx:
            await tx.inbox.save(event.handled(result.value, self.clock.now()))
        return result.value


def _postpone(event: ProviderEvent, now: datetime) -> ProviderEvent:
    """The event with one more attempt: due again after a pause that doubles."""
    pause = min(FIRST_RETRY * 2 ** min(event.attempts, 10), LONGEST_RETRY)
    return replace(event, attempts=min(event.attempts + 1, 30_000), next_attempt_at=now + pause)
