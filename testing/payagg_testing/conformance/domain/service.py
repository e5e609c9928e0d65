"""The driver that answers the machines' requests from the domain: no HTTP, no store, no event loop."""

import copy
import json
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote

from payagg.domain.business import BusinessStatus, KycStatus
from payagg.domain.errors import ErrorCode, Kind, Refusal
from payagg_testing.conformance.domain.gateways import BUILT_IN, GatewayRoutes, Page
from payagg_testing.conformance.domain.keys import KeyRoutes
from payagg_testing.conformance.domain.payment_routes import PaymentRoutes
from payagg_testing.conformance.domain.payments import DomainPayments
from payagg_testing.conformance.domain.rules import DomainRules
from payagg_testing.conformance.domain.webhooks import WebhookRoutes
from payagg_testing.conformance.domain.world import ADMIN_TOKEN
from payagg_testing.conformance.inbox import Inbox
from payagg_testing.conformance.service import ServiceAnswer, ServiceCall
from payagg_testing.conformance.target import ConformanceTarget, MerchantAccess

# What the interface's Errors table answers for each kind of refusal.
STATUS = {
    Kind.UNAUTHENTICATED: 401,
    Kind.FORBIDDEN: 403,
    Kind.INVALID: 400,
    Kind.MISSING: 404,
    Kind.CONFLICT: 409,
    Kind.GONE: 410,
    Kind.UPSTREAM: 502,
    Kind.UNAVAILABLE: 503,
}
APPROVED, ACTIVE = KycStatus.APPROVED, BusinessStatus.ACTIVE
BUSINESS = "/merchant/businesses/{}"
LEFT_OUT = {
    "logos": "a store for files, which is no part of the domain",
    "settlement": "a provider's protocol, which adapters speak",
    "settlement-b": "a provider's protocol, which adapters speak",
}


class DomainService:
    """Asked as any `Service` is. `rules` are those under test; what is handed over at one moment is done in turn."""

    can_wait = True

    def __init__(self, rules: DomainRules | None = None, inbox: Inbox | None = None) -> None:
        self.world = world = DomainPayments(rules or DomainRules(), inbox or Inbox("https://inbox.example"))
        world.seed()
        self._webhooks = webhooks = WebhookRoutes(world)
        world.on_move = webhooks.tell
        keys, gateways, payments = KeyRoutes(world), GatewayRoutes(world), PaymentRoutes(world)
        rows: list[tuple[str, str, Callable[..., tuple[int, Any]]]] = [
            ("GET", "/payments/context", keys.context),
            ("POST", "/payments/initiate", payments.initiate),
            ("GET", "/payments/{}", payments.read),
            ("POST", "/payments/{}/simulate", payments.simulate),
            ("GET", "/public/payments/{}", payments.public),
            ("GET", "/public/payments/{}/gateways", payments.options),
            ("POST", "/public/payments/{}/process", payments.process),
            ("GET", "/public/payments/{}/verify", payments.verify),
            ("POST", f"{BUSINESS}/test-payment", payments.initiate_test),
            ("GET", f"{BUSINESS}/test-payment/{{}}", payments.read_test),
            ("POST", f"{BUSINESS}/test-payment/{{}}/simulate", payments.simulate_test),
            ("GET", f"{BUSINESS}/api-keys", keys.list_keys),
            ("POST", f"{BUSINESS}/api-keys", keys.generate),
            ("DELETE", f"{BUSINESS}/api-keys/{{}}", keys.revoke),
            ("GET", f"{BUSINESS}/webhooks", webhooks.list_endpoints),
            ("POST", f"{BUSINESS}/webhooks", webhooks.add),
            ("POST", f"{BUSINESS}/webhooks/{{}}/rotate-secret", webhooks.rotate),
            ("DELETE", f"{BUSINESS}/webhooks/{{}}", webhooks.remove),
            ("GET", f"{BUSINESS}/gateways", gateways.options),
            ("PATCH", f"{BUSINESS}/gateways/{{}}", gateways.choose),
            ("POST", f"{BUSINESS}/gateways/reorder", gateways.reorder),
            ("GET", "/admin/gateways", gateways.list_gateways),
            ("POST", "/admin/gateways", gateways.create),
            ("GET", "/admin/gateways/{}", gateways.read),
            ("GET", "/admin/gateways/{}/merchants", gateways.merchants),
            ("PATCH", "/admin/gateways/{}", gateways.change),
            ("DELETE", "/admin/gateways/{}", gateways.delete),
            ("POST", "/admin/gateways/{}/enable", gateways.enable),
            ("POST", "/admin/gateways/{}/disable", gateways.disable),
            ("PATCH", "/admin/gateways/{}/credentials", gateways.store_credentials),
        ]
        self._routes = [(method, re.compile(path.replace("{}", "([^/]+)")), do) for method, path, do in rows]

    def send(self, call: ServiceCall) -> ServiceAnswer:
        try:
            status, data = self._do(call)
            body = {"success": True} if data is None else {"success": True, "data": data}
            if isinstance(data, Page):
                body |= {"data": data.rows, "meta": data.meta}
        except Refusal as refusal:
            status, error = STATUS[refusal.code.kind], {"code": refusal.code.name, "message": refusal.message}
            body = {"success": False, "error": error | ({"field": refusal.field} if refusal.field else {})}
        return ServiceAnswer(status, body, {}, json.dumps(body))

    def send_together(self, calls: Sequence[ServiceCall]) -> list[ServiceAnswer]:
        return [self.send(call) for call in calls]

    def wait(self, duration: timedelta) -> None:
        self.world.clock.move(duration)

    pause = wait

    def work(self) -> None:
        self._webhooks.work()

    def close(self) -> None:
        """There is nothing to close."""

    def _do(self, call: ServiceCall) -> tuple[int, Any]:
        path, _, query = call.path.partition("?")
        for method, pattern, do in self._routes:
            found = pattern.fullmatch(path)
            if found and method == call.method:
                # As over a wire: what the caller goes on changing, the domain does not see.
                body = copy.deepcopy(call.body or dict(parse_qsl(query)))
                return do(call.bearer, body, *map(unquote, found.groups()))
        raise Refusal(ErrorCode.NOT_FOUND)


def domain_target(rules: DomainRules | None = None) -> ConformanceTarget:
    """The domain with these rules and its four businesses: two approved, one before its KYC, one suspended."""
    inbox = Inbox("https://inbox.example")
    service = DomainService(rules, inbox)
    standings = [(APPROVED, ACTIVE), (APPROVED, ACTIVE), (KycStatus.PENDING, ACTIVE)]
    standings.append((APPROVED, BusinessStatus.SUSPENDED))
    *merchants, unapproved, suspended = (
        MerchantAccess(*service.world.add_business(kyc, status)) for kyc, status in standings
    )
    return ConformanceTarget(
        service,
        tuple(merchants),
        ADMIN_TOKEN,
        unapproved,
        suspended,
        builtin_slug=BUILT_IN,
        inbox=inbox,
        left_out=LEFT_OUT,
    )
