"""Gateways and endpoints of the service written by hand."""

import hashlib
import hmac
import json
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import timedelta

from payagg_testing.conformance.inbox import Inbox

from lab.defects.services.http import HandHttp, Refused, Reply, Row, bad

BUILTIN: Row = {"id": "gw-builtin", "slug": "builtin", "name": "Built in", "isBuiltIn": True, "status": "ACTIVE"}


class HandGateways(HandHttp):
    def __init__(self, inbox: Inbox) -> None:
        super().__init__(inbox)
        self.gateways["gw-builtin"] = self.new_gateway(BUILTIN)

    def table(self) -> list[tuple[str, str, Callable[..., Reply]]]:
        business = "/merchant/businesses/{}"
        return [
            *super().table(),
            ("GET", f"{business}/webhooks", self.list_endpoints),
            ("POST", f"{business}/webhooks", self.add_endpoint),
            ("DELETE", f"{business}/webhooks/{{}}", self.remove_endpoint),
            ("POST", f"{business}/webhooks/{{}}/rotate-secret", self.rotate_secret),
            ("GET", f"{business}/gateways", self.list_options),
            ("PATCH", f"{business}/gateways/{{}}", self.set_option),
            ("GET", "/admin/gateways", self.list_gateways),
            ("POST", "/admin/gateways", self.create_gateway),
            ("GET", "/admin/gateways/{}", self.read_gateway),
            ("PATCH", "/admin/gateways/{}", self.change_gateway),
            ("DELETE", "/admin/gateways/{}", self.delete_gateway),
            ("POST", "/admin/gateways/{}/enable", self.enable_gateway),
            ("POST", "/admin/gateways/{}/disable", self.disable_gateway),
            ("PATCH", "/admin/gateways/{}/credentials", self.store_credentials),
        ]

    def new_gateway(self, given: Row) -> Row:
        fresh = {
            "description": None,
            "displayOrder": 0,
            "isBuiltIn": False,
            "status": "DISABLED",
            "hasCredentials": False,
        }
        return fresh | {"drainStartedAt": None, "drainEndsAt": None, "ends": None, "credentials": {}} | given

    def state(self, gateway: Row) -> str:
        if gateway["status"] == "DRAINING" and self.now >= gateway["ends"]:
            return "DISABLED"
        return str(gateway["status"])

    def shown_gateway(self, gateway: Row) -> Row:
        hidden = ("credentials", "ends", "replaced")
        status = self.state(gateway)
        shown = {name: value for name, value in gateway.items() if name not in hidden}
        return shown | {"status": status, "isActive": status == "ACTIVE"}

    def gateway(self, id: str) -> Row:
        if id not in self.gateways:
            raise Refused(404, "NOT_FOUND")
        return self.gateways[id]

    def list_gateways(self) -> Reply:
        return 200, [self.shown_gateway(gateway) for gateway in self.gateways.values()]

    def read_gateway(self, id: str) -> Reply:
        gateway = self.gateway(id)
        off = [business for business in self.businesses if not self.is_on(business, id)]
        overrides = [{"businessId": business, "businessName": "Shop", "updatedAt": self.stamp()} for business in off]
        return 200, self.shown_gateway(gateway) | {"overrides": overrides}

    def create_gateway(self) -> Reply:
        slug = self.body.get("slug")
        if (
            not isinstance(slug, str)
            or not 2 <= len(slug) <= 50
            or not re.fullmatch(r"[a-z0-9]+([-_][a-z0-9]+)*", slug)
        ):
            raise bad("slug")
        self.check_gateway_body()
        if "name" not in self.body:
            raise bad("name")
        if any(gateway["slug"] == slug for gateway in self.gateways.values()):
            raise Refused(409, "SLUG_EXISTS")
        id = f"gw-{next(self.numbers)}"
        given = {name: self.body[name] for name in ("slug", "name", "description", "displayOrder") if name in self.body}
        self.gateways[id] = self.new_gateway({"id": id, **given})
        return 201, self.shown_gateway(self.gateways[id])

    def check_gateway_body(self) -> None:
        name, description = self.body.get("name", "Acme"), self.body.get("description") or ""
        if not isinstance(name, str) or not 2 <= len(name) <= 100:
            raise bad("name")
        if len(description) > 1000:
            raise bad("description")
        if self.body.get("displayOrder", 0) < 0:
            raise bad("displayOrder")

    def change_gateway(self, id: str) -> Reply:
        gateway = self.gateway(id)
        self.no_others("name", "description", "displayOrder")
        self.check_gateway_body()
        if gateway["isBuiltIn"] and set(self.body) != {"displayOrder"}:
            raise Refused(409, "BUILT_IN")
        gateway |= self.body
        return 200, self.shown_gateway(gateway)

    def delete_gateway(self, id: str) -> Reply:
        gateway = self.gateway(id)
        if self.state(gateway) != "DISABLED" or gateway["isBuiltIn"]:
            raise Refused(409, "IN_USE")
        del self.gateways[id]
        return 200, {"message": "Deleted."}

    def enable_gateway(self, id: str) -> Reply:
        gateway = self.gateway(id)
        if self.state(gateway) == "ACTIVE":
            raise Refused(409, "ALREADY_ENABLED")
        gateway |= {"status": "ACTIVE", "drainStartedAt": None, "drainEndsAt": None}
        return 200, self.shown_gateway(gateway)

    def disable_gateway(self, id: str) -> Reply:
        gateway = self.gateway(id)
        if self.state(gateway) != "ACTIVE" or gateway["isBuiltIn"]:
            raise Refused(409, "NOT_ACTIVE")
        ends = self.now + timedelta(minutes=30)
        gateway |= {"status": "DRAINING", "ends": ends}
        gateway |= {"drainStartedAt": self.stamp(), "drainEndsAt": self.stamp(ends)}
        return 200, self.shown_gateway(gateway)

    def store_credentials(self, id: str) -> Reply:
        gateway, given = self.gateway(id), self.body.get("credentials")
        if not isinstance(given, dict) or not 1 <= len(given) <= 50:
            raise bad("credentials")
        if any(not isinstance(value, str) or len(value) > 4000 for value in given.values()):
            raise bad("credentials")
        gateway |= {"credentials": given, "hasCredentials": True}
        return 200, None

    def is_on(self, business: str, id: str) -> bool:
        return bool(self.settings.get((business, id), {}).get("isEnabled", True))

    def option(self, business: str, gateway: Row) -> Row:
        own = {"isEnabled": True, "displayName": None, "businessDisplayOrder": None, "isDefault": False}
        own |= self.settings.get((business, gateway["id"]), {})
        return {name: gateway[name] for name in ("id", "slug", "name", "displayOrder", "isBuiltIn")} | own

    def list_options(self, business: str) -> Reply:
        active = [gateway for gateway in self.gateways.values() if self.state(gateway) == "ACTIVE"]
        return 200, [self.option(business, gateway) for gateway in active]

    def set_option(self, business: str, id: str) -> Reply:
        self.no_others("isEnabled", "displayOrder", "displayName", "isDefault")
        gateway, body = self.gateway(id), dict(self.body)
        if not isinstance(body.get("isEnabled", True), bool) or len(body.get("displayName") or "") > 50:
            raise bad("isEnabled")
        if body.get("displayOrder", 0) < 0 or (gateway["isBuiltIn"] and body.get("isEnabled") is False):
            raise bad("isEnabled")
        own = self.settings.setdefault((business, id), {})
        own |= body
        if own.get("isEnabled") is False:
            own["isDefault"] = False
        for (other, slot), settings in self.settings.items():
            if own.get("isDefault") and other == business and slot != id:
                settings["isDefault"] = False
        return 200, self.option(business, gateway)

    # Webhooks

    def list_endpoints(self, business: str) -> Reply:
        return 200, [self.shown_endpoint(e) for e in self.endpoints.values() if e["business"] == business]

    def shown_endpoint(self, endpoint: Row) -> Row:
        return {name: value for name, value in endpoint.items() if name not in ("signingSecret", "business", "old")}

    def add_endpoint(self, business: str) -> Reply:
        self.ensure_active(business)
        self.no_others("url", "environment", "description", "events")
        url, environment = self.body.get("url", ""), self.body.get("environment")
        if environment not in ("SANDBOX", "LIVE"):
            raise bad("environment")
        if not re.fullmatch(r"https://\S+" if environment == "LIVE" else r"https?://\S+", url):
            raise bad("url")
        if len(self.body.get("description", "")) > 200:
            raise bad("description")
        known = {"payment.pending", "payment.success", "payment.failed", "payment.reversed"}
        if set(self.body.get("events", [])) - known:
            raise bad("events")
        if sum(e["isActive"] for e in self.endpoints.values() if e["business"] == business) >= 5:
            raise Refused(409, "TOO_MANY")
        id, secret = f"whe-{next(self.numbers)}", self.new_secret()
        row = {
            "id": id,
            "url": url,
            "environment": environment,
            "events": self.body.get("events", []),
            "isActive": True,
        }
        self.endpoints[id] = row | {"business": business, "signingSecret": secret, "secretLast4": secret[-4:]}
        return 201, row | {"signingSecret": secret, "secretLast4": secret[-4:]}

    def new_secret(self) -> str:
        return "whsec_" + b64encode(secrets.token_bytes(32)).decode()

    def endpoint(self, business: str, id: str) -> Row:
        endpoint = self.endpoints.get(id)
        if endpoint is None or endpoint["business"] != business:
            raise Refused(404, "NOT_FOUND")
        return endpoint

    def rotate_secret(self, business: str, id: str) -> Reply:
        self.ensure_active(business)
        endpoint, secret = self.endpoint(business, id), self.new_secret()
        endpoint["old"] = endpoint["signingSecret"], self.now + timedelta(hours=24)
        endpoint |= {"signingSecret": secret, "secretLast4": secret[-4:]}
        return 201, self.shown_endpoint(endpoint) | {"signingSecret": secret}

    def remove_endpoint(self, business: str, id: str) -> Reply:
        endpoint = self.endpoint(business, id)
        endpoint["isActive"] = False
        return 200, self.shown_endpoint(endpoint)

    def tell(self, payment: Row) -> None:
        kind = f"payment.{payment['status'].lower()}"
        for endpoint in self.endpoints.values():
            if self.wants(endpoint, payment, kind):
                event = {"id": f"evt-{next(self.numbers)}", "type": kind, "environment": payment["environment"]}
                self.outbox.append({"endpoint": endpoint, "event": event | {"data": self.told(payment)}})

    def wants(self, endpoint: Row, payment: Row, kind: str) -> bool:
        if not endpoint["isActive"] or endpoint["business"] != payment["business"]:
            return False
        return endpoint["environment"] == payment["environment"] and kind in (endpoint["events"] or [kind])

    def work(self) -> None:
        self.outbox = [one for one in self.outbox if one["endpoint"]["isActive"] and not self.deliver(one)]

    def deliver(self, one: Row) -> bool:
        """Whether it need not be tried again."""
        body = json.dumps(one["event"]).encode()
        headers = self.signed(one["endpoint"], one["event"]["id"], body)
        return self.inbox.receive(one["endpoint"]["url"], headers, body) < 300

    def signing(self, endpoint: Row) -> list[str]:
        old, until = endpoint.get("old", ("", self.now))
        return [endpoint["signingSecret"], *([old] if self.now < until else [])]

    def signed(self, endpoint: Row, id: str, body: bytes) -> dict[str, str]:
        at, values = str(int(self.now.timestamp())), []
        for secret in self.signing(endpoint):
            key = b64decode(secret.removeprefix("whsec_"))
            digest = hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
            values.append("v1," + b64encode(digest).decode())
        value = " ".join(values)
        return {"webhook-id": id, "webhook-timestamp": at, "webhook-signature": value, "X-Service-Signature": value}

    def told(self, payment: Row) -> Row:
        raise NotImplementedError
