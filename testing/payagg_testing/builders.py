"""Data for tests: every builder gives a valid whole, and a test names only what matters to it."""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from payagg.domain.api_key import ApiKey
from payagg.domain.attempt import Attempt, AttemptState, HandOff, HandOffKind
from payagg.domain.audit import Action, Actor, ActorRealm, AuditEntry, Changes
from payagg.domain.business import Business, BusinessStatus, KycStatus
from payagg.domain.business_gateway import BusinessGateway
from payagg.domain.delivery import Delivery, Event
from payagg.domain.gateway import Gateway, GatewayStatus
from payagg.domain.payment import PAYMENT, Payment, Status, Transition, Trigger
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import Environment
from payagg.domain.webhook import EventType, WebhookEndpoint
from payagg_testing.clocks import START

NOW = START
TICK, SECOND, MINUTE = timedelta(microseconds=1), timedelta(seconds=1), timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SANDBOX, LIVE = Environment.SANDBOX, Environment.LIVE
REFERENCE = "PAY-20250131-7K2M9X"
WAY_TO = {
    Status.PENDING: Trigger.PROCESS,
    Status.SUCCESS: Trigger.SUCCEED,
    Status.FAILED: Trigger.FAIL,
    Status.REVERSED: Trigger.REVERSE,
}


def a_payment(status: Status = Status.INITIATED, *, now: datetime = NOW, **fields: Any) -> Payment:
    """A payment that reached `status` in one move at `now`; other fields as initiate takes them."""
    facts = {"reference": REFERENCE, "business_id": "biz_1", "environment": Environment.SANDBOX, "amount": 150000}
    payment = Payment.initiate(**{**facts, "now": now, **fields})
    if status is Status.INITIATED:
        return payment
    return payment.move(WAY_TO[status], now, actor="test")[0]


def an_expired_payment(**fields: Any) -> Payment:
    """A payment whose expiry was made durable by the sweep."""
    return a_payment(**fields).expire()[0]


def a_transition(
    payment: Payment, trigger: Trigger = Trigger.SUCCEED, now: datetime = NOW
) -> tuple[Payment, Transition]:
    moved, transition = payment.move(trigger, now, actor="test")
    assert transition is not None
    return moved, transition


def a_business(
    id: str = "biz_1",
    name: str = "Ada's Shop",
    status: BusinessStatus = BusinessStatus.ACTIVE,
    kyc_status: KycStatus = KycStatus.APPROVED,
    created_at: datetime = NOW,
) -> Business:
    return Business(id, name, status, kyc_status, created_at)


def a_key(
    id: str = "key_1",
    environment: Environment = Environment.SANDBOX,
    *,
    business_id: str = "biz_1",
    now: datetime = NOW,
    name: str = "Server",
) -> ApiKey:
    """An ACTIVE key; everything about it follows from its id."""
    secret_hex = hashlib.sha256(id.encode()).hexdigest()
    key, _ = ApiKey.generate(
        id=id,
        business_id=business_id,
        environment=environment,
        name=name,
        secret_hex=secret_hex[:48],
        public_hex=secret_hex[-32:],
        now=now,
    )
    return key


def a_gateway(
    slug: str = "provider_a", status: GatewayStatus = GatewayStatus.ACTIVE, *, now: datetime = NOW, **fields: Any
) -> Gateway:
    drains = status is GatewayStatus.DRAINING
    gateway = Gateway(
        id=f"gw_{slug}",
        slug=slug,
        name=slug.title(),
        created_at=now,
        updated_at=now,
        status=status,
        drain_started_at=now if drains else None,
        drain_ends_at=now + timedelta(minutes=30) if drains else None,
    )
    return replace(gateway, **fields)


def the_built_in(**fields: Any) -> Gateway:
    return a_gateway("builtin", is_built_in=True, **fields)


def a_choice(gateway: Gateway, business_id: str = "biz_1", **fields: Any) -> BusinessGateway:
    """A business's settings of one gateway."""
    return BusinessGateway(business_id, gateway.id, created_at=NOW, updated_at=NOW, **fields)


def an_endpoint(id: str = "whe_1", environment: Environment = Environment.SANDBOX, **fields: Any) -> WebhookEndpoint:
    endpoint = WebhookEndpoint(
        id=id,
        business_id="biz_1",
        environment=environment,
        url="https://shop.example/hooks",
        secret=b"sealed " + id.encode(),
        secret_last4="abcd",  # noqa: S106 - four shown characters, not a secret
        created_at=NOW,
        updated_at=NOW,
    )
    return replace(endpoint, **fields)


def an_id(prefix: str, number: int = 1, now: datetime = NOW) -> str:
    """An id in Entropy's form: stores read the instant that it begins with."""
    return f"{prefix}_{int(now.timestamp() * 1000):012x}{number:020x}"


def an_actor(realm: ActorRealm = ActorRealm.ADMIN, subject: str = "ada") -> Actor:
    return Actor(realm, subject, "192.0.2.1", "request-1")


AN_ADMIN = an_actor()


def an_entry(
    number: int = 1,
    action: Action = Action.GATEWAY_ENABLE,
    object_id: str = "gw_1",
    *,
    actor: Actor = AN_ADMIN,
    business_id: str | None = None,
    changes: Changes | None = None,
    now: datetime = NOW,
) -> AuditEntry:
    """An entry whose id is drawn at `now`; those with a higher `number` are younger."""
    return AuditEntry.of(an_id("aud", number, now), now, actor, action, object_id, changes or {}, business_id)


EVENT_ID, DELIVERY_ID = an_id("evt"), an_id("dlv")


def an_event(id: str = EVENT_ID, sequence: int = 1, **fields: Any) -> Event:
    event = Event(
        id=id,
        reference=REFERENCE,
        sequence=sequence,
        type=EventType.PAYMENT_SUCCESS.value,
        business_id="biz_1",
        environment=Environment.SANDBOX,
        body=b'{"id":"' + id.encode() + b'"}',
        created_at=NOW,
    )
    return replace(event, **fields)


def a_delivery(
    event: Event | None = None, id: str = DELIVERY_ID, endpoint_id: str | None = "whe_1", url: str | None = None
) -> Delivery:
    return Delivery.of(event or an_event(), id, endpoint_id, url)


def an_attempt(
    payment: Payment | None = None,
    number: int = 1,
    state: AttemptState = AttemptState.CLAIMED,
    *,
    gateway: str = "provider_a",
    now: datetime = NOW,
    **fields: Any,
) -> Attempt:
    """An attempt in `state`; a HANDED_OFF one carries a redirect."""
    claim = Attempt.claim(
        payment or a_payment(),
        number,
        gateway=gateway,
        gateway_id=f"gw_{gateway}",
        scenario=None,
        token=f"token {number}",
        now=now,
    )
    if state is AttemptState.HANDED_OFF:
        fields = {"hand_off": HandOff(HandOffKind.REDIRECT, "https://pay.example/1"), "handed_off_at": now, **fields}
    return replace(claim, state=state, **fields)


def a_report(
    outcome: Outcome = Outcome.SUCCEEDED,
    *,
    provider_reference: str = REFERENCE,
    amounts: frozenset[int] = frozenset({150000}),
    **fields: Any,
) -> ProviderReport:
    return ProviderReport(
        provider_reference=provider_reference, outcome=outcome, word=outcome.value.lower(), amounts=amounts, **fields
    )


assert set(WAY_TO) == set(PAYMENT.states) - {PAYMENT.initial}
