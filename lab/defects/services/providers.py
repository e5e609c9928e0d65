"""Charges at both providers, of the service written by hand, and what the providers tell it."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx

from lab.defects.services.http import Refused, Reply, Row, bad
from lab.defects.services.logos import HandLogos

SECRET = {"provider_a": "WebhookSecret", "provider_b": "SigningSecret"}
QUERY = "/merchant-collection/transfer_notification_controller/merchant/transaction-query"


class HandProviders(HandLogos):
    client = httpx.Client(verify=False, trust_env=False)

    def table(self) -> list[tuple[str, str, Callable[..., Reply]]]:
        return [
            *super().table(),
            ("POST", "/webhooks/{}/{}", self.inbound),
            ("POST", "/webhooks/{}", self.inbound_by_alias),
        ]

    def account(self, slug: str) -> Row:
        return next((g["credentials"] for g in self.gateways.values() if g["slug"] == slug), {})

    def store_credentials(self, id: str) -> Reply:
        """Replaced signing secrets prove events for a day more."""
        gateway, before = self.gateway(id), {}
        if gateway["slug"] in SECRET:
            before = {one: self.secret(gateway["slug"], one) for one in ("sandbox", "live")}
        answer = super().store_credentials(id)
        for environment, secret in before.items():
            if secret and secret != self.secret(gateway["slug"], environment):
                kept = gateway.setdefault("replaced", [])
                kept.append((environment, secret, self.now + timedelta(hours=24)))
        return answer

    def secret(self, slug: str, environment: str) -> str:
        account = self.account(slug)
        return str(account.get(environment + SECRET[slug]) or account.get(f"{environment}SecretKey", ""))

    def replaced(self, slug: str, environment: str) -> list[str]:
        kept = [one for g in self.gateways.values() if g["slug"] == slug for one in g.get("replaced", [])]
        return [secret for where, secret, until in kept if where == environment and self.now < until]

    def charge(self, payment: Row, slug: str) -> str:
        return self.launch(payment) if slug == "provider_b" else self.redirect(payment)

    def redirect(self, payment: Row) -> str:
        body = {"reference": payment["reference"], "amount": payment["amount"], "email": "payer@example.com"}
        data = self.provider_call("POST", "/transaction/initialize", payment, json=body).get("data") or {}
        return str(data.get("authorization_url", "https://pay.example/again"))

    def launch(self, payment: Row) -> str:
        account, environment = self.account("provider_b"), payment["environment"].lower()
        parameters = {
            "merchant_key": account[f"{environment}PublicKey"],
            "connection_mode": "Test" if environment == "sandbox" else "Live",
            "checkout_amount": self.naira(payment["amount"]),
            "email_address": "payer@example.com",
            "first_name": "A",
            "last_name": "Payer",
            "transaction_reference": payment["reference"],
        }
        encoded = base64.urlsafe_b64encode(json.dumps(parameters).encode()).rstrip(b"=").decode()
        return f"https://pay.example/launch#{encoded}"

    def naira(self, kobo: int) -> float:
        return float(Decimal(kobo) / 100)

    def provider_call(self, method: str, path: str, payment: Row, **more: Any) -> Row:
        account, prefix = self.account(payment["gateway"] or "provider_a"), payment["environment"].lower()
        if f"{prefix}BaseUrl" not in account:
            raise Refused(400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED")
        token = f"Bearer {account.get(f'{prefix}SecretKey')}"
        if payment["gateway"] == "provider_b":
            token = "Payaza " + base64.b64encode(account[f"{prefix}PublicKey"].encode()).decode()
        url = account[f"{prefix}BaseUrl"] + path
        answer: Row = self.client.request(method, url, headers={"Authorization": token}, **more).json()
        return answer

    def ask_provider(self, payment: Row) -> None:
        reference = payment["reference"]
        if payment["gateway"] == "provider_b":
            data = self.provider_call("GET", f"{QUERY}?merchant_reference={reference}", payment).get("data")
            told = self.told_by_b(data["transaction_status"], data["amount_received"]) if data else {"status": "open"}
        else:
            told = self.provider_call("GET", f"/transaction/verify/{reference}", payment)["data"]
        self.settle(payment, told)
        if payment.pop("mismatch", False):
            raise Refused(502, "PAYMENT_AMOUNT_MISMATCH")

    def told_by_b(self, status: str, naira: Any) -> Row:
        """In the other provider's words."""
        return {"status": "success" if status == "Completed" else "open", "amount": int(Decimal(str(naira)) * 100)}

    def inbound_by_alias(self, slug: str) -> Reply:
        return self.inbound(slug, "live")

    def inbound(self, slug: str, environment: str) -> Reply:
        believed = [self.secret(slug, environment), *self.replaced(slug, environment)]
        if not any(self.is_genuine(slug, one) for one in believed):
            raise Refused(400, "INVALID_WEBHOOK_SIGNATURE")
        try:
            event = json.loads(self.content)
        except ValueError:
            if slug == "provider_a":
                raise bad("body") from None
            return 200, {}
        told = event.get("data") or self.told_by_b(event["status"], event["amount_received"])
        payment = self.payments.get(str(event.get("merchant_reference") or told.get("reference")))
        if payment is not None and payment["environment"].lower() == environment:
            self.settle(payment, told)
            payment.pop("mismatch", None)
        return 200, {}

    def is_genuine(self, slug: str, secret: str) -> bool:
        digest = hmac.new(secret.encode(), self.content, hashlib.sha512)
        expected = base64.b64encode(digest.digest()).decode() if slug == "provider_b" else digest.hexdigest()
        return hmac.compare_digest(self.headers.get(f"x-{slug}-signature", ""), expected)

    def settle(self, payment: Row, told: Row) -> None:
        if told["status"] != "success":
            return
        if told["amount"] != payment["amount"]:
            payment["mismatch"] = True
            return
        self.move(payment, "SUCCESS")

    def move(self, payment: Row, status: str) -> None:
        raise NotImplementedError
