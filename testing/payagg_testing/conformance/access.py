"""A target from what a command line can say: a URL, tokens, keys."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from payagg_testing.conformance.inbox import Inbox
from payagg_testing.conformance.provider import ProviderAccount, ProviderBAccount
from payagg_testing.conformance.service import Service, ServiceCall
from payagg_testing.conformance.target import ConformanceTarget, MerchantAccess

BUSINESSES = 2  # what isolation takes
# Options of the command and the pytest plugin, by the fields of ServiceAccess; what argparse is given of each.
_LIST = {"action": "append", "default": []}
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "url": ("url", {"help": "the base URL, with /api/v1; a test deployment, never production"}),
    "admin_token": ("admin-token", {"help": "for gateways, and to make businesses for the run"}),
    "merchant_tokens": ("merchant-token", {**_LIST, "help": "of a manager; twice for two users"}),
    "businesses": ("business", {**_LIST, "help": "the id that goes with each merchant token"}),
    "sandbox_key": ("sandbox-key", {"help": "without a merchant token"}),
    "live_key": ("live-key", {"help": "the same for LIVE; the run pays nothing with it"}),
    "builtin_slug": ("builtin-slug", {"default": "builtin", "help": "the built-in gateway's slug (builtin)"}),
    "inbox_port": ("inbox-port", {"type": int, "help": "receive webhooks on this loopback port (0: any)"}),
    "inbox_url": ("inbox-url", {"help": "the address under which the service reaches that port"}),
    "provider": ("provider", {"help": "the slug of a provider to play: its account is REPLACED by a fake one"}),
    "provider_b": ("provider-b", {"help": "the same for provider_b, which has another protocol"}),
}


class AccessError(Exception):
    """What was given does not open the service; the text is for whoever gave it."""


@dataclass(frozen=True)
class ServiceAccess:
    """How to reach a service. Each of `merchant_tokens` goes with the business of the same place in `businesses`; those
    left over get fresh businesses, which takes the administrator's token and payagg's own `POST /admin/businesses`.
    """

    url: str
    admin_token: str | None = field(default=None, repr=False)
    merchant_tokens: Sequence[str] = field(default=(), repr=False)
    businesses: Sequence[str] = ()
    sandbox_key: str | None = field(default=None, repr=False)
    live_key: str | None = field(default=None, repr=False)
    builtin_slug: str = "builtin"
    inbox_port: int | None = None
    inbox_url: str | None = None
    provider: str | None = None
    provider_b: str | None = None
    made: list[str] = field(default_factory=list)  # businesses of this run

    @classmethod
    def of(cls, option: Callable[[str], Any]) -> "ServiceAccess":
        """`option` gives the value of each of OPTIONS."""
        return cls(**{field: option(name) for field, (name, _) in OPTIONS.items()})

    def open_target(self) -> ConformanceTarget:
        """Raises AccessError, or httpx.TransportError when nobody answers."""
        service = Service(self.url)
        inbox = Inbox.serve(port=self.inbox_port or 0, url=self.inbox_url) if self.inbox_port is not None else None
        target = ConformanceTarget(
            service,
            (),
            self.admin_token,
            builtin_slug=self.builtin_slug,
            inbox=inbox,
            provider=ProviderAccount(self.provider) if self.provider is not None else None,
            provider_b=ProviderBAccount(self.provider_b) if self.provider_b is not None else None,
        )
        try:
            target.merchants = self._merchants(service)
            if self.merchant_tokens and not self.businesses:
                token = self.merchant_tokens[0]
                target.unapproved = MerchantAccess(self._fresh_business(service, token, kyc="NOT_SUBMITTED"), token)
                target.suspended = MerchantAccess(self._fresh_business(service, token, status="SUSPENDED"), token)
        except BaseException:
            target.close()
            raise
        if self.made:
            target.left_behind.append(f"{len(self.made)} businesses called Conformance run")
        return target

    def _merchants(self, service: Service) -> tuple[MerchantAccess, ...]:
        tokens, businesses = list(self.merchant_tokens), list(self.businesses)
        if tokens and not businesses:
            # One user may manage both; the checks that take two users are then left out.
            tokens = (tokens * BUSINESSES)[: max(BUSINESSES, len(tokens))]
        businesses += [self._fresh_business(service, token) for token in tokens[len(businesses) :]]
        given = {"SANDBOX": self.sandbox_key, "LIVE": self.live_key}
        keys = {environment: key for environment, key in given.items() if key is not None}
        if keys and not tokens:
            return (MerchantAccess(keys=keys),)
        return tuple(
            MerchantAccess(business, token, keys if not place else {})
            for place, (business, token) in enumerate(zip(businesses, tokens, strict=True))
        )

    def _fresh_business(self, service: Service, token: str, kyc: str = "APPROVED", status: str = "ACTIVE") -> str:
        if self.admin_token is None:
            raise AccessError("a merchant's token needs its --business, or --admin-token to make one")
        body = {"name": "Conformance run", "owner": subject_of(token), "kycStatus": kyc, "status": status}
        made = service.send(ServiceCall("POST", "/admin/businesses", self.admin_token, body))
        if made.status != 201:
            raise AccessError(f"no business could be made ({made.status} {made.code}); name yours with --business")
        id: str = made.data["id"]
        self.made.append(id)
        return id


def subject_of(token: str) -> str:
    """The `sub` of a JWT, which the service will check; raises AccessError for what is none."""
    try:
        claims = token.split(".")[1]
        subject: str = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]
    except (IndexError, KeyError, ValueError):
        raise AccessError("the merchant's token is not a JWT with a subject") from None
    return subject
