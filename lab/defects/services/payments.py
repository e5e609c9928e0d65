"""A payment aggregator written from interface.md by somebody who never saw the product: plain Python, one process.

Some of its parts are methods on purpose: each broken service is this one with a method written wrongly.
"""

import re
from collections.abc import Callable
from datetime import timedelta

from lab.defects.services.http import Refused, Reply, Row, bad
from lab.defects.services.providers import HandProviders

HOUR = timedelta(hours=1)
FINAL = ("SUCCESS", "FAILED", "REVERSED")
CARDS = {
    "4242424242424242": "SUCCESS",
    "4000000000000002": "FAILED",
    "4000000000000259": "REVERSED",
    "4000000000000119": "PENDING",
}


class Handmade(HandProviders):
    """Payments."""

    def table(self) -> list[tuple[str, str, Callable[..., Reply]]]:
        business = "/merchant/businesses/{}"
        return [
            *super().table(),
            ("POST", "/payments/initiate", self.initiate),
            ("GET", "/payments/{}", self.read),
            ("POST", "/payments/{}/simulate", self.simulate),
            ("GET", "/public/payments/{}", self.public),
            ("GET", "/public/payments/{}/gateways", self.options),
            ("POST", "/public/payments/{}/process", self.process),
            ("GET", "/public/payments/{}/verify", self.verify),
            ("POST", f"{business}/test-payment", self.test_payment),
            ("GET", f"{business}/test-payment/{{}}", self.read_test_payment),
        ]

    def initiate(self) -> Reply:
        key = self.key()
        return self.begin(key["business"], key["environment"], False)

    def test_payment(self, business: str) -> Reply:
        return self.begin(business, "SANDBOX", True)

    def begin(self, business: str, environment: str, is_test: bool) -> Reply:
        body = self.body
        self.check_payment(body)
        slot = self.slot(business, environment, body.get("idempotencyKey"))
        original = self.payments.get(self.by_key.get(slot, "")) if body.get("idempotencyKey") else None
        if original is not None:
            return self.replay(original)
        self.check_gateway(business, environment, body.get("gateway"))
        reference = f"HND-{self.now:%Y%m%d}-{next(self.numbers):06d}"
        payment = {"reference": reference, "amount": body["amount"], "currency": "NGN", "environment": environment}
        payment |= {"status": "INITIATED", "checkoutUrl": f"https://pay.example/{reference}"}
        payment |= {"expiresAt": self.stamp(self.now + HOUR)}
        hidden = {"business": business, "began": self.now, "gateway": None, "card": None, "isTest": is_test}
        self.payments[reference] = payment | hidden | {"callbackUrl": body.get("callbackUrl"), "handOff": None}
        self.payments[reference]["customerEmail"] = body.get("customerEmail")
        if body.get("idempotencyKey"):
            self.by_key[slot] = reference
        return 201, payment

    def check_payment(self, body: Row) -> None:
        if type(body.get("amount")) is not int or body["amount"] < 100:
            raise bad("amount")
        if body.get("currency", "NGN") != "NGN":
            raise bad("currency")
        for name, pattern in (("callbackUrl", r"https?://[^/\s]+.*"), ("webhookUrl", r"https://[^/\s]+.*")):
            if body.get(name) is not None and not re.fullmatch(pattern, body[name]):
                raise bad(name)
        if len(body.get("metadata") or {}) > 50:
            raise bad("metadata")

    def slot(self, business: str, environment: str, key: str | None) -> object:
        return business, environment, key

    def replay(self, original: Row) -> Reply:
        if self.status_of(original) in FINAL:
            raise Refused(409, "DUPLICATE_PAYMENT")
        names = ("reference", "amount", "currency", "environment", "status", "checkoutUrl", "expiresAt")
        return 200, {name: original[name] for name in names}

    def check_gateway(self, business: str, environment: str, slug: str | None) -> None:
        if slug is None:
            return
        gateway = next((g for g in self.gateways.values() if g["slug"] == slug and self.state(g) == "ACTIVE"), None)
        if gateway is None and not (slug == "sandbox" and environment == "SANDBOX"):
            raise Refused(400, "GATEWAY_NOT_FOUND")
        if gateway is not None and not self.is_on(business, gateway["id"]):
            raise Refused(400, "GATEWAY_DISABLED")

    def status_of(self, payment: Row) -> str:
        is_over = payment["status"] == "INITIATED" and self.now >= payment["began"] + HOUR
        return "FAILED" if is_over else str(payment["status"])

    def find(self, reference: str) -> Row:
        if not re.fullmatch(r"[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}", reference):
            raise Refused(400, "INVALID_REFERENCE")
        if reference not in self.payments:
            raise Refused(404, "PAYMENT_NOT_FOUND")
        return self.payments[reference]

    def own(self, reference: str, business: str, environment: str) -> Row:
        payment = self.find(reference)
        if (payment["business"], payment["environment"]) != (business, environment):
            raise Refused(404, "PAYMENT_NOT_FOUND")
        return payment

    def detail(self, payment: Row) -> Row:
        names = ("reference", "amount", "currency", "gateway", "environment")
        return {name: payment[name] for name in names} | {"status": self.status_of(payment)}

    def read(self, reference: str) -> Reply:
        key = self.key()
        return 200, self.detail(self.own(reference, key["business"], key["environment"]))

    def read_test_payment(self, business: str, reference: str) -> Reply:
        return 200, self.detail(self.own(reference, business, "SANDBOX"))

    def simulate(self, reference: str) -> Reply:
        key = self.key()
        if key["environment"] == "LIVE":
            raise Refused(403, "SANDBOX_ONLY")
        if self.body.get("outcome") not in FINAL:
            raise bad("outcome")
        payment = self.own(reference, key["business"], "SANDBOX")
        if self.status_of(payment) in FINAL:
            raise Refused(409, "PAYMENT_ALREADY_FINAL")
        self.move(payment, self.body["outcome"])
        return 200, self.detail(payment)

    def move(self, payment: Row, status: str) -> None:
        if payment["status"] not in FINAL:
            payment["status"] = status
            self.tell(payment)

    def public(self, reference: str) -> Reply:
        payment = self.find(reference)
        return 200, {n: payment[n] for n in ("reference", "amount", "currency")} | {"status": self.status_of(payment)}

    def options(self, reference: str) -> Reply:
        payment, listed = self.find(reference), []
        for gateway in self.gateways.values():
            if self.state(gateway) == "ACTIVE" and self.is_on(payment["business"], gateway["id"]):
                listed.append({"slug": gateway["slug"], "available": gateway["hasCredentials"]})
        if payment["environment"] == "SANDBOX":
            listed.append({"slug": "sandbox", "available": True})
        return 200, {"gateways": listed}

    def process(self, reference: str) -> Reply:
        payment = self.find(reference)
        if payment["status"] in FINAL:
            raise Refused(409, "PAYMENT_ALREADY_PROCESSED")
        if self.now >= payment["began"] + HOUR:
            raise Refused(410, "PAYMENT_EXPIRED")
        if payment["handOff"] is None:
            self.hand_off(payment, self.body.get("gatewaySlug", ""))
        return 200, {"checkoutUrl": payment["handOff"], "status": payment["status"]}

    def hand_off(self, payment: Row, slug: str) -> None:
        if slug == "sandbox":
            if payment["environment"] != "SANDBOX":
                raise Refused(400, "GATEWAY_NOT_AVAILABLE")
            if self.body.get("cardNumber") not in CARDS:
                raise bad("cardNumber")
            payment |= {"card": self.body["cardNumber"], "handOff": payment["checkoutUrl"]}
        else:
            payment["handOff"] = self.charge(payment, slug)
        payment["gateway"] = slug
        self.move(payment, "PENDING")

    def verify(self, reference: str) -> Reply:
        payment = self.find(reference)
        if payment["status"] == "PENDING":
            if payment["card"] is not None:
                found = CARDS[payment["card"]]
                if found != "PENDING":
                    self.move(payment, found)
            else:
                self.ask_provider(payment)
        names = ("reference", "amount", "currency", "callbackUrl")
        return 200, {name: payment[name] for name in names} | {"status": self.status_of(payment)}

    def told(self, payment: Row) -> Row:
        return self.detail(payment)
