"""What a conformance run is given: a service, who may do what there, and where it can reach us."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from payagg_testing.conformance.inbox import Inbox
from payagg_testing.conformance.provider import PlayedProvider, ProviderAccount, ProviderBAccount
from payagg_testing.conformance.service import Driver, ServiceAnswer, ServiceCall

ENVIRONMENTS = ("SANDBOX", "LIVE")


@dataclass(frozen=True)
class MerchantAccess:
    """A business of the harness's own, with the bearer token of a manager, its secret keys, or both."""

    business_id: str = ""
    token: str | None = field(default=None, repr=False)
    keys: dict[str, str] = field(default_factory=dict, repr=False)  # by environment

    @property
    def path(self) -> str:
        return f"/merchant/businesses/{self.business_id}"


@dataclass
class ConformanceTarget:
    """A service under test. Everything but the service may be missing: then what needs it is skipped, and says so."""

    service: Driver
    merchants: tuple[MerchantAccess, ...] = ()
    admin_token: str | None = field(default=None, repr=False)
    unapproved: MerchantAccess | None = None  # of a business before its KYC
    suspended: MerchantAccess | None = None  # of a business that is not active
    builtin_slug: str = "builtin"
    inbox: Inbox | None = None
    provider: ProviderAccount | None = None
    provider_b: ProviderBAccount | None = None
    closing: Callable[[], None] | None = None  # what is left to be closed after everything else
    left_behind: list[str] = field(default_factory=list)  # what a run could not take back
    words: Mapping[str, str] = field(default_factory=dict)  # the service's own for our outcomes and test cards
    rotates_secrets: bool | None = None  # of webhook endpoints; None: not known yet
    sorts_options: bool = False  # whether a list of options was seen to follow the order that its business chose
    _takes_live: bool = False
    _has_providers: bool = False

    def with_keys(self) -> None:
        """Gives every merchant with a token the secret keys that it lacks; they stay for the whole run."""
        self.merchants = tuple(self._with_keys(merchant) for merchant in self.merchants)

    def _with_keys(self, merchant: MerchantAccess) -> MerchantAccess:
        keys = dict(merchant.keys)
        for environment in ENVIRONMENTS:
            if environment not in keys and merchant.token is not None:
                body = {"environment": environment, "name": "conformance run"}
                made = self.service.send(ServiceCall("POST", f"{merchant.path}/api-keys", merchant.token, body))
                if made.status == 201:
                    keys[environment] = made.data["secretKey"]
        return replace(merchant, keys=keys)

    def takes_live(self, merchant: MerchantAccess) -> bool:
        """Whether LIVE payments can be initiated: a deployment without a usable gateway answers 503. A "no" is asked
        again, as an account may have come since."""
        key = merchant.keys.get("LIVE")
        if not self._takes_live and key is not None:
            asked = self.service.send(ServiceCall("POST", "/payments/initiate", key, {"amount": 100}))
            self._takes_live = asked.status == 201
        return self._takes_live

    def with_providers(self) -> None:
        """Gives the providers that the harness plays their gateways and accounts, so that LIVE payments are tried by
        every machine. What a service refuses of it, the settlement machines find out."""
        if self._has_providers or self.admin_token is None:
            return
        self._has_providers = True
        for provider in (self.provider, self.provider_b):
            if provider is not None:
                self._set_up(provider)

    def _set_up(self, provider: PlayedProvider) -> None:
        own = provider.slug
        rows = self._administer("GET", "").data or []
        row = next((row for row in rows if row["slug"] == own), None)
        if row is None:
            row = self._administer("POST", "", {"slug": own, "name": "Played by the harness"}).data or {}
        self.left_behind.append(f"a fake account of {own}: store yours again")
        path = f"/{row.get('id')}"
        self._administer("PATCH", f"{path}/credentials", {"credentials": provider.credentials})
        if row.get("status") != "ACTIVE":
            self._administer("POST", f"{path}/enable")

    def _administer(self, method: str, path: str, body: Any = None) -> ServiceAnswer:
        return self.service.send(ServiceCall(method, f"/admin/gateways{path}", self.admin_token, body))

    def close(self) -> None:
        self._revoke()
        self.service.close()
        for part in (self.inbox, self.provider, self.provider_b):
            if part is not None:
                part.close()
        if self.closing is not None:
            self.closing()

    def _revoke(self) -> None:
        """The keys that `with_keys` made, and any that an interrupted run left."""
        for merchant in self.merchants:
            if merchant.token is None:
                continue
            listed = self.service.send(ServiceCall("GET", f"{merchant.path}/api-keys", merchant.token))
            groups: dict[str, list[dict[str, Any]]] = listed.data or {}
            for record in [record for group in groups.values() for record in group]:
                if record["name"] == "conformance run" and record["status"] == "ACTIVE":
                    self.service.send(ServiceCall("DELETE", f"{merchant.path}/api-keys/{record['id']}", merchant.token))
