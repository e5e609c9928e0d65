"""Every route with every kind of credential, generated from the routes (reliability.md A5, B2)."""

import pytest

from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.http.openapi.operations import Route, routes_of
from tests.support.http_world import Api, admin_token, assert_refused, bearer, merchant_token

pytestmark = pytest.mark.anyio
ROUTES = routes_of(api_routes())
KEYS = ("sandbox key", "live key", "public key")
USERS = ("merchant", "unverified merchant", "other merchant", "member")
ADMINS = ("admin", "super admin", "support")
Refused = tuple[int, str]
UNAUTHORIZED = (401, "UNAUTHORIZED")
INVALID_API_KEY = (401, "INVALID_API_KEY")
FORBIDDEN = (403, "FORBIDDEN")


def expected(route: Route, who: str) -> Refused | None:
    """What `who` is told at `route` before anything else is looked at; None = the credential is accepted."""
    match route.realm.scheme:
        case "adminBearer":
            if who in USERS or who == "unknown role":
                return FORBIDDEN
            if who == "support":
                return None if route.method == "get" else FORBIDDEN
            return None if who in ADMINS else UNAUTHORIZED
        case "merchantBearer":
            if who == "unverified merchant":
                return (403, "EMAIL_NOT_VERIFIED")
            if who in ADMINS or who in ("other merchant", "member", "unknown role"):
                return FORBIDDEN
            return None if who == "merchant" else UNAUTHORIZED
        case "secretKey":
            if who == "none":
                return UNAUTHORIZED
            if who == "live key" and route.path.endswith("/simulate"):
                return (403, "SANDBOX_ONLY")
            return None if who in ("sandbox key", "live key") else INVALID_API_KEY
        case _:
            return None


async def test_every_route_with_every_kind_of_credential(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    credentials = {
        "none": {},
        "garbage": bearer("garbage"),
        "admin": bearer(admin_token()),
        "super admin": bearer(admin_token("SUPER_ADMIN")),
        "support": bearer(admin_token("SUPPORT")),
        "unknown role": bearer(admin_token("OWNER")),
        "merchant": shop.as_owner,
        "unverified merchant": bearer(merchant_token(shop.owner, verified=False)),
        "other merchant": other.as_owner,
        "member": bearer(merchant_token("member-1")),
        "sandbox key": shop.as_sandbox,
        "live key": shop.as_live,
        "public key": bearer(shop.public),
    }
    cells = 0
    for route in ROUTES:
        path = route.path.replace("{businessId}", shop.business.id).replace("{reference}", "PAY-20250131-AAAAAA")
        path = path.replace("{", "").replace("}", "")
        for who, headers in credentials.items():
            answer = await api.client.request(route.method.upper(), path, headers=headers)
            refused = expected(route, who)
            context = f"{route.method} {route.path} as {who}: {answer.status_code} {answer.text[:200]}"
            if refused is not None:
                assert answer.status_code == refused[0], context
                assert_refused(answer, *refused)
            else:
                assert answer.status_code not in (401, 403, 405, 500), context
            cells += 1
    assert cells == len(ROUTES) * len(credentials)
    assert {route.realm.scheme for route in ROUTES} == {"adminBearer", "merchantBearer", "secretKey", None}


async def test_a_role_or_type_of_an_odd_kind_is_forbidden(api: Api) -> None:
    from tests.support.http_world import a_token

    for claims in ({"type": "admin"}, {"type": "admin", "role": ["ADMIN"]}, {"type": ["admin"], "role": "ADMIN"}, {}):
        answer = await api.client.get("/admin/gateways", headers=bearer(a_token("x", **claims)))
        assert_refused(answer, 403, "FORBIDDEN")
    shop = await api.open_shop()
    for verified in (1, "true", None):
        token = a_token(shop.owner, type="merchant", emailVerified=verified)
        answer = await api.client.get(f"{shop.path}/gateways", headers=bearer(token))
        assert_refused(answer, 403, "EMAIL_NOT_VERIFIED")
