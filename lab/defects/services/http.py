"""What the services written by hand share: rows in memory, a clock, HTTP, and who may come in."""

import itertools
import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from payagg_testing.conformance.inbox import Inbox

START = datetime(2025, 3, 1, 9, 0, tzinfo=UTC)
UNAPPROVED, SUSPENDED = "biz-3", "biz-4"
Row = dict[str, Any]
Reply = tuple[int, Any]


class Refused(Exception):
    def __init__(self, status: int, code: str, field: str | None = None) -> None:
        super().__init__(code)
        self.status, self.code, self.field = status, code, field


def bad(field: str) -> Refused:
    return Refused(400, "VALIDATION_ERROR", field)


@dataclass
class Picture:
    """An answer that is no JSON."""

    content: bytes
    headers: dict[str, str]


class HandHttp:
    """The ASGI application, its rows and its clock."""

    admin = "admin-token"
    numbers = itertools.count(1)  # shared: the provider knows the references of all

    def __init__(self, inbox: Inbox) -> None:
        self.inbox, self.now = inbox, START
        self.businesses = {f"biz-{n}": f"owner-token-{n}" for n in (1, 2, 3, 4)}
        self.keys: dict[str, Row] = {}
        self.payments: dict[str, Row] = {}
        self.by_key: dict[Any, str] = {}
        self.gateways: dict[str, Row] = {}
        self.settings: dict[tuple[str, str], Row] = {}
        self.endpoints: dict[str, Row] = {}
        self.outbox: list[Row] = []
        self.routes = [(m, re.compile(p.replace("{}", "([^/]+)")), f) for m, p, f in self.table()]

    def table(self) -> list[tuple[str, str, Callable[..., Reply]]]:
        business = "/merchant/businesses/{}"
        return [
            ("GET", "/payments/context", self.context),
            ("GET", f"{business}/api-keys", self.list_keys),
            ("POST", f"{business}/api-keys", self.generate_key),
            ("DELETE", f"{business}/api-keys/{{}}", self.revoke_key),
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        content = b""
        while True:
            message = await receive()
            content += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        path = scope["path"].removeprefix("/api/v1")
        status, data = await self.answer(scope["method"], path, headers, content)
        shown = [(b"content-type", b"application/json")]
        body = b"" if isinstance(data, Picture) else json.dumps(data).encode()
        if isinstance(data, Picture):
            body, shown = data.content, [(name.encode(), value.encode()) for name, value in data.headers.items()]
        start = {"type": "http.response.start", "status": status, "headers": shown}
        await send(start)
        await send({"type": "http.response.body", "body": body})

    async def answer(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Reply:
        try:
            status, data = self.routed(method, path, headers, content)
        except Refused as no:
            error = {"code": no.code, "message": no.code.lower().replace("_", " ")}
            return no.status, {"success": False, "error": error | ({"field": no.field} if no.field else {})}
        if isinstance(data, Picture):
            return status, data
        return status, {"success": True} | ({} if data is None else {"data": data})

    def routed(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Reply:
        self.headers, self.content = headers, content
        self.bearer = headers.get("authorization", "").removeprefix("Bearer ")
        is_json = content and not path.startswith("/webhooks/") and "multipart" not in headers.get("content-type", "")
        self.body = json.loads(content) if is_json else {}
        for verb, pattern, handler in self.routes:
            found = pattern.fullmatch(path)
            if found and verb == method:
                self.admit(path, *found.groups()[:1])
                return handler(*found.groups())
        raise Refused(404, "NOT_FOUND")

    def admit(self, path: str, first: str = "") -> None:
        realm = path.split("/")[1]
        if realm not in ("admin", "merchant"):
            return
        if self.bearer not in (self.admin, *self.businesses.values()):
            raise Refused(401, "UNAUTHORIZED")
        if self.bearer != (self.admin if realm == "admin" else self.businesses.get(first)):
            raise Refused(403, "FORBIDDEN")

    def key(self) -> Row:
        if not self.bearer:
            raise Refused(401, "UNAUTHORIZED")
        key = next((key for key in self.keys.values() if key["secretKey"] == self.bearer), None)
        if key is None or key["status"] != "ACTIVE":
            raise Refused(401, "INVALID_API_KEY")
        return key

    def wait(self, duration: timedelta) -> None:
        self.now += duration

    def stamp(self, at: datetime | None = None) -> str:
        return (at or self.now).isoformat()

    def context(self) -> Reply:
        key = self.key()
        own = {"businessId": key["business"], "businessName": "Shop", "environment": key["environment"]}
        return 200, own | {"kycStatus": "APPROVED"}

    def ensure_active(self, business: str) -> None:
        if business == SUSPENDED:
            raise Refused(403, "BUSINESS_RESTRICTED")

    def list_keys(self, business: str) -> Reply:
        self.ensure_active(business)
        groups: dict[str, list[Row]] = {"sandbox": [], "live": []}
        for key in self.keys.values():
            if key["business"] == business:
                groups[key["environment"].lower()].append(self.shown_key(key))
        for name, group in groups.items():
            revoked = [key for key in group if key["status"] == "REVOKED"][-20:]
            groups[name] = [key for key in group if key["status"] == "ACTIVE"] + revoked
        return 200, groups

    def shown_key(self, key: Row) -> Row:
        masked = key["secretKey"][:9] + "..." + key["secretKey"][-4:]
        return {n: key[n] for n in ("id", "name", "publicKey", "status")} | {"secretKeyDisplay": masked}

    def generate_key(self, business: str) -> Reply:
        self.no_others("environment", "name")
        environment, name = self.body.get("environment"), self.body.get("name")
        if environment not in ("SANDBOX", "LIVE"):
            raise bad("environment")
        if not isinstance(name, str) or not 2 <= len(name) <= 100:
            raise bad("name")
        self.ensure_active(business)
        if environment == "LIVE" and business == UNAPPROVED:
            raise Refused(403, "KYC_REQUIRED")
        slot = (business, environment, "ACTIVE")
        if sum((k["business"], k["environment"], k["status"]) == slot for k in self.keys.values()) >= 5:
            raise Refused(409, "KEY_LIMIT_REACHED")
        infix, id = {"SANDBOX": "sand", "LIVE": "live"}[environment], f"key-{next(self.numbers)}"
        row = {"id": id, "name": name, "environment": environment, "createdAt": self.stamp()}
        row |= {
            "publicKey": f"spk_{infix}_{secrets.token_hex(16)}",
            "secretKey": f"ssk_{infix}_{secrets.token_hex(24)}",
        }
        self.keys[id] = row | {"business": business, "status": "ACTIVE"}
        return 201, row | {"secretKeyNote": "Shown once."}

    def no_others(self, *names: str) -> None:
        for name in self.body:
            if name not in names:
                raise bad(name)

    def revoke_key(self, business: str, id: str) -> Reply:
        key = self.keys.get(id)
        if key is None or key["business"] != business:
            raise Refused(404, "NOT_FOUND")
        if key["status"] == "REVOKED":
            raise Refused(409, "ALREADY_REVOKED")
        key["status"] = "REVOKED"
        return 200, {"message": "Revoked."}
