"""The statements of the interface, numbered as payagg's rules are: rules of machines carry them, routes and error codes
are seen by themselves. What no machine tries stands here with its reason."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from hypothesis.stateful import precondition

from payagg_testing.conformance.service import ServiceAnswer, ServiceCall
from payagg_testing.conformance.target import ConformanceTarget

BUSINESS = "/merchant/businesses/{businessId}"
GATEWAY = "/admin/gateways/{id}"
PAYMENT = "/public/payments/{reference}"
ROUTES = (
    *("GET /admin/gateways", "POST /admin/gateways", f"GET {GATEWAY}", f"PATCH {GATEWAY}", f"DELETE {GATEWAY}"),
    *(f"POST {GATEWAY}/enable", f"POST {GATEWAY}/disable", f"GET {GATEWAY}/merchants"),
    *(f"PATCH {GATEWAY}/credentials", f"POST {GATEWAY}/logo", "GET /public/gateways/{id}/logo"),
    *(f"GET {BUSINESS}/gateways", f"PATCH {BUSINESS}/gateways/{{gatewayId}}", f"POST {BUSINESS}/gateways/reorder"),
    *(f"GET {BUSINESS}/api-keys", f"POST {BUSINESS}/api-keys", f"DELETE {BUSINESS}/api-keys/{{keyId}}"),
    *(f"GET {BUSINESS}/webhooks", f"POST {BUSINESS}/webhooks", f"PATCH {BUSINESS}/webhooks/{{endpointId}}"),
    *(f"DELETE {BUSINESS}/webhooks/{{endpointId}}", f"POST {BUSINESS}/webhooks/{{endpointId}}/test"),
    *(f"GET {BUSINESS}/webhooks/{{endpointId}}/deliveries", "GET /payments/context", "POST /payments/initiate"),
    *("GET /payments/{reference}", "POST /payments/{reference}/simulate", f"GET {PAYMENT}", f"GET {PAYMENT}/gateways"),
    *(f"POST {PAYMENT}/process", f"GET {PAYMENT}/verify", f"POST {BUSINESS}/test-payment"),
    *(f"GET {BUSINESS}/test-payment/{{reference}}", f"POST {BUSINESS}/test-payment/{{reference}}/simulate"),
    *("POST /webhooks/{provider}/sandbox", "POST /webhooks/{provider}/live", "POST /webhooks/{provider}"),
)
CODES = (
    *("UNAUTHORIZED", "INVALID_API_KEY", "KYC_REQUIRED", "BUSINESS_RESTRICTED", "SANDBOX_ONLY", "KEY_LIMIT_REACHED"),
    *("VALIDATION_ERROR", "GATEWAY_NOT_FOUND", "GATEWAY_DISABLED", "DUPLICATE_PAYMENT", "NO_GATEWAY_AVAILABLE"),
    *("INVALID_REFERENCE", "PAYMENT_NOT_FOUND", "PAYMENT_ALREADY_FINAL", "NO_SANDBOX_KEY", "GATEWAY_NOT_AVAILABLE"),
    *("GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "PAYMENT_ALREADY_PROCESSED", "PAYMENT_EXPIRED"),
    *("PAYMENT_AMOUNT_MISMATCH", "INVALID_WEBHOOK_SIGNATURE"),
)
SAYS = {
    "access.1": "every answer is an envelope",
    "access.3": "every route requires its own kind of credential",
    "access.8": "every JSON response has data, except that of updated credentials",
    "access.19": "forged tokens are unauthorized",
    "access.20": "business routes require a verified manager",
    "access.21": "public keys are never accepted",
    "gateways.1": "a new gateway is DISABLED",
    "gateways.2": "reserved slugs",
    "gateways.4": "only the order of the built-in gateway may change",
    "gateways.5": "the built-in gateway is never disabled or deleted",
    "gateways.6": "enabling ends a drain, opt-outs stay",
    "gateways.7": "routing follows every switch at once",
    "gateways.8": "only disabled gateways are deleted",
    "gateways.9": "businessCount",
    "gateways.10": "merchants: active businesses, literal search",
    "gateways.11": "credentials are replaced in full, encrypted, never shown",
    "options.1": "a gateway that was never configured is enabled; the built-in comes first",
    "options.2": "the built-in gateway is neither disabled nor reordered",
    "options.3": "disabling clears the default flag",
    "options.4": "a reorder ignores the built-in",
    "options.5": "a reorder names active gateways only",
    "options.6": "one default per business",
    "keys.1": "a secret is shown once and kept as a hash",
    "keys.2": "revocation holds at once everywhere",
    "keys.3": "LIVE needs KYC; every key needs an active business",
    "payments.2": "a final payment never changes",
    "payments.6": "64 equal requests at once make one payment",
    "payments.10": "a completed payment holds its key",
    "payments.11": "keys are scoped by business and environment",
    "payments.12": "no request reads another environment or business",
    "payments.13": "another business's reference gets the answer to an unknown one",
    "payments.25": "test payments are sandbox payments",
    "payments.26": "only the simulator serves a test payment",
    "checkout.1": "a payer changes nothing of the payment",
    "checkout.3": "each test card has its outcome",
    "checkout.4": "a repeat returns the hand-off, no second charge",
    "checkout.5": "provider_b gets launch parameters",
    "checkout.6": "an unavailable provider stays listed with its reason",
    "checkout.7": "the simulator never serves LIVE",
    "checkout.8": "LIVE lists no simulator",
    "checkout.11": "verify: a difference in amount or currency changes no status",
    "provider-events.1": "forged signatures leave nothing",
    "provider-events.2": "events never cross environments",
    "provider-events.3": "duplicates are idempotent",
    "provider-events.4": "malformed payloads are refused as the interface says",
    "provider-events.5": "an event whose handling fails is acknowledged and retried",
    "provider-events.6": "an event with another amount or currency changes no status",
    "webhooks.1": "an event reaches the endpoints of its environment that subscribed",
    "webhooks.2": "a LIVE endpoint needs HTTPS",
    "webhooks.4": "every change of status is one event",
    "webhooks.6": "X-Service-Signature equals webhook-signature",
    "webhooks.8": "a business that is not active can only read its webhooks",
    "limits.1": "minimum payment amount 100 kobo",
    "limits.2": "metadata 50 keys, key 100, depth 5, 16 KB",
    "limits.4": "a checkout link is valid for one hour",
    "limits.5": "drain window 30 minutes",
    "limits.6": "5 active API keys per environment and business",
    "limits.7": "20 most recently revoked keys are listed",
    "limits.8": "5 active webhook endpoints per business",
    "limits.9": "100 inbound webhooks per minute and address",
    "limits.14": "credentials: 1-50 properties of 4000 characters",
    "limits.15": "gateway slug 2-50, name 2-100, description 1000",
    "limits.16": "business display name 50",
    "limits.17": "reorder 1-100 items",
    "limits.18": "perPage 1-100 default 20, page from 1",
    "limits.19": "search 100 characters",
    "limits.20": "API key name 2-100",
    "limits.21": "webhook description 200",
}
NOT_SHOWN = "the interface does not show what it takes and answers"
FILES = "files are not uploaded"
# What no machine tries, and why.
NEVER = {
    f"PATCH {BUSINESS}/webhooks/{{endpointId}}": NOT_SHOWN,
    f"POST {BUSINESS}/webhooks/{{endpointId}}/test": NOT_SHOWN,
    f"GET {BUSINESS}/webhooks/{{endpointId}}/deliveries": NOT_SHOWN,
    f"POST {GATEWAY}/logo": FILES,
    "GET /public/gateways/{id}/logo": FILES,
    "provider-events.5": "what fails inside a service is not caused from outside",
    "limits.9": "the rest of a run would be refused by that limit",
}


@dataclass(frozen=True)
class Need:
    """What rules need of a target, in the words that follow "it needs"."""

    words: str
    is_met: Callable[[ConformanceTarget], object]


def _owners(target: ConformanceTarget, *, with_key: bool = False) -> int:
    return sum(one.token is not None and (not with_key or "SANDBOX" in one.keys) for one in target.merchants)


ADMIN = Need("an administrator's token", lambda target: target.admin_token)
OWNER = Need("a merchant's token", _owners)
OWNER_WITH_KEY = Need("a business with a manager's token", lambda target: _owners(target, with_key=True))
TWO_OWNERS = Need("two businesses, each with a manager's token", lambda target: _owners(target, with_key=True) > 1)
SANDBOX_KEY = Need("a sandbox key", lambda target: target.merchants and "SANDBOX" in target.merchants[0].keys)
INBOX = Need("an inbox that the service can reach", lambda target: target.inbox)
CLOCK = Need("a clock that we may move: it takes too long to wait for", lambda target: target.service.can_wait)
LIVE = Need("LIVE payments, which no gateway takes", lambda target: any(map(target.takes_live, target.merchants)))
UNAPPROVED = Need("a business before its KYC", lambda target: target.unapproved)
SUSPENDED = Need("a business that is not active", lambda target: target.suspended)


def tries(*statements: str, needs: Need | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Stands below `@rule`: whenever that sends something, these were tried. Without what it `needs` it never runs."""

    def mark(rule: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(rule)
        def run(self: Any, *arguments: Any, **drawn: Any) -> Any:
            before = self.steps_taken[0]
            try:
                return rule(self, *arguments, **drawn)
            finally:
                if self.steps_taken[0] > before:
                    self.tried.update(statements)

        run.carries = dict.fromkeys(statements, (needs,) if needs is not None else ())  # type: ignore[attr-defined]
        return precondition(lambda self: bool(needs.is_met(self.target)))(run) if needs is not None else run

    return mark


def statements_of(machine: type) -> dict[str, tuple[Need, ...]]:
    """The statements that a machine's rules try, with what each needs."""
    rules = (getattr(machine, name) for name in dir(machine))
    marks: Iterable[Mapping[str, tuple[Need, ...]]] = (getattr(rule, "carries", {}) for rule in rules)
    return dict(pair for mark in (*marks, machine.in_passing) for pair in mark.items())  # type: ignore[attr-defined]


_PLACES = re.compile("|".join(f"({re.sub(r'{[^}]*}', '[^/]+', route)})" for route in ROUTES))


def route_or_code(call: ServiceCall, answer: ServiceAnswer) -> set[str]:
    """The route that granted something, or the code of the refusal."""
    if answer.status >= 400:
        return {answer.code} & set(CODES) if answer.code else set()
    place = _PLACES.fullmatch(f"{call.method} {call.path.partition('?')[0]}")
    return {ROUTES[place.lastindex - 1]} if place is not None and place.lastindex else set()


@dataclass(frozen=True)
class Coverage:
    """Of each statement, route and code: None where a run tried it, otherwise why not."""

    reasons: Mapping[str, str | None]

    @classmethod
    def of(cls, tried: Iterable[str], not_tried: Mapping[str, str]) -> "Coverage":
        """`not_tried`: what machines say of the statements that they carry."""
        touched, otherwise = set(tried), "no history came to it"
        each = (*SAYS, *ROUTES, *CODES)
        return cls({one: None if one in touched else NEVER.get(one) or not_tried.get(one, otherwise) for one in each})

    @property
    def missing(self) -> dict[str, str]:
        """What could have been tried and was not."""
        return {one: why for one, why in self.reasons.items() if why is not None and one not in NEVER}
