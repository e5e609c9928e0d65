"""Every route with every kind of credential, generated from the routes (reliability.md A5, B2)."""

import json
from typing import Any

import pytest

from payagg.domain.business import BusinessStatus
from payagg.entrypoints.http.api.auth import cached_key, merchant, provider_signature
from payagg.entrypoints.http.app import api_routes
from tests.integration.http.test_hostile import credential
from tests.support.http_world import Api, Shop, admin_token, assert_refused, bearer, merchant_token, refusal
from tools.openapi.operations import Route, routes_of

ROUTES = routes_of(api_routes())
USERS = ("merchant", "unverified merchant", "other merchant", "member")
ADMINS = ("admin", "super admin", "support")
Refused = tuple[int, str]


UNAUTHORIZED, INVALID_API_KEY, FORBIDDEN = (401, "UNAUTHORIZED"), (401, "INVALID_API_KEY"), (403, "FORBIDDEN")


# Interface, Authentication: which credential is asked for under which path.
REALMS = (
    ("/admin/", "adminBearer"),
    ("/merchant/", "merchantBearer"),
    ("/payments", "secretKey"),
    ("/events", "secretKey"),
    ("/", None),
)


def test_every_guard_asks_for_the_credential_of_its_path() -> None:
    for route in ROUTES:
        scheme = next(scheme for prefix, scheme in REALMS if route.path.startswith(prefix))
        assert route.operation.guard.scheme == scheme, route.id


def test_only_calls_that_prove_it_go_by_a_cached_key() -> None:
    # Each of them has a row in test_a_cached_key_is_refused_at_once_when_it_has_changed.
    assert {route.id for route in ROUTES if route.operation.guard is cached_key} == {"initiatePayment", "getPayment"}


def expected(route: Route, who: str) -> Refused | None:
    """What `who` is told at `route` before anything else is looked at; None = the credential is accepted."""
    match route.operation.guard.scheme:
        case "adminBearer":
            if who in USERS or who == "unknown role":
                return FORBIDDEN
            if who == "support":
                return None if route.method == "get" else FORBIDDEN
            return None if who in ADMINS else UNAUTHORIZED
        case "merchantBearer":
            if who == "unverified merchant":
                return (403, "EMAIL_NOT_VERIFIED")
            if who in ADMINS or who == "unknown role":
                return FORBIDDEN
            if who in ("other merchant", "member"):
                return FORBIDDEN if "businessId" in route.parameters else None
            return None if who == "merchant" else UNAUTHORIZED
        case "secretKey":
            if who == "none":
                return UNAUTHORIZED
            if who == "live key" and route.path.endswith("/simulate"):
                return (403, "SANDBOX_ONLY")
            return None if who in ("sandbox key", "live key") else INVALID_API_KEY
        case _:
            return None


@pytest.mark.rule("access.3", "access.5", "access.20", "keys.7", "UNAUTHORIZED")
@pytest.mark.rule("INVALID_API_KEY", "FORBIDDEN", "EMAIL_NOT_VERIFIED")
async def test_every_kind_of_route_with_every_kind_of_credential(api: Api, shop: Shop, other: Shop) -> None:
    roles = {"admin": "ADMIN", "super admin": "SUPER_ADMIN", "support": "SUPPORT", "unknown role": "OWNER"}
    credentials = {
        **{"none": {}, "garbage": bearer("garbage"), "public key": bearer(shop.public)},
        **{name: bearer(admin_token(role)) for name, role in roles.items()},
        **{"merchant": shop.as_owner, "other merchant": other.as_owner, "member": bearer(merchant_token("member-1"))},
        "unverified merchant": bearer(merchant_token(shop.owner, verified=False)),
        **{"sandbox key": shop.as_sandbox, "live key": shop.as_live},
    }
    # Of routes with one guard, method and kind of path one is called by all; each is called by some in the next test.
    kinds = {
        (id(one.operation.guard), one.method, "businessId" in one.parameters, one.path.endswith("/simulate")): one
        for one in ROUTES
    }
    for route in kinds.values():
        path = route.path.replace("{businessId}", shop.business.id).replace("{reference}", "PAY-20250131-AAAAAA")
        path = path.replace("{", "").replace("}", "")
        for who, headers in credentials.items():
            answer = await api.client.request(route.method.upper(), path, headers=headers)
            refused = expected(route, who)
            context = f"{route.method} {route.path} as {who}: {answer.status_code} {answer.text[:200]}"
            if refused is None:
                assert answer.status_code not in (401, 403, 405, 500), context
            else:
                assert refusal(answer)[:2] == refused, context
    assert {route.operation.guard.scheme for route in kinds.values()} == {scheme for _, scheme in REALMS}


def sent(route: Route, shop: Shop, reference: str, body: bytes) -> dict[str, Any]:
    """The request with this reference and body, and ids that name nothing."""
    path = route.path.replace("{businessId}", shop.business.id).replace("{reference}", reference)
    takes_body = route.operation.body is not None or route.operation.upload is not None
    more: dict[str, Any] = {"content": body} if takes_body else {}
    return {"method": route.method.upper(), "url": path.replace("{", "unknown_").replace("}", ""), **more}


def forbidden(route: Route, shop: Shop, restricted: Shop) -> tuple[Shop, dict[str, str], str] | None:
    """Whose path is called, by whom, and the 403."""
    match route.operation.guard.scheme:
        case "adminBearer":
            return shop, shop.as_owner, "FORBIDDEN"
        case "merchantBearer":
            if route.operation.guard is merchant:
                return shop, bearer(merchant_token(shop.owner, verified=False)), "EMAIL_NOT_VERIFIED"
            return shop, bearer(merchant_token("member-1")), "FORBIDDEN"
        case "secretKey":
            return restricted, restricted.as_sandbox, "BUSINESS_RESTRICTED"
        case _:
            return None


ABSENT = "PAY-20250131-ABSENT"
# A value that the field's type lets through and the use case refuses, where there is one.
BAD_VALUES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("simulatePayment", {"outcome": "MAYBE"}, "outcome"),
    ("simulateTestPayment", {"outcome": "MAYBE"}, "outcome"),
    ("processPayment", {"gatewaySlug": "sandbox", "cardNumber": "1234"}, "cardNumber"),
    ("updateWebhook", {"events": ["payment.unheard"]}, "events"),
    ("updateWebhook", {"url": "shop.example"}, "url"),
)


@pytest.mark.rule("access.4", "payments.4")
async def test_every_route_refuses_in_the_same_order(api: Api) -> None:
    """401, 403, 400 on the path, 400 on the body, and only then what is unknown."""
    shop, restricted = await api.open_shop(), await api.open_shop(status=BusinessStatus.RESTRICTED)
    cells = 0

    async def refused(route: Route, request: dict[str, Any], headers: dict[str, str], *wanted: Any) -> None:
        nonlocal cells
        answer = await api.client.request(**request, headers=headers)
        assert refusal(answer)[: len(wanted)] == wanted, f"{route.id}: {answer.status_code} {answer.text[:200]}"
        cells += 1

    for route in ROUTES:
        wrong = sent(route, shop, "nonsense", b"{")
        has_reference, has_body = "reference" in route.parameters, "content" in wrong
        if route.operation.guard.scheme is not None:
            await refused(route, wrong, {"Content-Type": "application/json"}, 401, "UNAUTHORIZED")
        if told := forbidden(route, shop, restricted):
            whose, headers, code = told
            await refused(route, sent(route, whose, "nonsense", b"{"), headers, 403, code)
        headers = credential(route, shop) | {"Content-Type": "application/json"}
        if has_reference:
            await refused(route, wrong, headers, 400, "INVALID_REFERENCE", "reference")
        if has_body and route.operation.guard is not provider_signature:
            await refused(route, sent(route, shop, ABSENT, b"{"), headers, 400, "VALIDATION_ERROR")
        for _, body, field in (row for row in BAD_VALUES if row[0] == route.id):
            value = sent(route, shop, ABSENT, json.dumps(body).encode())
            await refused(route, value, headers, 400, "VALIDATION_ERROR", field)
    assert cells >= 2 * len([route for route in ROUTES if route.operation.guard.scheme is not None])
    assert {row[0] for row in BAD_VALUES} <= {route.id for route in ROUTES}


@pytest.mark.rule("keys.4", "options.7", "webhooks.8", "BUSINESS_RESTRICTED")
async def test_a_business_that_is_not_active_reads_and_changes_nothing_but_revokes_keys(api: Api) -> None:
    own = [route for route in ROUTES if route.path.startswith("/merchant/businesses/{businessId}")]
    for status in (BusinessStatus.RESTRICTED, BusinessStatus.SUSPENDED):
        shop = await api.open_shop(status=status)
        headers = shop.as_owner | {"Content-Type": "application/json"}
        told = {}
        for route in own:
            answer = await api.client.request(**sent(route, shop, "PAY-20250131-ABSENT", b"{"), headers=headers)
            told[route.id] = (answer.status_code, answer.json().get("error", {}).get("code"))
        refused = {id for id, answer in told.items() if answer == (403, "BUSINESS_RESTRICTED")}
        assert refused == {route.id for route in own if route.method != "get"} - {"revokeApiKey"} | {"listApiKeys"}
        assert 403 not in {status for id, (status, _) in told.items() if id not in refused}
        assert_refused(await api.client.get("/payments/context", headers=shop.as_sandbox), 403, "BUSINESS_RESTRICTED")
