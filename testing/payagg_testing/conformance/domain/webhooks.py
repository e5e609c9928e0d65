"""Merchants' endpoints over the domain: added, rotated, removed, and told of every change of status."""

import json
from dataclasses import dataclass, replace
from typing import Any

from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import Payment, Transition
from payagg.domain.signing import secret_text
from payagg.domain.webhook import EVENT_FOR, SECRET_BYTES, Delivery, DeliveryStatus, Event, WebhookEndpoint
from payagg_testing.conformance.domain.payment_routes import detail
from payagg_testing.conformance.domain.world import DomainWorld, environment_of, instant, no_others, view

Body = dict[str, Any]
Reply = tuple[int, Any]


@dataclass(frozen=True)
class WebhookRoutes:
    """A sealed secret is the key itself here: sealing is no rule of the domain."""

    world: DomainWorld

    def list_endpoints(self, bearer: str | None, body: Body, business_id: str) -> Reply:
        self.world.admit_manager(bearer, business_id)
        return 200, [_view(endpoint) for endpoint in self._of(business_id)]

    def add(self, bearer: str | None, body: Body, business_id: str) -> Reply:
        world = self.world
        world.admit_manager(bearer, business_id).ensure_active()
        no_others(body, "url", "environment", "description", "events")
        key = world.entropy.bytes(SECRET_BYTES)
        endpoint = world.rules.endpoint.create(
            id=world.entropy.id("whe", world.now()),
            business_id=business_id,
            environment=environment_of(body),
            url=body.get("url", ""),
            description=body.get("description"),
            events=body.get("events", []),
            secret=key,
            secret_last4=secret_text(key)[-4:],
            now=world.now(),
        )
        if sum(one.is_active for one in self._of(business_id)) >= world.rules.active_endpoints_max:
            raise Refusal(ErrorCode.WEBHOOK_LIMIT_REACHED)
        return 201, self._keep(endpoint, key)

    def rotate(self, bearer: str | None, body: Body, business_id: str, endpoint_id: str) -> Reply:
        world = self.world
        world.admit_manager(bearer, business_id).ensure_active()
        key, endpoint = world.entropy.bytes(SECRET_BYTES), self._find(business_id, endpoint_id)
        return 201, self._keep(endpoint.rotate(key, secret_text(key)[-4:], world.now()), key)

    def remove(self, bearer: str | None, body: Body, business_id: str, endpoint_id: str) -> Reply:
        self.world.admit_manager(bearer, business_id).ensure_active()
        endpoint = replace(self._find(business_id, endpoint_id), is_active=False)
        self.world.endpoints[endpoint_id] = endpoint
        return 200, _view(endpoint)

    def tell(self, payment: Payment, transition: Transition) -> None:
        """The event of a transition, and a delivery to each endpoint that receives it."""
        world, kind = self.world, EVENT_FOR[transition.to_status]
        id = world.entropy.id("evt", world.now())
        told = {
            "id": id,
            "type": kind.value,
            "sequence": transition.sequence,
            "environment": payment.environment.value,
            "createdAt": instant(transition.at),
            "data": detail(payment),
        }
        event = Event(
            id=id,
            reference=payment.reference,
            sequence=transition.sequence,
            type=kind.value,
            business_id=payment.business_id,
            environment=payment.environment,
            body=json.dumps(told).encode(),
            created_at=transition.at,
        )
        for endpoint in self._of(payment.business_id):
            if endpoint.receives(kind, payment.environment):
                delivery = Delivery.of(event, world.entropy.id("dlv", world.now()), endpoint.id, None)
                world.deliveries.append((event, delivery))
        if payment.webhook_url is not None:
            world.inbox.receive(payment.webhook_url, {}, event.body)

    def work(self) -> None:
        """Sends what is due once."""
        tried = [(event, self._try(event, delivery)) for event, delivery in self.world.deliveries]
        self.world.deliveries[:] = [pair for pair in tried if pair[1].status is DeliveryStatus.PENDING]

    def _try(self, event: Event, delivery: Delivery) -> Delivery:
        world, now = self.world, self.world.now()
        endpoint = world.endpoints[delivery.endpoint_id or ""]
        if delivery.next_attempt_at is None or now < delivery.next_attempt_at:
            return delivery
        if not endpoint.is_active:
            return replace(delivery, status=DeliveryStatus.FAILED, next_attempt_at=None)
        keys, at = endpoint.signing_secrets(now), int(now.timestamp())
        headers = world.rules.signed_headers(keys, event.id, at, event.body)
        attempts = delivery.attempts + 1
        if world.inbox.receive(endpoint.url, headers, event.body) < 300:
            return replace(delivery, attempts=attempts, status=DeliveryStatus.DELIVERED, next_attempt_at=None)
        delay = world.rules.delay_after(delivery.environment, attempts, world.entropy.chance())
        if delay is None:
            return replace(delivery, attempts=attempts, status=DeliveryStatus.FAILED, next_attempt_at=None)
        return replace(delivery, attempts=attempts, next_attempt_at=now + delay)

    def _of(self, business_id: str) -> list[WebhookEndpoint]:
        return [one for one in self.world.endpoints.values() if one.business_id == business_id]

    def _find(self, business_id: str, endpoint_id: str) -> WebhookEndpoint:
        found = next((one for one in self._of(business_id) if one.id == endpoint_id), None)
        if found is None:
            raise Refusal(ErrorCode.NOT_FOUND)
        return found

    def _keep(self, endpoint: WebhookEndpoint, key: bytes) -> Body:
        self.world.endpoints[endpoint.id] = endpoint
        return _view(endpoint) | {"signingSecret": secret_text(key)}


def _view(endpoint: WebhookEndpoint) -> Body:
    own = ("id", "url", "environment", "description", "is_active", "secret_last4", "created_at")
    summary = view(endpoint, "successful", "failed")
    return view(endpoint, *own) | {"events": list(endpoint.events), "deliverySummary": summary}
