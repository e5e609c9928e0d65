"""What the console needs of whoever signs people in: an OpenID Connect issuer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class IssuerAway(Exception):
    """The issuer cannot be reached, or answers otherwise than the protocol says; its words name no content."""


class SignInRefused(Exception):
    """The issuer refuses the sign-in, or its ID token does not hold."""


@dataclass(frozen=True)
class SignInFlow:
    """What binds an answer of the issuer to the browser that asked: drawn for one sign-in, 43 or more characters of
    `verifier` (RFC 7636, 4.1)."""

    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class SignInIssuer(Protocol):
    @property
    def host(self) -> str:
        """Its name for people."""

    async def page(self, flow: SignInFlow, redirect_uri: str) -> str:
        """Where the browser goes to sign in; raises IssuerAway."""

    async def claims(self, code: str, flow: SignInFlow, redirect_uri: str) -> Mapping[str, Any]:
        """What the issuer says of who signed in, a text `sub` among it; raises IssuerAway or SignInRefused."""
