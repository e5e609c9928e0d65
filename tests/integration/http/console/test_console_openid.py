"""Signing in to the console at an OpenID Connect issuer, against one that answers as it is told."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from litestar import Request, Response, route
from litestar.params import FromPath

from payagg.adapters.system import SystemClock
from payagg.domain.revocation import Revocation, RevokedClaim
from payagg.entrypoints.dev.fake_providers import serve_asgi
from payagg.entrypoints.dev.fake_providers.steering import application
from payagg.entrypoints.dev.fake_providers.steering import json as json_of
from payagg.extensions.console.console_sessions import Console
from payagg.extensions.console.openid import OpenIdIssuer
from payagg.extensions.console.settings import ConsoleSettings
from tests.support.assembly import SETTINGS, services_over, with_parts
from tests.support.http_world import an_app
from tests.support.memory_shop import MemoryShop
from tests.support.ports import free_port

KEY, STRANGER = (rsa.generate_private_key(65537, 2048) for _ in range(2))
ROLES = ("groups", (("pay-admins", "ADMIN"), ("pay-support", "SUPPORT")))
BACK = "/console/admin/sign-in/back"
Client = httpx.AsyncClient
BASE_URL = "http://127.0.0.1:8000"
OUT_OF_DATE = "out of date, or was begun in another browser"
REFUSED = "did not let you in"
AWAY = "does not answer as it should"


@dataclass
class FakeIssuer:
    """`claims` are those of the next ID tokens, over what is right; a code is good once, for its verifier."""

    origin: str = ""
    claims: dict[str, Any] = field(default_factory=lambda: {"groups": ["pay-admins"]})
    userinfo: dict[str, Any] = field(default_factory=dict)
    discovery: dict[str, Any] = field(default_factory=dict)
    token_status: int = 200
    key: Any = KEY
    algorithm: str = "RS256"
    kid: str = "k"
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def code_for(self, location: str) -> tuple[str, str]:
        """What the issuer sends the browser back with, code and state, for the page that it was sent to."""
        query = dict(parse_qsl(urlsplit(location).query))
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        code = f"code-{len(self.codes)}-{query['state']}"
        self.codes[code] = query
        return code, query["state"]

    def answer(self, path: str, sent: dict[str, str]) -> tuple[int, Any]:
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            ends = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "jwks"}
            found = {name: f"{self.origin}/{end}" for name, end in (ends | {"userinfo_endpoint": "me"}).items()}
            return 200, {"issuer": self.origin, "scopes_supported": ["openid", "groups"], **found, **self.discovery}
        if path == "/jwks":
            return 200, {"keys": [json.loads(RSAAlgorithm.to_jwk(KEY.public_key())) | {"kid": "k"}]}
        if path == "/me":
            return 200, {"sub": "ada", **self.userinfo}
        asked = self.codes.pop(sent["code"], None)
        challenge = urlsafe_b64encode(sha256(sent["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != sent["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        right = {"iss": self.origin, "aud": "console", "sub": "ada", "nonce": asked["nonce"], "exp": now + 60}
        claims = {name: value for name, value in (right | self.claims).items() if value is not None}
        signed = jwt.encode(claims, self.key, self.algorithm, headers={"kid": self.kid})
        return self.token_status, {"id_token": signed, "access_token": "at", "token_type": "Bearer"}


@pytest.fixture
async def issuer() -> AsyncIterator[FakeIssuer]:
    issuer = FakeIssuer()

    @route("/{path:path}", http_method=["GET", "POST"])
    async def answer(path: FromPath[str], request: Request[Any, Any, Any]) -> Response[bytes]:
        status, told = issuer.answer(path, dict(parse_qsl((await request.body()).decode())))
        return json_of(told, status)

    async with serve_asgi(application([answer])) as issuer.origin:
        yield issuer


@asynccontextmanager
async def a_console(shop: MemoryShop, issuer: str | None, **fields: Any) -> AsyncIterator[Client]:
    own = (ConsoleSettings(oidc_roles=ROLES),)
    services = services_over(shop.store, replace(SETTINGS, base_url=BASE_URL, own=own, **fields))
    if issuer is not None:
        signs_in = OpenIdIssuer(issuer, "console", "s3cret", "groups", SystemClock())
        services = with_parts(services, own=(replace(services.of(Console), issuer=signs_in),))
    with an_app(services) as app:
        transport = httpx.ASGITransport(cast(Any, app))
        async with httpx.AsyncClient(transport=transport, base_url=BASE_URL) as client:
            yield client


@pytest.fixture
async def shop() -> MemoryShop:
    return await MemoryShop().open()


@pytest.fixture
async def client(shop: MemoryShop, issuer: FakeIssuer) -> AsyncIterator[Client]:
    async with a_console(shop, issuer.origin) as client:
        yield client


async def sign_in(client: Client, issuer: FakeIssuer, home: str = "/console/admin") -> httpx.Response:
    """The whole way: to the issuer, and back with its code."""
    started = await client.get(f"{home}/sign-in/start")
    assert started.status_code == 303, started.text
    code, state = issuer.code_for(started.headers["location"])
    return await client.get(f"{home}/sign-in/back", params={"code": code, "state": state})


@pytest.mark.rule("access.41")
async def test_an_administrator_signs_in_with_the_role_that_the_claim_gives(client: Client, issuer: FakeIssuer) -> None:
    issuer.claims = {"groups": ["staff", "pay-admins"]}
    answer = await sign_in(client, issuer)
    assert (answer.status_code, "Go to the console" in answer.text) == (200, True), answer.text
    session = next(c for c in answer.headers.get_list("set-cookie") if c.startswith("payagg_console_admin="))
    assert ("SameSite=strict" in session, "HttpOnly" in session) == (True, True)
    assert (await client.get("/console/admin/sessions")).status_code == 200
    # Signed in for administrators is not signed in for merchants.
    assert (await client.get("/console/businesses")).headers["location"].startswith("/console/sign-in")


@pytest.mark.rule("access.38")
async def test_a_merchant_signs_in_by_membership_with_an_address_that_the_issuer_verified(
    client: Client, issuer: FakeIssuer
) -> None:
    for userinfo, status in (({}, 403), ({"email_verified": "true"}, 403), ({"email_verified": True}, 200)):
        issuer.userinfo = userinfo
        assert (await sign_in(client, issuer, "/console")).status_code == status
    assert (await client.get("/console")).headers["location"] == "/console/business/biz_1/sandbox"
    issuer.claims, issuer.userinfo = {"sub": "eve"}, {"sub": "eve", "email_verified": True}
    answer = await sign_in(client, issuer, "/console")
    assert (answer.status_code, "You manage no business" in answer.text) == (403, True)


async def test_an_address_makes_the_issuer_answer_so_often_and_no_more(shop: MemoryShop, issuer: FakeIssuer) -> None:
    async with a_console(shop, issuer.origin, unknown_reference_limit=4) as client:
        asked = len(issuer.asked)
        _, state = issuer.code_for((await client.get("/console/sign-in/start")).headers["location"])
        guess = {"code": "a guess", "state": state}
        told = [await client.get("/console/sign-in/back", params=guess) for _ in range(5)]
        assert [one.status_code for one in told] == [403, 403, 403, 429, 429]
        assert "retry-after" in told[-1].headers
        assert issuer.asked[asked:].count("/token") == 3
        assert (await client.get("/console/sign-in/start")).status_code == 429


@pytest.mark.rule("access.41")
@pytest.mark.parametrize("groups", [None, [], ["staff"], "pay", {"pay-admins": 1}, 7])
async def test_nobody_is_an_administrator_without_a_value_that_stands_for_a_role(
    client: Client, issuer: FakeIssuer, groups: Any
) -> None:
    issuer.claims = {"groups": groups}
    answer = await sign_in(client, issuer)
    assert (answer.status_code, "no administrator&#39;s role" in answer.text) == (403, True), answer.text
    assert (await client.get("/console/admin/gateways")).status_code == 303


@pytest.mark.rule("access.40")
@pytest.mark.parametrize(
    "wrong",
    [
        *({"claims": {"nonce": nonce}} for nonce in ("of another sign-in", None)),
        *({"claims": {"aud": audience}} for audience in ("another client", None)),
        *({"claims": {"exp": at}} for at in (1, None)),
        {"claims": {"iss": "https://another.example"}},
        {"claims": {"aud": ["console", "other"], "azp": "other"}},
        {"key": STRANGER},
        {"kid": "unknown"},
        {"key": "the client's secret, 32 bytes or more", "algorithm": "HS256"},
        {"key": None, "algorithm": "none"},
        {"userinfo": {"sub": "somebody else"}},
    ],
    ids=lambda wrong: "-".join(wrong | wrong.get("claims", {})),
)
async def test_an_id_token_that_does_not_hold_signs_nobody_in(
    client: Client, issuer: FakeIssuer, wrong: dict[str, Any]
) -> None:
    issuer.claims |= wrong.get("claims", {})
    for name in wrong.keys() - {"claims"}:
        setattr(issuer, name, wrong[name])
    answer = await sign_in(client, issuer)
    assert (answer.status_code, REFUSED in answer.text) == (403, True), answer.text
    assert (await client.get("/console/admin/gateways")).status_code == 303


@pytest.mark.rule("access.39")
async def test_an_answer_counts_once_and_in_the_browser_that_asked_for_it(
    client: Client, issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, state = issuer.code_for((await client.get("/console/admin/sign-in/start")).headers["location"])
    right = {"code": code, "state": state}
    for query in (right | {"state": state + "x"}, {"code": code}, {}):
        answer = await client.get(BACK, params=query)
        assert (answer.status_code, OUT_OF_DATE in answer.text) == (400, True)
    # Another realm's answer, a browser without the cookie, and one that comes too late.
    assert (await client.get("/console/sign-in/back", params=right)).status_code == 400
    kept = httpx.Cookies(client.cookies)
    client.cookies.clear()
    assert (await client.get(BACK, params=right)).status_code == 400
    client.cookies = kept
    with monkeypatch.context() as patch:
        patch.setattr("payagg.extensions.console.session.now_of", lambda _: int(time.time()) + 601)
        assert OUT_OF_DATE in (await client.get(BACK, params=right)).text
    refused = await client.get(BACK, params={"error": "access_denied", "state": state})
    assert (refused.status_code, REFUSED in refused.text) == (403, True)
    assert (await client.get(BACK, params=right)).status_code == 200
    assert OUT_OF_DATE in (await client.get(BACK, params=right)).text
    client.cookies = kept
    assert REFUSED in (await client.get(BACK, params=right)).text


@pytest.mark.rule("access.12")
async def test_who_is_revoked_by_subject_is_signed_out_at_the_next_request(
    client: Client, issuer: FakeIssuer, shop: MemoryShop
) -> None:
    assert (await sign_in(client, issuer)).status_code == 200
    assert (await client.get("/console/admin/sessions")).status_code == 200
    async with shop.store.begin() as tx:
        now = SystemClock().now()  # ahead of the session's whole second
        await tx.members.revoke(Revocation(RevokedClaim.SUBJECT, "ada", now + timedelta(seconds=1)))
    for page in ("businesses", "sessions"):
        answer = await client.get(f"/console/admin/{page}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/admin/sign-in?ended=1"), page


async def test_an_issuer_that_is_away_is_a_page_that_says_so(issuer: FakeIssuer, shop: MemoryShop) -> None:
    async with a_console(shop, f"http://127.0.0.1:{free_port()}") as client:
        answer = await client.get("/console/admin/sign-in/start")
        assert (answer.status_code, AWAY in answer.text) == (503, True)
    for lies in ({"issuer": "https://another.example"}, {"authorization_endpoint": "javascript:alert(1)"}):
        issuer.discovery = lies
        async with a_console(shop, issuer.origin) as client:
            assert AWAY in (await client.get("/console/admin/sign-in/start")).text
    issuer.discovery, issuer.token_status = {}, 500
    async with a_console(shop, issuer.origin) as client:
        answer = await sign_in(client, issuer)
        assert (answer.status_code, AWAY in answer.text) == (503, True)


@pytest.mark.rule("access.42")
async def test_where_an_issuer_signs_in_a_token_is_taken_in_dev_alone(issuer: FakeIssuer, shop: MemoryShop) -> None:
    for dev, takes in ((True, True), (False, False)):
        async with a_console(shop, issuer.origin, dev=dev) as client:
            shown = (await client.get("/console/admin/sign-in")).text
            assert ("/console/admin/sign-in/start" in shown, 'name="token"' in shown) == (True, takes)
    async with a_console(shop, None) as client:
        assert "/sign-in/start" not in (await client.get("/console/admin/sign-in")).text
        assert (await client.get("/console/admin/sign-in/start")).status_code == 404
