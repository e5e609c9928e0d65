"""An honest payment aggregator in Starlette, written from the interface without sight of the harness; since then the
harness had it look at a logo's end.

Its one argument is JSON: `port`, `jwtKey`, `ttl`, `drain`, `rate`, `businesses` (`id`, `name`, `kyc`, `status`, `members`).
What the document does not show is chosen unlike payagg, but for the words of `outcome`, two test cards, the names of
credentials and provider_b's hand-off, which are payagg's."""

import asyncio
import base64
import email.parser
import email.policy
import hashlib
import hmac
import json
import re
import secrets
import sys
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

CONFIG = json.loads(sys.argv[1])
ORIGIN = f"http://127.0.0.1:{CONFIG['port']}"
API, PREFIX, BUILTIN = "/api/v1", "NEU", "house"
EVENTS = {"SUCCESS": "transaction.paid", "FAILED": "transaction.declined", "REVERSED": "transaction.returned"}
OUTCOMES = {"SUCCESS": "SUCCESS", "FAILED": "FAILED", "REVERSED": "REVERSED"}
CARDS = {"4242424242424242": "SUCCESS", "4000000000000002": "FAILED"}
FINAL = set(EVENTS)
REFERENCE = re.compile(r"[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
GIVEN = ("customerEmail", "customerName", "customerPhone", "callbackUrl", "metadata")
Row = dict[str, Any]

businesses: dict[str, Row] = {one["id"]: one for one in CONFIG["businesses"]}
gateways: dict[str, Row] = {}
overrides: dict[tuple[str, str], Row] = {}  # of (business, gateway)
keys: dict[str, Row] = {}
hooks: dict[str, Row] = {}
payments: dict[str, Row] = {}
locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # of a payment: what waits for a provider holds it
inbound: dict[str, deque[float]] = defaultdict(deque)
tasks: set[asyncio.Task[None]] = set()


class Refused(Exception):
    def __init__(self, status: int, code: str, field: str | None = None) -> None:
        self.status = status
        self.error = {"code": code, "message": f"Refused: {code.lower().replace('_', ' ')}."}
        if field:
            self.error["field"] = field


def wrong(field: str) -> Refused:
    return Refused(400, "VALIDATION_ERROR", field)


def stamp(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def new_id() -> str:
    return secrets.token_hex(10)


def ok(data: Any, status: int = 200, **more: Any) -> Response:
    return JSONResponse({"success": True, "data": data, **more}, status)


# What is sent


def is_text(low: int = 0, high: int = 4000) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and low <= len(value) <= high


def is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def is_url(*schemes: str) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        try:
            parts = urlsplit(value) if isinstance(value, str) and not re.search(r"\s", value) else None
            return bool(parts and parts.scheme in schemes and parts.hostname)
        except ValueError:
            return False

    return holds


def is_email(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", value))


def one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in words


async def sent(request: Request, rules: dict[str, Callable[[Any], bool]], needed: str = "", *, closed: bool = False,
               nullable: str = "") -> Row:  # fmt: skip
    """The JSON object of a request by its rules; `closed` allows no other property."""
    try:
        body = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise wrong("body") from None
    if not isinstance(body, dict):
        raise wrong("body")
    for name in needed.split():
        if body.get(name) is None:
            raise wrong(name)
    found: Row = {}
    for name, value in body.items():
        if name not in rules:
            if closed:
                raise wrong(name)
        elif value is None:
            if name in nullable.split():
                found[name] = None
            elif closed:
                raise wrong(name)
        elif not rules[name](value):
            raise wrong(name)
        else:
            found[name] = value
    return found


# Who asks


def bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Refused(401, "UNAUTHORIZED")
    return token.strip()


def claims(request: Request, realm: str) -> Row:
    try:
        found = jwt.decode(bearer(request), CONFIG["jwtKey"], algorithms=["HS256"], options={"require": ["exp", "sub"]})
    except jwt.PyJWTError:
        raise Refused(401, "UNAUTHORIZED") from None
    if found.get("type") != realm:
        raise Refused(403, "WRONG_REALM")
    return dict(found)


def admin(request: Request) -> None:
    if claims(request, "admin").get("role") not in ("ADMIN", "SUPER_ADMIN"):
        raise Refused(403, "WRONG_ROLE")


def managed(request: Request, *, active: bool = False) -> Row:
    found = claims(request, "merchant")
    business = businesses.get(request.path_params["business"])
    if not found.get("emailVerified") or not business:
        raise Refused(403, "NOT_A_MANAGER")
    if business["members"].get(found["sub"]) not in ("OWNER", "ADMIN"):
        raise Refused(403, "NOT_A_MANAGER")
    if active and business["status"] != "ACTIVE":
        raise Refused(403, "BUSINESS_RESTRICTED")
    return business


def secret_key(request: Request, *, sandbox: bool = False) -> Row:
    digest = hashlib.sha256(bearer(request).encode()).hexdigest()
    key = next((one for one in keys.values() if one["digest"] == digest and not one["revokedAt"]), None)
    if key is None:
        raise Refused(401, "INVALID_API_KEY")
    if sandbox and key["environment"] == "LIVE":
        raise Refused(403, "SANDBOX_ONLY")
    business = businesses[key["business"]]
    if business["status"] != "ACTIVE":
        raise Refused(403, "BUSINESS_RESTRICTED")
    if key["environment"] == "LIVE" and business["kyc"] != "APPROVED":
        raise Refused(403, "KYC_REQUIRED")
    key["lastUsedAt"] = time.time()
    return key


# Gateways


def gateway_row(slug: str, name: str, **more: Any) -> Row:
    now = time.time()
    made = {"id": new_id(), "slug": slug, "name": name, "description": None, "displayOrder": 0, "status": "DISABLED",
            "drainStartedAt": None, "credentials": {}, "logo": None, "createdAt": now, "updatedAt": now,
            **more}  # fmt: skip
    gateways[made["id"]] = made
    return made


def settled(gateway: Row) -> Row:
    if gateway["status"] == "DRAINING" and time.time() >= gateway["drainStartedAt"] + CONFIG["drain"]:
        gateway |= {"status": "DISABLED", "drainStartedAt": None}
    return gateway


def gateway_of(request: Request) -> Row:
    admin(request)
    if (found := gateways.get(request.path_params["id"])) is None:
        raise Refused(404, "NO_SUCH_GATEWAY")
    return settled(found)


def override(business: str, gateway: Row) -> Row:
    return overrides.get((business, gateway["id"]), {"isEnabled": True, "order": None, "name": None, "default": False})


def presentation(gateway: Row) -> Row:
    path = f"{API}/public/gateways/{gateway['id']}/logo" if gateway["logo"] else None
    return {name: gateway[name] for name in ("id", "slug", "name", "description", "displayOrder")} | {
        "logoPath": path and path.removeprefix(API), "logoUrl": path, "isBuiltIn": gateway["slug"] == BUILTIN}  # fmt: skip


def summary(gateway: Row) -> Row:
    began = gateway["drainStartedAt"]
    active = [one["id"] for one in businesses.values() if one["status"] == "ACTIVE"]
    return presentation(gateway) | {
        "isActive": gateway["status"] == "ACTIVE", "status": gateway["status"], "drainStartedAt": stamp(began),
        "drainEndsAt": stamp(began and began + CONFIG["drain"]), "hasCredentials": bool(gateway["credentials"]),
        "businessCount": sum(override(one, gateway)["isEnabled"] for one in active),
        "createdAt": stamp(gateway["createdAt"]), "updatedAt": stamp(gateway["updatedAt"])}  # fmt: skip


async def list_gateways(request: Request) -> Response:
    admin(request)
    return ok([summary(settled(one)) for one in gateways.values()])


async def create_gateway(request: Request) -> Response:
    admin(request)

    def is_slug(value: Any) -> bool:
        return is_text(2, 50)(value) and bool(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", value))

    rules = {"slug": is_slug, "name": is_text(2, 100), "description": is_text(0, 1000), "displayOrder": is_count}
    body = await sent(request, rules, "slug name")
    if body["slug"] in {"sandbox", *(one["slug"] for one in gateways.values())}:
        raise Refused(409, "SLUG_TAKEN")
    return ok(summary(gateway_row(**body)), 201)


async def read_gateway(request: Request) -> Response:
    gateway = gateway_of(request)
    off = [{"businessId": business, "businessName": businesses[business]["name"], "updatedAt": stamp(one["updatedAt"])}
           for (business, of), one in overrides.items() if of == gateway["id"] and not one["isEnabled"]]  # fmt: skip
    return ok(summary(gateway) | {"overrides": off})


async def change_gateway(request: Request) -> Response:
    gateway = gateway_of(request)
    rules = {"name": is_text(2, 100), "description": is_text(0, 1000), "displayOrder": is_count}
    body = await sent(request, rules, closed=True, nullable="description")
    if gateway["slug"] == BUILTIN and (other := next((one for one in body if one != "displayOrder"), None)):
        raise wrong(other)
    gateway |= body | {"updatedAt": time.time()}
    return ok(summary(gateway))


async def delete_gateway(request: Request) -> Response:
    gateway = gateway_of(request)
    if gateway["slug"] == BUILTIN or gateway["status"] != "DISABLED":
        raise Refused(409, "STILL_NEEDED")
    del gateways[gateway["id"]]
    return ok({"message": "The gateway is gone."})


async def enable_gateway(request: Request) -> Response:
    gateway = gateway_of(request)
    if gateway["status"] == "ACTIVE":
        raise Refused(409, "IS_ENABLED")
    gateway |= {"status": "ACTIVE", "drainStartedAt": None, "updatedAt": time.time()}
    return ok(summary(gateway))


async def disable_gateway(request: Request) -> Response:
    gateway = gateway_of(request)
    if gateway["slug"] == BUILTIN or gateway["status"] != "ACTIVE":
        raise Refused(409, "CANNOT_DRAIN")
    gateway |= {"status": "DRAINING", "drainStartedAt": time.time(), "updatedAt": time.time()}
    return ok(summary(gateway))


async def merchants(request: Request) -> Response:
    gateway, asked = gateway_of(request), request.query_params
    numbers = {}
    for name, default, high in (("page", "1", 10**9), ("perPage", "20", 100)):
        if not re.fullmatch("[0-9]{1,9}", text := asked.get(name, default)) or not 1 <= int(text) <= high:
            raise wrong(name)
        numbers[name] = int(text)
    if len(search := asked.get("search", "")) > 100:
        raise wrong("search")
    rows = []
    for business in businesses.values():
        if business["status"] == "ACTIVE" and search.lower() in business["name"].lower():
            one = override(business["id"], gateway)
            order = gateway["displayOrder"] if one["order"] is None else one["order"]
            rows.append({"id": f"{gateway['id']}.{business['id']}", "businessId": business["id"],
                         "businessName": business["name"], "isEnabled": one["isEnabled"], "displayName": one["name"],
                         "displayOrder": order, "isDefault": one["default"],
                         "createdAt": stamp(one.get("updatedAt", gateway["createdAt"]))})  # fmt: skip
    begin = (numbers["page"] - 1) * numbers["perPage"]
    return ok(rows[begin : begin + numbers["perPage"]], meta=numbers | {"total": len(rows)})


async def store_credentials(request: Request) -> Response:
    gateway = gateway_of(request)

    def is_credentials(value: Any) -> bool:
        return isinstance(value, dict) and 1 <= len(value) <= 50 and all(map(is_text(), value.values()))

    gateway["credentials"] = (await sent(request, {"credentials": is_credentials}, "credentials"))["credentials"]
    gateway["updatedAt"] = time.time()
    return JSONResponse({"success": True})


async def store_logo(request: Request) -> Response:
    gateway = gateway_of(request)
    head = f"Content-Type: {request.headers.get('content-type', '')}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + await request.body())
    parts = [one for one in message.iter_parts() if one.get_param("name", header="content-disposition") == "file"]
    data = parts[0].get_payload(decode=True) if parts else None
    forms = {"png": (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"), "jpeg": (b"\xff\xd8\xff", b"\xff\xd9")}
    whole = isinstance(data, bytes) and next(
        (name for name, (head, end) in forms.items() if data.startswith(head) and data.endswith(end)), None
    )
    if not whole or not isinstance(data, bytes) or len(data) > 2 * 1024 * 1024:
        raise wrong("file")
    gateway["logo"] = (data, f"image/{whole}")
    return ok({"logoUrl": presentation(gateway)["logoUrl"]}, 201)


async def read_logo(request: Request) -> Response:
    gateway = gateways.get(request.path_params["id"])
    if gateway is None or gateway["logo"] is None:
        raise Refused(404, "NO_LOGO")
    data, kind = gateway["logo"]
    return Response(data, headers={"content-type": kind, "cache-control": "public, max-age=3600",
                                   "x-content-type-options": "nosniff"})  # fmt: skip


# What a business makes of them


def as_seen(business: Row, gateway: Row) -> Row:
    one = override(business["id"], gateway)
    return presentation(gateway) | {"isEnabled": one["isEnabled"], "businessDisplayOrder": one["order"],
                                    "displayName": one["name"], "isDefault": one["default"]}  # fmt: skip


def offered(business: Row) -> list[Row]:
    def place(one: Row) -> tuple[bool, int]:
        order = override(business["id"], one)["order"]
        return one["slug"] != BUILTIN, one["displayOrder"] if order is None else order

    return sorted((one for one in gateways.values() if settled(one)["status"] == "ACTIVE"), key=place)


async def checkout_settings(request: Request) -> Response:
    business = managed(request)
    return ok([as_seen(business, one) for one in offered(business)])


def change_override(business: Row, gateway: Row, **change: Any) -> None:
    overrides[business["id"], gateway["id"]] = override(business["id"], gateway) | change | {"updatedAt": time.time()}


async def change_setting(request: Request) -> Response:
    business = managed(request, active=True)
    gateway = next((one for one in offered(business) if one["id"] == request.path_params["id"]), None)
    if gateway is None:
        raise Refused(404, "NO_SUCH_GATEWAY")
    names = {"isEnabled": "isEnabled", "displayOrder": "order", "displayName": "name", "isDefault": "default"}
    is_flag = lambda value: type(value) is bool  # noqa: E731
    rules = {"isEnabled": is_flag, "displayOrder": is_count, "displayName": is_text(0, 50), "isDefault": is_flag}
    body = await sent(request, rules, closed=True, nullable="displayName")
    if gateway["slug"] == BUILTIN:
        for name in ("isEnabled", "displayOrder"):
            if name in body and body[name] is not True:
                raise wrong(name)
    change = {names[name]: value for name, value in body.items()}
    if change.get("default"):
        if not change.get("isEnabled", override(business["id"], gateway)["isEnabled"]):
            raise wrong("isDefault")
        for (owner, _), one in overrides.items():
            if owner == business["id"]:
                one["default"] = False
    if change.get("isEnabled") is False:
        change["default"] = False
    change_override(business, gateway, **change)
    return ok(as_seen(business, gateway))


async def reorder(request: Request) -> Response:
    business = managed(request, active=True)
    active = {one["id"]: one for one in offered(business)}

    def is_order(value: Any) -> bool:
        return isinstance(value, list) and 1 <= len(value) <= 100 and all(
            isinstance(one, dict) and is_count(one.get("displayOrder")) and one.get("gatewayId") in active
            for one in value)  # fmt: skip

    for one in (await sent(request, {"order": is_order}, "order"))["order"]:
        if (gateway := active[one["gatewayId"]])["slug"] != BUILTIN:
            change_override(business, gateway, order=one["displayOrder"])
    return ok([as_seen(business, one) for one in offered(business)])


# Keys and endpoints of merchants


def key_record(key: Row) -> Row:
    return {name: key[name] for name in ("id", "name", "publicKey", "secretKeyDisplay")} | {
        "status": "REVOKED" if key["revokedAt"] else "ACTIVE", "lastUsedAt": stamp(key["lastUsedAt"]),
        "createdAt": stamp(key["createdAt"]), "revokedAt": stamp(key["revokedAt"])}  # fmt: skip


def keys_of(business: Row, environment: str, *, revoked: bool) -> list[Row]:
    return [one for one in keys.values() if one["business"] == business["id"]
            and one["environment"] == environment and bool(one["revokedAt"]) is revoked]  # fmt: skip


async def list_keys(request: Request) -> Response:
    business = managed(request, active=True)

    def group(environment: str) -> list[Row]:
        revoked = sorted(keys_of(business, environment, revoked=True), key=lambda one: float(one["revokedAt"]))[-20:]
        return [key_record(one) for one in [*keys_of(business, environment, revoked=False), *reversed(revoked)]]

    return ok({"sandbox": group("SANDBOX"), "live": group("LIVE")})


async def create_key(request: Request) -> Response:
    business = managed(request, active=True)
    rules = {"environment": one_of("SANDBOX", "LIVE"), "name": is_text(2, 100)}
    body = await sent(request, rules, "environment name", closed=True)
    if body["environment"] == "LIVE" and business["kyc"] != "APPROVED":
        raise Refused(403, "KYC_REQUIRED")
    if len(keys_of(business, body["environment"], revoked=False)) >= 5:
        raise Refused(409, "KEY_LIMIT_REACHED")
    word = {"SANDBOX": "sand", "LIVE": "live"}[body["environment"]]
    secret = f"ssk_{word}_{secrets.token_hex(20)}"
    key = {"id": new_id(), "business": business["id"], **body, "publicKey": f"spk_{word}_{secrets.token_hex(12)}",
           "secretKeyDisplay": f"ssk_{word}_...{secret[-4:]}", "digest": hashlib.sha256(secret.encode()).hexdigest(),
           "createdAt": time.time(), "lastUsedAt": None, "revokedAt": None}  # fmt: skip
    keys[key["id"]] = key
    return ok({name: key[name] for name in ("id", "name", "publicKey", "environment")}
              | {"secretKey": secret, "createdAt": stamp(key["createdAt"]), "secretKeyNote": "Shown once."}, 201)  # fmt: skip


async def revoke_key(request: Request) -> Response:
    business = managed(request)
    key = keys.get(request.path_params["id"])
    if key is None or key["business"] != business["id"]:
        raise Refused(404, "NO_SUCH_KEY")
    if key["revokedAt"]:
        raise Refused(409, "IS_REVOKED")
    key["revokedAt"] = time.time()
    return ok({"message": "The key opens nothing any more."})


def hook_record(hook: Row) -> Row:
    ends = [one["delivered"] for one in hook["deliveries"]]
    return {name: hook[name] for name in ("id", "url", "description", "environment", "isActive", "events")} | {
        "secretLast4": hook["secret"][-4:], "createdAt": stamp(hook["createdAt"]),
        "deliverySummary": {"successful": ends.count(True), "failed": ends.count(False)}}  # fmt: skip


def is_events(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one in EVENTS.values() for one in value)


async def list_hooks(request: Request) -> Response:
    business = managed(request)
    return ok([hook_record(one) for one in hooks.values() if one["business"] == business["id"]])


def check_hook(business: Row, environment: str, url: str) -> None:
    if environment == "LIVE" and not is_url("https")(url):
        raise wrong("url")
    if sum(one["business"] == business["id"] and one["isActive"] for one in hooks.values()) >= 5:
        raise Refused(409, "ENOUGH_ENDPOINTS")


HOOK_RULES = {"url": is_url("http", "https"), "description": is_text(0, 200), "events": is_events}


async def create_hook(request: Request) -> Response:
    business = managed(request, active=True)
    rules = HOOK_RULES | {"environment": one_of("SANDBOX", "LIVE")}
    body: Row = {"description": None, "events": []} | await sent(request, rules, "url environment", closed=True)
    check_hook(business, body["environment"], body["url"])
    hook = {"id": new_id(), "business": business["id"], **body, "secret": secrets.token_hex(24), "isActive": True,
            "deliveries": [], "createdAt": time.time()}  # fmt: skip
    hooks[hook["id"]] = hook
    return ok(hook_record(hook) | {"secret": hook["secret"]}, 201)


def hook_of(request: Request, *, active: bool = True) -> Row:
    business = managed(request, active=active)
    hook = hooks.get(request.path_params["id"])
    if hook is None or hook["business"] != business["id"]:
        raise Refused(404, "NO_SUCH_ENDPOINT")
    return hook


async def change_hook(request: Request) -> Response:
    hook = hook_of(request)
    hook |= await sent(request, HOOK_RULES, closed=True, nullable="description")
    return ok(hook_record(hook))


async def delete_hook(request: Request) -> Response:
    hook = hook_of(request)
    hook["isActive"] = False
    return ok(hook_record(hook))


async def deliver(hook: Row, kind: str, body: bytes, pauses: tuple[float, ...]) -> bool:
    signature = hmac.new(hook["secret"].encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-Service-Signature": signature, "Content-Type": "application/json"}
    delivered = False
    for pause in pauses:
        await asyncio.sleep(pause)
        try:
            delivered = (await outside.post(hook["url"], content=body, headers=headers)).is_success
        except httpx.HTTPError:
            continue
        if delivered:
            break
    hook["deliveries"].append({"id": new_id(), "event": kind, "delivered": delivered, "at": stamp(time.time())})
    return delivered


async def test_hook(request: Request) -> Response:
    hook = hook_of(request)
    return ok({"arrived": await deliver(hook, "endpoint.tried", b'{"name":"endpoint.tried"}', (0,))})


async def list_deliveries(request: Request) -> Response:
    log = hook_of(request, active=False)["deliveries"]
    return ok(log[::-1][:20], meta={"page": 1, "perPage": 20, "total": len(log)})


# Payments


def detail(payment: Row) -> Row:
    return {name: payment[name] for name in ("reference", "amount", "currency", "gateway", *GIVEN)} | {
        "status": payment["status"], "initiatedAt": stamp(payment["createdAt"])}  # fmt: skip


def initiated(payment: Row) -> Row:
    return {name: payment[name] for name in ("reference", "amount", "currency", "environment", "status")} | {
        "checkoutUrl": f"{ORIGIN}/pay/{payment['reference']}", "expiresAt": stamp(payment["expiresAt"])}  # fmt: skip


def move(payment: Row, status: str) -> None:
    """To a later status; what is final stays."""
    if payment["status"] in FINAL or status == payment["status"]:
        return
    payment["status"] = status
    if kind := EVENTS.get(status):
        body = json.dumps({"name": kind, "at": stamp(time.time()), "payment": detail(payment)}).encode()
        whose = (payment["business"], payment["environment"])
        for hook in hooks.values():
            wants = not hook["events"] or kind in hook["events"]
            if wants and hook["isActive"] and (hook["business"], hook["environment"]) == whose:
                later(deliver(hook, kind, body, (0, 1, 5)))


def later(work: Awaitable[Any]) -> None:
    async def done() -> None:
        await work

    tasks.add(task := asyncio.ensure_future(done()))
    task.add_done_callback(tasks.discard)


def current(payment: Row) -> Row:
    """As its window leaves it."""
    if payment["status"] == "INITIATED" and time.time() >= payment["expiresAt"]:
        move(payment, "FAILED")
    return payment


def configured(gateway: Row, environment: str) -> bool:
    credentials, word = gateway["credentials"], {"SANDBOX": "sandbox", "LIVE": "live"}[environment]
    name = {"provider_a": "SecretKey", "provider_b": "PublicKey"}.get(gateway["slug"])
    return bool(name and credentials.get(word + name)) and credentials.get(f"{word}Enabled") != "false"


def usable(business: Row, environment: str) -> list[Row]:
    return [one for one in offered(business)
            if override(business["id"], one)["isEnabled"] and configured(one, environment)]  # fmt: skip


def begin(business: Row, environment: str, body: Row, origin: str) -> Response:
    key = (business["id"], environment, body.get("idempotencyKey"))
    if key[2] is not None and (old := next((one for one in payments.values() if one["key"] == key), None)):
        if current(old)["status"] in FINAL:
            raise Refused(409, "DUPLICATE_PAYMENT")
        return ok(old["initiated"])
    if (slug := body.get("gateway")) and not (slug == "sandbox" and environment == "SANDBOX"):
        gateway = next((one for one in offered(business) if one["slug"] == slug), None)
        if gateway is None:
            raise Refused(400, "GATEWAY_NOT_FOUND", "gateway")
        if not override(business["id"], gateway)["isEnabled"]:
            raise Refused(400, "GATEWAY_DISABLED", "gateway")
    if environment == "LIVE" and not usable(business, environment):
        raise Refused(503, "NO_GATEWAY_AVAILABLE")
    now = time.time()
    reference = f"{PREFIX}-{datetime.now(UTC):%Y%m%d}-{''.join(secrets.choice(LETTERS) for _ in range(6))}"
    payment = {name: body.get(name) for name in (*GIVEN, "gateway", "amount")} | {
        "reference": reference, "currency": "NGN", "environment": environment, "business": business["id"], "key": key,
        "status": "INITIATED", "createdAt": now, "expiresAt": now + CONFIG["ttl"], "origin": origin, "handoff": None,
        "card": None, "processor": None}  # fmt: skip
    payments[reference] = payment | {"initiated": initiated(payment)}
    return ok(initiated(payment), 201)


def is_metadata(value: Any) -> bool:
    return isinstance(value, dict) and len(value) <= 50


def is_amount(value: Any) -> bool:
    return type(value) is int and 100 <= value < 2**53


TEST_RULES = {"amount": is_amount, "currency": one_of("NGN"), "customerEmail": is_email, "customerName": is_text(),
              "customerPhone": is_text(), "callbackUrl": is_url("http", "https"), "metadata": is_metadata,
              "idempotencyKey": is_text(1, 255)}  # fmt: skip
PAYMENT_RULES = TEST_RULES | {"gateway": is_text(), "webhookUrl": is_url("https")}


async def context(request: Request) -> Response:
    key = secret_key(request)
    business = businesses[key["business"]]
    return ok({"businessId": business["id"], "businessName": business["name"], "environment": key["environment"],
               "kycStatus": business["kyc"]})  # fmt: skip


async def initiate(request: Request) -> Response:
    key = secret_key(request)
    return begin(businesses[key["business"]], key["environment"], await sent(request, PAYMENT_RULES, "amount"), "api")


def payment_of(request: Request, belongs: Callable[[Row], bool] = lambda _: True) -> Row:
    reference = request.path_params["reference"]
    if not REFERENCE.fullmatch(reference):
        raise Refused(400, "INVALID_REFERENCE", "reference")
    if (found := payments.get(reference)) is None or not belongs(found):
        raise Refused(404, "PAYMENT_NOT_FOUND")
    return current(found)


def of_key(key: Row) -> Callable[[Row], bool]:
    return lambda one: (one["business"], one["environment"]) == (key["business"], key["environment"])


async def read_payment(request: Request) -> Response:
    return ok(detail(payment_of(request, of_key(secret_key(request)))))


async def simulated(request: Request, belongs: Callable[[Row], bool]) -> Response:
    if not REFERENCE.fullmatch(request.path_params["reference"]):
        raise Refused(400, "INVALID_REFERENCE", "reference")
    body = await sent(request, {"outcome": one_of(*OUTCOMES)}, "outcome")
    payment = payment_of(request, belongs)
    async with locks[payment["reference"]]:
        if payment["status"] in FINAL:
            raise Refused(409, "PAYMENT_ALREADY_FINAL")
        move(payment, OUTCOMES[body["outcome"]])
    return ok(detail(payment))


async def simulate(request: Request) -> Response:
    return await simulated(request, of_key(secret_key(request, sandbox=True)))


def of_test(business: Row) -> Callable[[Row], bool]:
    return lambda one: (one["business"], one["environment"]) == (business["id"], "SANDBOX")


async def make_test(request: Request) -> Response:
    business = managed(request, active=True)
    body = await sent(request, TEST_RULES, "amount")
    if not keys_of(business, "SANDBOX", revoked=False):
        raise Refused(400, "NO_SANDBOX_KEY")
    return begin(business, "SANDBOX", body | {"gateway": "sandbox"}, "dashboard")


async def read_test(request: Request) -> Response:
    return ok(detail(payment_of(request, of_test(managed(request)))))


async def simulate_test(request: Request) -> Response:
    return await simulated(request, of_test(managed(request)))


# The hosted checkout


async def read_public(request: Request) -> Response:
    payment = payment_of(request)
    return ok({name: payment[name] for name in ("reference", "amount", "currency", "status")}
              | {"payTo": businesses[payment["business"]]["name"], "until": stamp(payment["expiresAt"])})  # fmt: skip


async def options(request: Request) -> Response:
    payment = payment_of(request)
    business, environment = businesses[payment["business"]], payment["environment"]
    shown = [{"slug": "sandbox", "name": "Simulator", "available": True}] if environment == "SANDBOX" else []
    shown += [{"slug": one["slug"], "name": override(business["id"], one)["name"] or one["name"],
               "available": configured(one, environment)}
              for one in offered(business) if override(business["id"], one)["isEnabled"]]  # fmt: skip
    return ok({"gateways": shown})


def account(payment: Row, slug: str) -> Callable[[str], str]:
    """The credentials of the provider for a payment, those with which it was begun."""
    word = payment["environment"].lower()
    found: Row = payment.get("credentials") or next(
        (one["credentials"] for one in gateways.values() if one["slug"] == slug), {})  # fmt: skip
    defaults = {"provider_a": "https://api.paystack.co", "provider_b": "https://api.payaza.africa/live"}
    return lambda name: str(found.get(word + name) or (defaults[slug] if name == "BaseUrl" else ""))


async def handed_off(payment: Row, slug: str) -> str:
    """The redirect URL or launch parameters of a provider."""
    of, reference = account(payment, slug), payment["reference"]
    mail = payment["customerEmail"] or "payer@example.com"
    if slug == "provider_b":
        naira = f"{payment['amount'] // 100}.{payment['amount'] % 100:02d}"
        launch = json.dumps({"merchant_key": of("PublicKey"), "checkout_amount": "?", "currency_code": "NGN",
                             "connection_mode": "Test" if payment["environment"] == "SANDBOX" else "Live",
                             "email_address": mail, "first_name": "Payer", "last_name": "Payer", "phone_number": "",
                             "transaction_reference": reference}).replace('"?"', naira)  # fmt: skip
        return f"{ORIGIN}/launch#{base64.urlsafe_b64encode(launch.encode()).decode()}"
    asked = {"email": mail, "amount": payment["amount"], "currency": "NGN", "reference": reference}
    try:
        answer = await outside.post(f"{of('BaseUrl')}/transaction/initialize", json=asked,
                                    headers={"Authorization": f"Bearer {of('SecretKey')}"})  # fmt: skip
        if answer.status_code == 401:
            raise Refused(400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "gatewaySlug")
        return str(answer.json()["data"]["authorization_url"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        raise Refused(400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug") from None


async def process(request: Request) -> Response:
    if not REFERENCE.fullmatch(request.path_params["reference"]):
        raise Refused(400, "INVALID_REFERENCE", "reference")
    body = await sent(request, {"gatewaySlug": is_text(), "cardNumber": is_text()})
    payment = payment_of(request)
    async with locks[payment["reference"]]:
        if time.time() >= payment["expiresAt"]:
            raise Refused(410, "PAYMENT_EXPIRED")
        if payment["status"] in FINAL:
            raise Refused(409, "PAYMENT_ALREADY_PROCESSED")
        if payment["handoff"] is None:
            business, environment = businesses[payment["business"]], payment["environment"]
            slug = body.get("gatewaySlug") or payment["gateway"]
            if slug not in ("sandbox", *(one["slug"] for one in gateways.values())):
                raise wrong("gatewaySlug")
            gateway = next((one for one in offered(business) if one["slug"] == slug), None)
            handoff, card = f"{ORIGIN}/pay/{payment['reference']}", re.sub(r"\s", "", body.get("cardNumber", ""))
            if slug == "sandbox" and environment == "SANDBOX":
                if card not in CARDS:
                    raise wrong("cardNumber")
            elif (
                payment["origin"] == "dashboard"
                or gateway is None
                or not override(business["id"], gateway)["isEnabled"]
            ):
                raise Refused(400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
            elif not configured(gateway, environment):
                raise Refused(400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "gatewaySlug")
            else:
                credentials = dict(gateway["credentials"])
                handoff = await handed_off(payment, slug)
                payment["credentials"] = credentials
            payment |= {"handoff": handoff, "processor": slug, "gateway": slug, "card": CARDS.get(card)}
            move(payment, "PENDING")
    return ok({"checkoutUrl": payment["handoff"], "next": "simulator" if payment["card"] else "provider"})


async def asked(payment: Row) -> str | None:
    """What the provider says became of it; None when it says nothing."""
    of, reference = account(payment, payment["processor"]), payment["reference"]
    if payment["processor"] == "provider_a":
        way, headers = f"/transaction/verify/{reference}", {"Authorization": f"Bearer {of('SecretKey')}"}
    else:
        way = "/merchant-collection/transfer_notification_controller/merchant/transaction-query?merchant_reference="
        public = base64.b64encode(of("PublicKey").encode()).decode()
        way, headers = way + reference, {"Authorization": f"Payaza {public}"}
    try:
        told = json.loads((await outside.get(of("BaseUrl") + way, headers=headers)).content, parse_float=Decimal)[
            "data"
        ]
        return judged(payment, told)
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None


def judged(payment: Row, told: Row) -> str | None:
    """The status a report yields; a refusal when its money is another."""
    if payment["processor"] == "provider_a":
        status = {"success": "SUCCESS", "failed": "FAILED", "reversed": "REVERSED"}.get(told["status"])
        amount, currency = told.get("requested_amount", told["amount"]), told["currency"]
    else:
        word = told.get("transaction_status") if "merchant_transaction_reference" in told else told.get("status")
        status = {"Completed": "SUCCESS", "Failed": "FAILED"}.get(str(word))
        currency = told.get("currency") or told.get("currency_code")
        paid, fee = Decimal(told["amount_received"]), Decimal(told.get("transaction_fee") or 0)
        amount = payment["amount"] if payment["amount"] in (paid * 100, (paid - fee) * 100) else paid * 100
    if status == "SUCCESS" and (amount, currency) != (payment["amount"], payment["currency"]):
        raise Refused(502, "PAYMENT_AMOUNT_MISMATCH")
    return status


async def verify(request: Request) -> Response:
    payment = payment_of(request)
    async with locks[payment["reference"]]:
        waits = payment["status"] not in FINAL and payment["processor"]
        if waits and (status := payment["card"] or await asked(payment)):
            move(payment, status)
    return ok({"status": payment["status"], "callbackUrl": payment["callbackUrl"]})


# Events of the providers


async def receive(request: Request) -> Response:
    slug, _, where = request.path_params["route"].partition("/")
    if slug not in ("provider_a", "provider_b") or where not in ("", "live", "sandbox"):
        raise Refused(404, "NO_SUCH_ROUTE")
    times = inbound[request.client.host if request.client else ""]
    while times and times[0] <= time.time() - 60:
        times.popleft()
    if len(times) >= CONFIG["rate"]:
        raise Refused(429, "SLOW_DOWN")
    times.append(time.time())
    word, raw = where or "live", await request.body()
    credentials: Row = next((one["credentials"] for one in gateways.values() if one["slug"] == slug), {})
    names = ("WebhookSecret", "SecretKey") if slug == "provider_a" else ("SigningSecret",)
    secret = next((credentials[word + name] for name in names if credentials.get(word + name)), None)
    if secret is None and (slug, where) == ("provider_a", ""):
        raise Refused(503, "NOT_CONFIGURED")
    made = hmac.new((secret or "").encode(), raw, hashlib.sha512).digest()
    good = made.hex() if slug == "provider_a" else base64.b64encode(made).decode()
    if secret is None or not hmac.compare_digest(
        good.encode(), request.headers.get(f"x-{slug}-signature", "").encode()
    ):
        raise Refused(400, "INVALID_WEBHOOK_SIGNATURE")
    try:
        event = json.loads(raw, parse_float=Decimal)
        told = event["data"] if slug == "provider_a" else event
        reference = told.get("reference") if slug == "provider_a" else told.get("merchant_reference")
        payment = payments.get(str(reference))
        known = slug == "provider_b" or str(event["event"]).startswith("charge.")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        if slug == "provider_b":
            return ok({})
        raise wrong("body") from None
    if known and payment and (payment["environment"].lower(), payment["processor"]) == (word, slug):
        async with locks[payment["reference"]]:
            try:
                if status := judged(payment, told):
                    move(payment, status)
            except (Refused, KeyError, TypeError, ArithmeticError):
                pass  # acknowledged; it moves nothing
    return ok({})


async def refused(_: Request, found: Exception) -> Response:
    if isinstance(found, HTTPException):
        found = Refused(found.status_code, "NO_SUCH_ROUTE")
    assert isinstance(found, Refused)
    return JSONResponse({"success": False, "error": found.error}, found.status)


GATEWAY, SHOP = "/admin/gateways/{id}", "/merchant/businesses/{business}"
PAY, PUBLIC = "/payments/{reference}", "/public/payments/{reference}"
ROUTES: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
    ("GET", "/admin/gateways", list_gateways), ("POST", "/admin/gateways", create_gateway),
    ("GET", GATEWAY, read_gateway), ("PATCH", GATEWAY, change_gateway), ("DELETE", GATEWAY, delete_gateway),
    ("POST", f"{GATEWAY}/enable", enable_gateway), ("POST", f"{GATEWAY}/disable", disable_gateway),
    ("GET", f"{GATEWAY}/merchants", merchants), ("PATCH", f"{GATEWAY}/credentials", store_credentials),
    ("POST", f"{GATEWAY}/logo", store_logo), ("GET", "/public/gateways/{id}/logo", read_logo),
    ("GET", f"{SHOP}/gateways", checkout_settings), ("POST", f"{SHOP}/gateways/reorder", reorder),
    ("PATCH", SHOP + "/gateways/{id}", change_setting), ("GET", f"{SHOP}/api-keys", list_keys),
    ("POST", f"{SHOP}/api-keys", create_key), ("DELETE", SHOP + "/api-keys/{id}", revoke_key),
    ("GET", f"{SHOP}/webhooks", list_hooks), ("POST", f"{SHOP}/webhooks", create_hook),
    ("PATCH", SHOP + "/webhooks/{id}", change_hook), ("DELETE", SHOP + "/webhooks/{id}", delete_hook),
    ("POST", SHOP + "/webhooks/{id}/test", test_hook), ("GET", SHOP + "/webhooks/{id}/deliveries", list_deliveries),
    ("GET", "/payments/context", context), ("POST", "/payments/initiate", initiate), ("GET", PAY, read_payment),
    ("POST", f"{PAY}/simulate", simulate), ("GET", PUBLIC, read_public), ("GET", f"{PUBLIC}/gateways", options),
    ("POST", f"{PUBLIC}/process", process), ("GET", f"{PUBLIC}/verify", verify),
    ("POST", f"{SHOP}/test-payment", make_test), ("GET", SHOP + "/test-payment/{reference}", read_test),
    ("POST", SHOP + "/test-payment/{reference}/simulate", simulate_test), ("POST", "/webhooks/{route:path}", receive),
]  # fmt: skip
outside = httpx.AsyncClient(timeout=10, trust_env=False)
app = Starlette(routes=[Route(API + path, handler, methods=[method]) for method, path, handler in ROUTES],
                exception_handlers={Refused: refused, HTTPException: refused})  # fmt: skip

if __name__ == "__main__":
    gateway_row(BUILTIN, "House", status="ACTIVE")
    gateway_row("provider_a", "Provider A", displayOrder=1)
    gateway_row("provider_b", "Provider B", displayOrder=2)
    uvicorn.run(app, host="127.0.0.1", port=CONFIG["port"], log_level="warning", access_log=False)
