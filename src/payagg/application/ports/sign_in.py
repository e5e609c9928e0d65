"""The port of an OpenID Connect issuer, for the console's sign-in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


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


class SignInIssuer(Protocol):
    @property
    def host(self) -> str:
        """The issuer's name for people."""

    async def page(self, flow: SignInFlow, redirect_uri: str) -> str:
        """Where the browser goes to sign in; raises IssuerAway."""

    async def claims(self, code: str, flow: SignInFlow, redirect_uri: str) -> Mapping[str, Any]:
        """The claims of the user, with a text `sub`; raises IssuerAway or SignInRefused."""
