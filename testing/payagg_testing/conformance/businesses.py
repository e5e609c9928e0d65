"""Isolation: what one business or one environment made, the other neither sees nor changes."""

from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, multiple, rule

from payagg_testing.conformance.base import ConformanceMachine
from payagg_testing.conformance.expectation import among, has, lacks
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.statements import LIVE, TWO_OWNERS, tries
from payagg_testing.conformance.target import ENVIRONMENTS

PAYMENTS: Bundle[str] = Bundle("payments")
ENDPOINTS: Bundle[str] = Bundle("endpoints")
MERCHANTS = st.integers(0, 1)
OUTCOMES = st.sampled_from(["SUCCESS", "FAILED"])
LISTS = ("gateways", "api-keys", "webhooks")
REACHES: tuple[tuple[str, str, str, Any], ...] = (
    *(("change", "PATCH", "", {"isActive": False}), ("remove", "DELETE", "", None)),
    *(("test", "POST", "/test", None), ("read the log of", "GET", "/deliveries", None)),
)


@dataclass
class OwnedObject:
    """A payment or an endpoint, and whose it is."""

    merchant: int
    environment: str
    amount: int = 0
    status: str = "INITIATED"
    is_test: bool = False


class BusinessConformance(ConformanceMachine):
    title = "businesses"
    in_passing: ClassVar = {"payments.12": (LIVE,), "payments.26": ()}

    needs = (TWO_OWNERS,)

    def __init__(self) -> None:
        super().__init__()
        self.payments: dict[str, OwnedObject] = {}
        self.endpoints: dict[str, OwnedObject] = {}

    def teardown(self) -> None:
        for id, owned in self.endpoints.items():
            owner = self.merchants[owned.merchant]
            self.target.service.send(ServiceCall("DELETE", f"{owner.path}/webhooks/{id}?permanently=true", owner.token))

    @rule(target=PAYMENTS, merchant=MERCHANTS, environment=st.sampled_from(ENVIRONMENTS), is_test=st.booleans())
    def pay(self, merchant: int, environment: str, is_test: bool) -> Any:
        owner = self.merchants[merchant]
        environment = "SANDBOX" if is_test else environment
        if environment not in owner.keys or (environment == "LIVE" and not self.target.takes_live(owner)):
            return multiple()
        amount = 100 + len(self.payments)
        bearer = owner.token if is_test else owner.keys[environment]
        path = f"{owner.path}/test-payment" if is_test else "/payments/initiate"
        who = f"the dashboard of business {merchant + 1}" if is_test else self.server(merchant, environment)
        data = {"environment": environment, "amount": amount}
        what = f"initiates a payment of {amount} kobo"
        answer = self.ask(who, what, "POST", path, 201, bearer=bearer, body={"amount": amount}, data=data)
        reference: str = answer.data["reference"]
        self.payments[reference] = OwnedObject(merchant, environment, amount, is_test=is_test)
        return reference

    def server(self, merchant: int, environment: str) -> str:
        return f"the server of business {merchant + 1} ({environment})"

    @rule(reference=PAYMENTS, merchant=MERCHANTS, environment=st.sampled_from(ENVIRONMENTS))
    @tries("payments.13")
    def read(self, reference: str, merchant: int, environment: str) -> None:
        """With any of the four keys: one may."""
        owned, key = self.payments[reference], self.merchants[merchant].keys.get(environment)
        if key is None:
            return
        is_own = (merchant, environment) == (owned.merchant, owned.environment)
        self.tried.update(["payments.12"] if environment != owned.environment == "LIVE" else [])
        who, path, what = self.server(merchant, environment), f"/payments/{reference}", "reads"
        if is_own:
            self.ask(who, what, "GET", path, 200, bearer=key, data={"amount": owned.amount, "status": owned.status})
        else:
            self.ask(who, f"{what} what is not its own", "GET", path, 404, bearer=key, code="PAYMENT_NOT_FOUND")

    @rule(reference=PAYMENTS, merchant=MERCHANTS, environment=st.sampled_from(ENVIRONMENTS), outcome=OUTCOMES)
    def simulate(self, reference: str, merchant: int, environment: str, outcome: str) -> None:
        owned, key = self.payments[reference], self.merchants[merchant].keys.get(environment)
        if key is None:
            return
        code: str | None = None
        status = 200
        if environment == "LIVE":
            status, code = 403, "SANDBOX_ONLY"
        elif (merchant, environment) != (owned.merchant, owned.environment):
            status, code = 404, "PAYMENT_NOT_FOUND"
        elif owned.status != "INITIATED":
            status, code = 409, "PAYMENT_ALREADY_FINAL"
        else:
            owned.status = outcome
        who, path, what = self.server(merchant, environment), f"/payments/{reference}/simulate", f"simulates {outcome}"
        self.ask(who, what, "POST", path, status, bearer=key, body={"outcome": outcome}, code=code)
        self.read(reference, owned.merchant, owned.environment)

    @rule(reference=PAYMENTS, merchant=MERCHANTS)
    def read_on_the_dashboard(self, reference: str, merchant: int) -> None:
        owned, owner = self.payments[reference], self.merchants[merchant]
        is_own = (merchant, "SANDBOX") == (owned.merchant, owned.environment)
        if is_own and not owned.is_test:
            return  # whether the dashboard shows a server's sandbox payment, the interface leaves open
        status, code = (200, None) if is_own else (404, "PAYMENT_NOT_FOUND")
        who, path = f"the dashboard of business {merchant + 1}", f"{owner.path}/test-payment/{reference}"
        data = {"amount": owned.amount, "status": owned.status} if code is None else None
        self.ask(who, "reads a payment", "GET", path, status, bearer=owner.token, code=code, data=data)

    @rule(reference=PAYMENTS, merchant=MERCHANTS, outcome=OUTCOMES)
    def simulate_on_the_dashboard(self, reference: str, merchant: int, outcome: str) -> None:
        """The business's own test payment alone; its manager needs no key for it."""
        owned, owner = self.payments[reference], self.merchants[merchant]
        is_own = (merchant, "SANDBOX") == (owned.merchant, owned.environment)
        if is_own and not owned.is_test:
            return
        status, code, data = 200, None, {"status": outcome, "gateway": among(None, "sandbox")}
        if not is_own:
            status, code, data = 404, "PAYMENT_NOT_FOUND", {}
        elif owned.status != "INITIATED":
            status, code, data = 409, "PAYMENT_ALREADY_FINAL", {}
        else:
            owned.status = outcome
            self.tried.add("payments.26")
        who, path = f"the dashboard of business {merchant + 1}", f"{owner.path}/test-payment/{reference}/simulate"
        body, what = {"outcome": outcome}, f"simulates {outcome}"
        self.ask(who, what, "POST", path, status, bearer=owner.token, body=body, code=code, data=data)
        self.read(reference, owned.merchant, owned.environment)

    @rule(target=ENDPOINTS, merchant=MERCHANTS, environment=st.sampled_from(ENVIRONMENTS))
    def add_endpoint(self, merchant: int, environment: str) -> Any:
        if sum(owned.merchant == merchant for owned in self.endpoints.values()) >= 2:
            return multiple()  # the limit is the webhook machine's
        body = {"url": f"https://shop-{self.nonce}.example/hooks", "environment": environment}
        what, data = f"adds a {environment} endpoint", {"environment": environment, "isActive": True}
        answer = self.ask_as_owner(merchant, what, "POST", "/webhooks", 201, body=body, data=data)
        self.endpoints[answer.data["id"]] = OwnedObject(merchant, environment)
        id: str = answer.data["id"]
        return id

    @rule(id=ENDPOINTS)
    def touch_the_endpoint_of_another(self, id: str) -> None:
        owned = self.endpoints[id]
        stranger = 1 - owned.merchant
        for verb, method, path, body in REACHES:
            what = f"tries to {verb} the endpoint of the other business"
            limited = (429,) if path == "/test" else ()
            self.ask_as_owner(stranger, what, method, f"/webhooks/{id}{path}", 404, *limited, body=body)
        for merchant in (0, 1):
            mine = [each for each, owned in self.endpoints.items() if owned.merchant == merchant]
            others = [each for each, owned in self.endpoints.items() if owned.merchant != merchant]
            data = {"[*].id": (has(*mine), lacks(*others))}
            self.ask_as_owner(merchant, "lists the endpoints", "GET", "/webhooks", 200, data=data)
        still = {f"[id={id}].isActive": True}
        self.ask_as_owner(owned.merchant, "lists the endpoints", "GET", "/webhooks", 200, data=still)

    @rule(merchant=MERCHANTS, what=st.sampled_from(LISTS))
    @tries("access.3", "access.19", "access.20")
    def knock(self, merchant: int, what: str) -> None:
        """At a business's routes: without a token, with nonsense, with another realm's, with another manager's."""
        owner, stranger = self.merchants[merchant], self.merchants[1 - merchant]
        path = f"{owner.path}/{what}"
        self.ask("a stranger", f"lists the {what} without a token", "GET", path, 401)
        self.ask("a stranger", f"lists the {what}", "GET", path, 401, bearer="not.a.token")
        if self.target.admin_token is not None:
            self.ask("the administrator", f"lists the {what}", "GET", path, 403, bearer=self.target.admin_token)
        if stranger.token != owner.token:
            who = f"owner {2 - merchant}"
            self.ask(who, f"lists the other's {what}", "GET", path, 403, bearer=stranger.token)
        self.ask_as_owner(merchant, f"lists the {what}", "GET", f"/{what}", 200)

    @rule(merchant=MERCHANTS)
    def knock_at_administration(self, merchant: int) -> None:
        token, path = self.merchants[merchant].token, "/admin/gateways"
        self.ask("a stranger", "lists the gateways", "GET", path, 401)
        self.ask(f"owner {merchant + 1}", "lists the gateways as if an administrator", "GET", path, 403, bearer=token)
