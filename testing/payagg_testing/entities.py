"""Hypothesis strategies for whole entities of the domain, each valid and in any of its states."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from payagg.domain.api_key import ApiKey
from payagg.domain.attempt import Attempt, AttemptState
from payagg.domain.business import Business, BusinessStatus, KycStatus
from payagg.domain.gateway import BusinessGateway, Gateway, GatewayStatus
from payagg.domain.payment import PAYMENT, Payment, Trigger
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import Environment
from payagg.domain.webhook import EventType, WebhookEndpoint
from payagg_testing import strategies
from payagg_testing.builders import a_business, a_gateway, a_key, a_report, an_attempt, an_endpoint

event_lists: SearchStrategy[list[str]] = st.lists(
    st.sampled_from([kind.value for kind in EventType]), unique=True, max_size=3
)
credentials: SearchStrategy[dict[str, str]] = st.dictionaries(
    st.text(strategies.LETTERS, min_size=1, max_size=12), strategies.texts, min_size=1, max_size=4
)
idempotency_keys = st.text(strategies.LETTERS + strategies.DIGITS + "-_:. ", min_size=1, max_size=40)
names = st.text(strategies.LETTERS + " ", min_size=2, max_size=40).filter(lambda name: name == name.strip())


def businesses(status: BusinessStatus | None = None) -> SearchStrategy[Business]:
    return st.builds(
        a_business,
        name=names,
        status=st.just(status) if status else st.sampled_from(BusinessStatus),
        kyc_status=st.sampled_from(KycStatus),
        created_at=strategies.instants,
    )


@st.composite
def api_keys(draw: st.DrawFn, environment: Environment | None = None) -> ApiKey:
    """Active or revoked."""
    now = draw(strategies.instants)
    number = draw(st.integers(1, 10**6))
    key = a_key(f"key_{number}", environment or draw(strategies.environments), now=now, name=draw(names))
    return key.revoke(now + draw(strategies.waits)) if draw(st.booleans()) else key


@st.composite
def gateways(draw: st.DrawFn, status: GatewayStatus | None = None) -> Gateway:
    """In any status that a gateway of an administrator can have; a draining one somewhere in its drain."""
    status = status or draw(st.sampled_from([GatewayStatus.DISABLED, GatewayStatus.ACTIVE, GatewayStatus.DRAINING]))
    order = draw(st.integers(0, 1000))
    return a_gateway(draw(strategies.slugs), status, now=draw(strategies.instants), display_order=order)


@st.composite
def business_gateways(draw: st.DrawFn) -> BusinessGateway:
    """Settings of one business: a disabled option is never the default."""
    is_enabled = draw(st.booleans())
    return BusinessGateway(
        "biz_1",
        "gw_1",
        is_enabled=is_enabled,
        display_order=draw(st.none() | st.integers(0, 1000)),
        display_name=draw(st.none() | names),
        is_default=is_enabled and draw(st.booleans()),
        created_at=draw(strategies.instants),
    )


@st.composite
def endpoints(draw: st.DrawFn, environment: Environment | None = None) -> WebhookEndpoint:
    url = "https://" + draw(strategies.urls).partition("://")[2]
    events = tuple(kind.value for kind in EventType if kind.value in draw(event_lists))
    chosen = environment or draw(strategies.environments)
    return an_endpoint(environment=chosen, url=url, events=events, is_active=draw(st.booleans()))


@st.composite
def moved_payments(draw: st.DrawFn, environment: Environment | None = None) -> Payment:
    """A payment after as many of its machine's moves as were drawn; expiry comes when its hour has passed."""
    payment = draw(strategies.payments(environment))
    now = payment.created_at
    for trigger in draw(st.lists(st.sampled_from([t for t in Trigger if t is not Trigger.EXPIRE]), max_size=3)):
        now += timedelta(seconds=1)
        if (payment.status, trigger) in PAYMENT.moves:
            payment = payment.move(trigger, now, actor="test")[0]
    return payment


@st.composite
def attempts(draw: st.DrawFn) -> Attempt:
    payment = draw(strategies.payments())
    state = draw(st.sampled_from([AttemptState.CLAIMED, AttemptState.HANDED_OFF]))
    return an_attempt(payment, draw(st.integers(1, 5)), state, now=payment.created_at)


@st.composite
def reports(draw: st.DrawFn) -> ProviderReport:
    """What a provider may say: of any reference, any outcome and any amount."""
    return replace(
        a_report(draw(st.sampled_from(Outcome)), provider_reference=draw(strategies.references())),
        amounts=frozenset(draw(st.lists(strategies.amounts, max_size=2))),
    )
