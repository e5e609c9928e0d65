"""An OpenID Connect issuer: discovery, and the authorization code flow with PKCE (OpenID Connect Core 1.0, 3.1).

No library: Authlib and httpx-oauth bring their own HTTP client, and ours has the deadline and the size cap; keys and
tokens are read as the API's are.
"""

import hmac
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from payagg.adapters.jwks import FETCH_SECONDS, FRESH_SECONDS, KeySet
from payagg.adapters.providers.transport import Transport, decode_body
from payagg.adapters.security import Tokens
from payagg.application.ports.outside import Clock
from payagg.domain.errors import Refusal
from payagg.domain.report import ProviderFault
from payagg.domain.values import parse_url

BASIC = "client_secret_basic"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
T = TypeVar("T")


class IssuerAway(Exception):
    """The issuer cannot be reached, or breaks the protocol; the message holds none of its content."""


class SignInRefused(Exception):
    """The issuer refuses the sign-in, or its ID token is invalid."""


@dataclass(frozen=True)
class SignInFlow:
    """Binds the issuer's answer to the browser that began the sign-in: drawn for one sign-in, `verifier` of 43 or more
    characters (RFC 7636, 4.1)."""

    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class Discovery(msgspec.Struct, frozen=True):
    """The part of OpenID Connect Discovery 1.0, 3, used here."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    scopes_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = (BASIC,)


class IssuedTokens(msgspec.Struct, frozen=True):
    id_token: str
    access_token: str


@dataclass
class OpenIdIssuer:
    """`role_claim` is also requested as a scope if the issuer lists that scope. Without a `secret` the client is
    public, protected by PKCE."""

    issuer: str
    client_id: str
    secret: str | None = field(repr=False)
    role_claim: str | None
    clock: Clock
    _known: tuple[datetime, Discovery] | None = field(default=None, init=False, repr=False)

    @property
    def host(self) -> str:
        """The issuer's name for people."""
        return urlsplit(self.issuer).netloc

    async def page(self, flow: SignInFlow, redirect_uri: str) -> str:
        """Where the browser goes to sign in; raises IssuerAway."""
        found = await self._discover()
        challenge = urlsafe_b64encode(sha256(flow.verifier.encode()).digest()).rstrip(b"=")
        scopes = ["openid", "email", *(one for one in found.scopes_supported if one == self.role_claim)]
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(scopes),
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": challenge.decode(),
            "code_challenge_method": "S256",
        }
        address = self._safe(found.authorization_endpoint)
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"

    async def claims(self, code: str, flow: SignInFlow, redirect_uri: str) -> Mapping[str, Any]:
        """The claims of the ID token, with a text `sub`, completed from the userinfo endpoint: a strict issuer gives
        e-mail and roles only there (5.4). Raises IssuerAway or SignInRefused."""
        found = await self._discover()
        issued = await self._exchange(found, code, flow, redirect_uri)
        claims = await self._verify(found, issued.id_token, flow.nonce)
        if found.userinfo_endpoint is None:
            return claims
        bearer = {"Authorization": f"Bearer {issued.access_token}"}
        more = await self._request("GET", found.userinfo_endpoint, dict[str, Any], bearer)
        if more.get("sub") != claims["sub"]:
            raise SignInRefused("userinfo is of somebody else")
        return more | claims

    async def _exchange(self, found: Discovery, code: str, flow: SignInFlow, redirect_uri: str) -> IssuedTokens:
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": flow.verifier,
        }
        headers = dict(FORM)
        if self.secret is not None and BASIC in found.token_endpoint_auth_methods_supported:
            pair = f"{quote(self.client_id, safe='')}:{quote(self.secret, safe='')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            body |= {"client_id": self.client_id} | ({"client_secret": self.secret} if self.secret is not None else {})
        return await self._request("POST", found.token_endpoint, IssuedTokens, headers, urlencode(body).encode())

    async def _verify(self, found: Discovery, id_token: str, nonce: str) -> dict[str, Any]:
        """The keys are fetched for each sign-in, as the issuer may have just rotated them."""
        keys = KeySet(self._safe(found.jwks_uri))
        try:
            await keys.load()
        except ValueError as error:
            raise IssuerAway(f"the key set {error}") from None
        tokens = Tokens(None, "RS256", keys=keys, issuer=self.issuer, audience=self.client_id, clock=self.clock)
        try:
            claims = tokens.read(id_token)
        except Refusal:
            raise SignInRefused("the ID token does not hold") from None
        if not hmac.compare_digest(str(claims.get("nonce")).encode(), nonce.encode()):
            raise SignInRefused("the ID token is of another sign-in")
        if claims.get("azp", self.client_id) != self.client_id:
            raise SignInRefused("the ID token is of another client")
        return claims

    async def _discover(self) -> Discovery:
        now = self.clock.now()
        if self._known is None or now - self._known[0] >= timedelta(seconds=FRESH_SECONDS):
            url = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
            found = await self._request("GET", url, Discovery, {})
            if found.issuer != self.issuer:
                raise IssuerAway("its configuration is of another issuer")
            self._known = now, found
        return self._known[1]

    async def _request(
        self, method: str, url: str, kind: type[T], headers: Mapping[str, str], body: bytes | None = None
    ) -> T:
        try:
            answer = await Transport(deadline=FETCH_SECONDS).exchange(
                method, self._safe(url), {"Accept": "application/json", **headers}, body
            )
            if answer.status == 200:
                return decode_body(answer.body, kind)
        except ProviderFault as fault:
            raise IssuerAway(fault.kind.value) from None
        if body is None or answer.status >= 500:
            raise IssuerAway(f"status {answer.status}")
        raise SignInRefused(f"status {answer.status}")

    def _safe(self, url: str) -> str:
        """Raises IssuerAway for an endpoint without TLS, or an invalid address."""
        try:
            parse_url(url, "url", ("http", "https"))
        except Refusal:
            raise IssuerAway("one of its endpoints is no web address") from None
        if not url.startswith("https://") and self.issuer.startswith("https://"):
            raise IssuerAway("one of its endpoints is not https")
        return url
