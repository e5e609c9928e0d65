"""An honest payment aggregator in Starlette, written from the interface without sight of the harness; since then the
harness had it look at a logo's end.

Its one argument is JSON: `port`, `jwtKey`, `ttl`, `drain`, `rate`, `businesses` (`id`, `name`, `kyc`, `status`, `members`).
What the document does not show is chosen unlike payagg, but for the names of credentials and provider_b's hand-off."""
# fmt: off

import asyncio
import base64
import email.parser
import email.policy
import hashlib
import hmac
import inspect
import json
import re
import secrets
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
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
OUTCOMES = {"paid": "SUCCESS", "declined": "FAILED", "returned": "REVERSED"}
CARDS = {"5060990000000001": "SUCCESS", "5060990000000002": "FAILED", "5060990000000003": "REVERSED", "5060990000000004": None}
REFERENCE = re.compile(r"[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}")
GIVEN = "customerEmail customerName customerPhone callbackUrl metadata"
Row = dict[str, Any]
Rules = dict[str, Callable[[Any], bool]]

businesses: dict[str, Row] = {one["id"]: one for one in CONFIG["businesses"]}
gateways: dict[str, Row] = {}
overrides: dict[tuple[str, str], Row] = {}  # of (business, gateway)
keys: dict[str, Row] = {}
hooks: dict[str, Row] = {}
payments: dict[str, Row] = {}
held: dict[tuple[Any, ...], Row] = {}  # payments by business, environment and idempotency key
locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # of a payment: what waits for a provider holds it
inbound: dict[str, deque[float]] = defaultdict(deque)
tasks: set[asyncio.Task[Any]] = set()
outside = httpx.AsyncClient(timeout=10, trust_env=False)

class Refused(Exception):
    def __init__(self, status: int, code: str, field: str = "") -> None:
        self.status, words = status, f"Refused: {code.lower().replace('_', ' ')}."
        self.error = {"code": code, "message": words} | ({"field": field} if field else {})

def refuse(case: object, status: int, code: str, field: str = "") -> None:
    if case:
        raise Refused(status, code, field)

def reject(case: object, field: str) -> None:
    refuse(case, 400, "VALIDATION_ERROR", field)

def first(rows: Iterable[Any]) -> Any: return next(iter(rows), None)

def stamp(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")

def some(row: Row, names: str) -> Row: return {name: row[name] for name in names.split()}
def answer(data: Any, status: int = 200, **more: Any) -> Response: return JSONResponse({"success": True, "data": data, **more}, status)

# What is sent

def text(low: int = 0, high: int = 4000) -> Callable[[Any], bool]: return lambda value: isinstance(value, str) and low <= len(value) <= high
def count(value: Any) -> bool: return type(value) is int and value >= 0
def flag(value: Any) -> bool: return type(value) is bool
def form(pattern: str) -> Callable[[Any], bool]: return lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value))

def url(*schemes: str) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        with suppress(ValueError):
            return form(r"\S+")(value) and urlsplit(value).scheme in schemes and bool(urlsplit(value).hostname)
        return False
    return holds

def sent(s: Any, rules: Rules, needed: str = "", *, closed: bool = False, nullable: str = "") -> Row:
    """The JSON object of a request by its rules; `closed` allows no other property."""
    body = parsed(s.raw or b"{}")
    reject(not isinstance(body, dict), "body")
    for name in needed.split():
        reject(body.get(name) is None, name)
    for name, value in body.items():
        may_be_null = name in nullable.split() or not closed
        reject(closed if name not in rules else not (may_be_null if value is None else rules[name](value)), name)
    return {name: value for name, value in body.items() if name in rules and (value is not None or name in nullable.split())}

def parsed(raw: bytes, decimal: Callable[[str], Any] = float) -> Any:
    """JSON, or None."""
    with suppress(ValueError, RecursionError):
        return json.loads(raw, parse_float=decimal)
    return None

# Who asks

def nobody(_: Any) -> None:
    """The route asks for no credentials."""

def bearer(s: Any) -> str:
    scheme, _, token = s.headers.get("authorization", "").partition(" ")
    refuse(scheme.lower() != "bearer" or not token.strip(), 401, "UNAUTHORIZED")
    return str(token.strip())

def claims(s: Any, realm: str) -> Row:
    found, token = {}, bearer(s)
    with suppress(jwt.PyJWTError):
        found = jwt.decode(token, CONFIG["jwtKey"], algorithms=["HS256"], options={"require": ["exp", "sub"]})
    refuse(not found, 401, "UNAUTHORIZED")
    refuse(found.get("type") != realm, 403, "WRONG_REALM")
    return found

def admin(s: Any) -> None:
    refuse(claims(s, "admin").get("role") not in ("ADMIN", "SUPER_ADMIN"), 403, "WRONG_ROLE")
    if "gateway" in s.params:
        s.gateway = gateways.get(s.params["gateway"])
        refuse(s.gateway is None, 404, "NO_SUCH_GATEWAY")
        settled(s.gateway)

def manager(s: Any) -> None:
    found, business = claims(s, "merchant"), businesses.get(s.params["business"])
    is_theirs = business and business["members"].get(found["sub"]) in ("OWNER", "ADMIN")
    refuse(not found.get("emailVerified") or not is_theirs, 403, "NOT_A_MANAGER")
    s.business, s.environment = business, "SANDBOX"

def changer(s: Any) -> None:
    """A manager of a business that is active."""
    manager(s)
    refuse(s.business["status"] != "ACTIVE", 403, "BUSINESS_RESTRICTED")

def server(s: Any) -> None:
    digest = hashlib.sha256(bearer(s).encode()).hexdigest()
    key = first(one for one in keys.values() if one["digest"] == digest and not one["revokedAt"])
    refuse(key is None, 401, "INVALID_API_KEY")
    refuse(s.path.endswith("/simulate") and key["environment"] == "LIVE", 403, "SANDBOX_ONLY")
    s.business, s.environment = businesses[key["business"]], key["environment"]
    refuse(s.business["status"] != "ACTIVE", 403, "BUSINESS_RESTRICTED")
    refuse(key["environment"] == "LIVE" and s.business["kyc"] != "APPROVED", 403, "KYC_REQUIRED")
    key["lastUsedAt"] = time.time()

# Gateways

def gateway_row(slug: str, name: str, **more: Any) -> Row:
    now = time.time()
    row = {"id": secrets.token_hex(10), "slug": slug, "name": name, "description": None, "displayOrder": 0, "status": "DISABLED",
           "drainStartedAt": None, "credentials": {}, "logo": None, "createdAt": now, "updatedAt": now, **more}
    gateways[row["id"]] = row
    return row

def settled(gateway: Row) -> Row:
    if gateway["status"] == "DRAINING" and time.time() >= gateway["drainStartedAt"] + CONFIG["drain"]:
        gateway |= {"status": "DISABLED", "drainStartedAt": None}
    return gateway

def override(business: Row, gateway: Row) -> Row:
    plain = {"isEnabled": True, "businessDisplayOrder": None, "displayName": None, "isDefault": False, "at": gateway["createdAt"]}
    return overrides.get((business["id"], gateway["id"]), plain)

def presentation(gateway: Row) -> Row:
    path = f"{API}/public/gateways/{gateway['id']}/logo" if gateway["logo"] else None
    return some(gateway, "id slug name description displayOrder") | {
        "logoPath": path and path.removeprefix(API), "logoUrl": path, "isBuiltIn": gateway["slug"] == BUILTIN}

def summary(gateway: Row) -> Row:
    began = gateway["drainStartedAt"]
    users = [one for one in businesses.values() if one["status"] == "ACTIVE" and override(one, gateway)["isEnabled"]]
    return presentation(gateway) | {
        "isActive": gateway["status"] == "ACTIVE", "status": gateway["status"], "drainStartedAt": stamp(began),
        "drainEndsAt": stamp(began and began + CONFIG["drain"]), "hasCredentials": bool(gateway["credentials"]),
        "businessCount": len(users), "createdAt": stamp(gateway["createdAt"]), "updatedAt": stamp(gateway["updatedAt"])}

GATEWAY_RULES: Rules = {"name": text(2, 100), "description": text(0, 1000), "displayOrder": count}

def create_gateway(s: Any) -> Any:
    is_slug = form(r"(?=.{2,50}$)[a-z0-9]+(?:-[a-z0-9]+)*")
    body = sent(s, GATEWAY_RULES | {"slug": is_slug}, "slug name")
    refuse(body["slug"] in {"sandbox", *(one["slug"] for one in gateways.values())}, 409, "SLUG_TAKEN")
    return answer(summary(gateway_row(**body)), 201)

def read_gateway(s: Any) -> Any:
    each = [(one, override(one, s.gateway)) for one in businesses.values()]
    return summary(s.gateway) | {"overrides": [
        {"businessId": business["id"], "businessName": business["name"], "updatedAt": stamp(one["at"])}
        for business, one in each if not one["isEnabled"]]}

def change_gateway(s: Any) -> Any:
    body = sent(s, GATEWAY_RULES, closed=True, nullable="description")
    reject(s.gateway["slug"] == BUILTIN and body.keys() - {"displayOrder"}, first([*body.keys() - {"displayOrder"}, ""]))
    return changed(s.gateway, **body)

def changed(gateway: Row, **change: Any) -> Row:
    gateway |= change | {"updatedAt": time.time()}
    return summary(gateway)

def delete_gateway(s: Any) -> Any:
    refuse(s.gateway["slug"] == BUILTIN or s.gateway["status"] != "DISABLED", 409, "STILL_NEEDED")
    del gateways[s.gateway["id"]]
    return {"message": "The gateway is gone."}

def enable_gateway(s: Any) -> Any:
    refuse(s.gateway["status"] == "ACTIVE", 409, "IS_ENABLED")
    return changed(s.gateway, status="ACTIVE", drainStartedAt=None)

def disable_gateway(s: Any) -> Any:
    refuse(s.gateway["slug"] == BUILTIN or s.gateway["status"] != "ACTIVE", 409, "CANNOT_DRAIN")
    return changed(s.gateway, status="DRAINING", drainStartedAt=time.time())

def merchants(s: Any) -> Any:
    numbers, search = {}, s.query.get("search", "")
    for name, default, high in (("page", "1", 10**9), ("perPage", "20", 100)):
        asked = s.query.get(name, default)
        reject(not re.fullmatch("[0-9]{1,9}", asked) or not 1 <= int(asked) <= high, name)
        numbers[name] = int(asked)
    reject(len(search) > 100, "search")
    rows = [some(one, "isEnabled displayName isDefault") | {
                "id": f"{s.gateway['id']}.{business['id']}", "businessId": business["id"], "businessName": business["name"],
                "displayOrder": one["businessDisplayOrder"] or 0, "createdAt": stamp(one["at"])}
            for business in businesses.values() for one in [override(business, s.gateway)]
            if business["status"] == "ACTIVE" and search.lower() in business["name"].lower()]
    begin = (numbers["page"] - 1) * numbers["perPage"]
    return answer(rows[begin : begin + numbers["perPage"]], meta=numbers | {"total": len(rows)})

def store_credentials(s: Any) -> Any:
    def fit(value: Any) -> bool:
        return isinstance(value, dict) and 1 <= len(value) <= 50 and all(map(text(), value.values()))

    changed(s.gateway, **sent(s, {"credentials": fit}, "credentials"))
    return JSONResponse({"success": True})

def store_logo(s: Any) -> Any:
    head = f"Content-Type: {s.headers.get('content-type', '')}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + s.raw)
    parts = [one for one in message.iter_parts() if one.get_param("name", header="content-disposition") == "file"]
    data = parts[0].get_payload(decode=True) if parts else None
    forms = {"png": (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"), "jpeg": (b"\xff\xd8\xff", b"\xff\xd9")}
    data = data if isinstance(data, bytes) and len(data) <= 2 * 1024 * 1024 else b""
    kind = first(name for name, (begin, end) in forms.items() if data.startswith(begin) and data.endswith(end))
    reject(kind is None, "file")
    s.gateway["logo"] = (data, f"image/{kind}")
    return answer({"logoUrl": presentation(s.gateway)["logoUrl"]}, 201)

def read_logo(s: Any) -> Any:
    logo: Any = gateways.get(s.params["id"], {}).get("logo")
    refuse(logo is None, 404, "NO_LOGO")
    headers = {"content-type": logo[1], "cache-control": "public, max-age=3600", "x-content-type-options": "nosniff"}
    return Response(logo[0], headers=headers)

# What a business makes of them

def as_seen(business: Row, gateway: Row) -> Row:
    return presentation(gateway) | some(override(business, gateway), "isEnabled businessDisplayOrder displayName isDefault")

def offered(business: Row) -> list[Row]:
    def place(one: Row) -> tuple[bool, int]:
        order = override(business, one)["businessDisplayOrder"]
        return one["slug"] != BUILTIN, one["displayOrder"] if order is None else order
    return sorted((one for one in gateways.values() if settled(one)["status"] == "ACTIVE"), key=place)

def enabled(business: Row) -> dict[str, Row]: return {one["slug"]: one for one in offered(business) if override(business, one)["isEnabled"]}
def list_settings(s: Any) -> Any: return [as_seen(s.business, one) for one in offered(s.business)]

def change_setting(s: Any) -> Any:
    gateway, rules = gateways.get(s.params["id"], {}), {"isEnabled": flag, "displayOrder": count, "displayName": text(0, 50), "isDefault": flag}
    refuse(gateway not in offered(s.business), 404, "NO_SUCH_GATEWAY")
    body = sent(s, rules, closed=True, nullable="displayName")
    reject(gateway["slug"] == BUILTIN and body.get("isEnabled") is False, "isEnabled")
    reject(gateway["slug"] == BUILTIN and "displayOrder" in body, "displayOrder")
    body |= {"businessDisplayOrder": body["displayOrder"]} if "displayOrder" in body else {}
    new = override(s.business, gateway) | body | {"at": time.time()}
    reject(not new["isEnabled"] and body.get("isDefault"), "isDefault")
    new["isDefault"] &= new["isEnabled"]
    for one in [one for (owner, _), one in overrides.items() if owner == s.business["id"] and new["isDefault"]]:
        one["isDefault"] = False
    overrides[s.business["id"], gateway["id"]] = new
    return as_seen(s.business, gateway)

def reorder(s: Any) -> Any:
    active = {one["id"]: one for one in offered(s.business)}

    def fit(value: Any) -> bool:
        return isinstance(value, list) and 1 <= len(value) <= 100 and all(
            isinstance(one, dict) and count(one.get("displayOrder")) and one.get("gatewayId") in active for one in value)
    for one in sent(s, {"order": fit}, "order")["order"]:
        if (gateway := active[one["gatewayId"]])["slug"] != BUILTIN:
            new = override(s.business, gateway) | {"businessDisplayOrder": one["displayOrder"], "at": time.time()}
            overrides[s.business["id"], gateway["id"]] = new
    return list_settings(s)

# Keys and endpoints of merchants

def key_record(key: Row) -> Row:
    return some(key, "id name publicKey secretKeyDisplay") | {"status": "REVOKED" if key["revokedAt"] else "ACTIVE"} | {
        name: stamp(key[name]) for name in ("lastUsedAt", "createdAt", "revokedAt")}

def keys_of(business: Row, environment: str, *, revoked: bool) -> list[Row]:
    return [one for one in keys.values() if bool(one["revokedAt"]) is revoked
            and (one["business"], one["environment"]) == (business["id"], environment)]

def list_keys(s: Any) -> Any:
    def group(environment: str) -> list[Row]:
        gone = sorted(keys_of(s.business, environment, revoked=True), key=lambda one: -float(one["revokedAt"]))[:20]
        return [key_record(one) for one in [*keys_of(s.business, environment, revoked=False), *gone]]

    return {"sandbox": group("SANDBOX"), "live": group("LIVE")}

def create_key(s: Any) -> Any:
    rules: Rules = {"environment": form("SANDBOX|LIVE"), "name": text(2, 100)}
    body = sent(s, rules, "environment name", closed=True)
    refuse(body["environment"] == "LIVE" and s.business["kyc"] != "APPROVED", 403, "KYC_REQUIRED")
    refuse(len(keys_of(s.business, body["environment"], revoked=False)) >= 5, 409, "KEY_LIMIT_REACHED")
    word = {"SANDBOX": "sand", "LIVE": "live"}[body["environment"]]
    secret = f"ssk_{word}_{secrets.token_hex(20)}"
    key = {"id": secrets.token_hex(10), "business": s.business["id"], **body, "lastUsedAt": None, "revokedAt": None,
           "publicKey": f"spk_{word}_{secrets.token_hex(12)}", "secretKeyDisplay": f"ssk_{word}_...{secret[-4:]}",
           "digest": hashlib.sha256(secret.encode()).hexdigest(), "createdAt": time.time()}
    keys[key["id"]] = key
    return answer(some(key, "id name publicKey environment")
                | {"secretKey": secret, "createdAt": stamp(key["createdAt"]), "secretKeyNote": "Shown once."}, 201)

def revoke_key(s: Any) -> Any:
    key = keys.get(s.params["id"], {})
    refuse(key.get("business") != s.business["id"], 404, "NO_SUCH_KEY")
    refuse(key["revokedAt"], 409, "IS_REVOKED")
    key["revokedAt"] = time.time()
    return {"message": "The key opens nothing any more."}

def hook_record(hook: Row) -> Row:
    ends = [one["delivered"] for one in hook["deliveries"]]
    return some(hook, "id url description environment isActive events") | {
        "secretLast4": hook["secret"][-4:], "createdAt": stamp(hook["createdAt"]),
        "deliverySummary": {"successful": ends.count(True), "failed": ends.count(False)}}

def are_events(value: Any) -> bool: return isinstance(value, list) and all(one in EVENTS.values() for one in value)
HOOK_RULES: Rules = {"url": url("http", "https"), "description": text(0, 200), "events": are_events}

def create_hook(s: Any) -> Any:
    body = sent(s, HOOK_RULES | {"environment": form("SANDBOX|LIVE")}, "url environment", closed=True)
    reject(body["environment"] == "LIVE" and not url("https")(body["url"]), "url")
    active = [one for one in hooks.values() if one["business"] == s.business["id"] and one["isActive"]]
    refuse(len(active) >= 5, 409, "ENOUGH_ENDPOINTS")
    hook = {"id": secrets.token_hex(10), "business": s.business["id"], "description": None, "events": [], **body,
            "secret": secrets.token_hex(24), "isActive": True, "deliveries": [], "createdAt": time.time()}
    hooks[hook["id"]] = hook
    return answer(hook_record(hook) | {"secret": hook["secret"]}, 201)

def hook_of(s: Any) -> Row:
    hook = hooks.get(s.params["id"], {})
    refuse(hook.get("business") != s.business["id"], 404, "NO_SUCH_ENDPOINT")
    return hook

def change_hook(s: Any) -> Any:
    hook_of(s).update({"isActive": False} if s.method == "DELETE" else sent(s, HOOK_RULES, closed=True, nullable="description"))
    return hook_record(hook_of(s))

async def deliver(hook: Row, kind: str, body: bytes, *pauses: float) -> bool:
    signature = hmac.new(hook["secret"].encode(), body, hashlib.sha256).hexdigest()
    headers, delivered = {"X-Service-Signature": signature, "Content-Type": "application/json"}, False
    for pause in pauses:
        await asyncio.sleep(pause)
        with suppress(httpx.HTTPError):
            delivered = (await outside.post(hook["url"], content=body, headers=headers)).is_success
        if delivered:
            break
    hook["deliveries"].append({"event": kind, "delivered": delivered, "at": stamp(time.time())})
    return delivered

async def test_hook(s: Any) -> Any: return {"arrived": await deliver(hook_of(s), "endpoint.tried", b'{"name":"endpoint.tried"}', 0)}

def list_deliveries(s: Any) -> Any:
    log = hook_of(s)["deliveries"]
    return answer(log[::-1][:20], meta={"page": 1, "perPage": 20, "total": len(log)})

# Payments

def detail(payment: Row) -> Row:
    return some(payment, f"reference amount currency gateway status {GIVEN}") | {"startedAt": stamp(payment["createdAt"])}

def move(payment: Row, status: str | None) -> None:
    """To a later status; what is final stays."""
    if status is None or payment["status"] in (*EVENTS, status):
        return
    payment["status"], kind = status, EVENTS.get(status)
    for hook in hooks.values() if kind else ():
        whose = (payment["business"], payment["environment"])
        if hook["isActive"] and kind in (hook["events"] or [kind]) and (hook["business"], hook["environment"]) == whose:
            body = json.dumps({"name": kind, "at": stamp(time.time()), "payment": detail(payment)}).encode()
            tasks.add(task := asyncio.ensure_future(deliver(hook, kind or "", body, 0, 1, 5)))
            task.add_done_callback(tasks.discard)

def configured(gateway: Row, environment: str) -> bool:
    name = {"provider_a": "SecretKey", "provider_b": "PublicKey"}.get(gateway["slug"], "")
    word = environment.lower()
    return bool(gateway["credentials"].get(word + name)) and gateway["credentials"].get(f"{word}Enabled") != "false"

def begin(s: Any, body: Row) -> Any:
    key, slug = (s.business["id"], s.environment, body.get("idempotencyKey")), body.get("gateway")
    if key in held:
        refuse(current(held[key])["status"] in EVENTS, 409, "DUPLICATE_PAYMENT")
        return held[key]["first"]
    usable = enabled(s.business)
    if slug and (slug, s.environment) != ("sandbox", "SANDBOX"):
        refuse(slug not in {one["slug"] for one in offered(s.business)}, 400, "GATEWAY_NOT_FOUND", "gateway")
        refuse(slug not in usable, 400, "GATEWAY_DISABLED", "gateway")
    is_served = s.environment == "SANDBOX" or any(configured(one, "LIVE") for one in usable.values())
    refuse(not is_served, 503, "NO_GATEWAY_AVAILABLE")
    now, letters = time.time(), "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    reference = f"{PREFIX}-{datetime.now(UTC):%Y%m%d}-{''.join(secrets.choice(letters) for _ in range(6))}"
    payment = {name: body.get(name) for name in f"{GIVEN} gateway amount".split()} | {
        "reference": reference, "currency": "NGN", "environment": s.environment, "business": s.business["id"], "createdAt": now,
        "status": "INITIATED", "expiresAt": now + CONFIG["ttl"], "isTest": slug == "sandbox", "tries": 0, "handoff": None, "processor": None}
    payment["first"] = some(payment, "reference amount currency environment status") | {
        "checkoutUrl": f"{ORIGIN}/pay/{reference}", "expiresAt": stamp(payment["expiresAt"])}
    payments[reference] = payment
    held.update({key: payment} if key[2] is not None else {})
    return answer(payment["first"], 201)

TEST_RULES: Rules = {
    "amount": lambda value: count(value) and 100 <= value < 2**53, "currency": form("NGN"), "customerName": text(),
    "customerEmail": form(r"[^@\s]+@[^@\s]+\.[^@\s]+"), "customerPhone": text(), "callbackUrl": url("http", "https"),
    "metadata": lambda value: isinstance(value, dict) and len(value) <= 50, "idempotencyKey": text(1, 255)}
PAYMENT_RULES = TEST_RULES | {"gateway": text(), "webhookUrl": url("https")}

def context(s: Any) -> Any:
    return {"businessId": s.business["id"], "businessName": s.business["name"], "environment": s.environment,
            "kycStatus": s.business["kyc"]}

def make_test(s: Any) -> Any:
    body = sent(s, TEST_RULES, "amount")
    refuse(not keys_of(s.business, "SANDBOX", revoked=False), 400, "NO_SANDBOX_KEY")
    return begin(s, body | {"gateway": "sandbox"})

def current(payment: Row) -> Row:
    """As its window leaves it."""
    if payment["status"] == "INITIATED" and time.time() >= payment["expiresAt"]:
        move(payment, "FAILED")
    return payment

def reference_of(s: Any) -> str:
    refuse(not REFERENCE.fullmatch(s.params["reference"]), 400, "INVALID_REFERENCE", "reference")
    return str(s.params["reference"])

def payment_of(s: Any) -> Row:
    """Of whoever asks; a payer sees each."""
    found: Any = payments.get(reference_of(s))
    is_theirs = found and (not s.business or (found["business"], found["environment"]) == (s.business["id"], s.environment))
    refuse(not is_theirs, 404, "PAYMENT_NOT_FOUND")
    return current(found)

async def simulate(s: Any) -> Any:
    reference_of(s)
    body, payment = sent(s, {"outcome": form("|".join(OUTCOMES))}, "outcome"), payment_of(s)
    async with locks[payment["reference"]]:
        refuse(payment["status"] in EVENTS, 409, "PAYMENT_ALREADY_FINAL")
        move(payment, OUTCOMES[body["outcome"]])
    return detail(payment)

# The hosted checkout

def read_public(s: Any) -> Any:
    payment = payment_of(s)
    return some(payment, "reference amount currency status") | {
        "payTo": businesses[payment["business"]]["name"], "until": stamp(payment["expiresAt"])}

def options(s: Any) -> Any:
    payment = payment_of(s)
    business, environment = businesses[payment["business"]], payment["environment"]
    rows = [] if payment["isTest"] else [
        {"slug": one["slug"], "name": override(business, one)["displayName"] or one["name"], "available": configured(one, environment)}
        for one in enabled(business).values()]
    simulator = {"slug": "sandbox", "name": "Simulator", "available": True}
    return {"gateways": [*([simulator] if environment == "SANDBOX" else []), *rows]}

def account(payment: Row, gateway: Row) -> Callable[[str], str]:
    """The credentials of the provider for a payment."""
    word = payment["environment"].lower()
    defaults = {"provider_aBaseUrl": "https://api.paystack.co", "provider_bBaseUrl": "https://api.payaza.africa/live"}
    return lambda name: str(gateway["credentials"].get(word + name) or defaults.get(gateway["slug"] + name, ""))

async def handed_off(payment: Row, gateway: Row) -> str:
    """The redirect URL or launch parameters of a provider; each try is under a reference of its own."""
    payment["tries"] += 1
    payment["named"] = reference = f"{payment['reference']}-{payment['tries']}"
    of, mail = account(payment, gateway), payment["customerEmail"] or "payer@example.com"
    if gateway["slug"] == "provider_b":
        naira = f"{payment['amount'] // 100}.{payment['amount'] % 100:02d}"
        launch = json.dumps({"merchant_key": of("PublicKey"), "checkout_amount": "?", "currency_code": "NGN",
                             "connection_mode": "Test" if payment["environment"] == "SANDBOX" else "Live",
                             "email_address": mail, "first_name": "Payer", "last_name": "Payer", "phone_number": "",
                             "transaction_reference": reference}).replace('"?"', naira)
        return f"{ORIGIN}/launch#{base64.urlsafe_b64encode(launch.encode()).decode()}"
    asked = {"email": mail, "amount": payment["amount"], "currency": "NGN", "reference": reference}
    with suppress(httpx.HTTPError, ValueError, KeyError, TypeError):
        headers = {"Authorization": f"Bearer {of('SecretKey')}"}
        told = await outside.post(f"{of('BaseUrl')}/transaction/initialize", json=asked, headers=headers)
        return str(told.json()["data"]["authorization_url"])
    raise Refused(400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")

async def process(s: Any) -> Any:
    reference = reference_of(s)
    body, payment = sent(s, {"gatewaySlug": text(), "cardNumber": text()}), payment_of(s)
    async with locks[reference]:
        refuse(time.time() >= payment["expiresAt"], 410, "PAYMENT_EXPIRED")
        refuse(payment["status"] in EVENTS, 409, "PAYMENT_ALREADY_PROCESSED")
        if payment["handoff"]:
            return {"checkoutUrl": payment["handoff"]}
        slug, card = body.get("gatewaySlug") or payment["gateway"], re.sub(r"\s", "", body.get("cardNumber", ""))
        reject(slug not in {"sandbox", *(one["slug"] for one in gateways.values())}, "gatewaySlug")
        gateway = None if payment["isTest"] else enabled(businesses[payment["business"]]).get(slug)
        is_simulated, handoff = (slug, payment["environment"]) == ("sandbox", "SANDBOX"), f"{ORIGIN}/pay/{reference}"
        reject(is_simulated and card not in CARDS, "cardNumber")
        refuse(not gateway and not is_simulated, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
        if gateway:
            refuse(not configured(gateway, payment["environment"]), 400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "gatewaySlug")
            handoff = await handed_off(payment, gateway)
        payment |= {"handoff": handoff, "processor": gateway, "gateway": slug, "card": CARDS.get(card)}
        move(payment, "PENDING")
    return {"checkoutUrl": handoff, "opensAt": slug}

async def asked(payment: Row) -> str | None:
    """What the provider says became of it; None when it says nothing."""
    of, reference, slug = account(payment, payment["processor"]), payment["named"], payment["processor"]["slug"]
    way, proof = f"/transaction/verify/{reference}", f"Bearer {of('SecretKey')}"
    if slug == "provider_b":
        way = "/merchant-collection/transfer_notification_controller/merchant/transaction-query?merchant_reference=" + reference
        proof = f"Payaza {base64.b64encode(of('PublicKey').encode()).decode()}"
    with suppress(httpx.HTTPError, ValueError, KeyError, TypeError, ArithmeticError):
        told = await outside.get(of("BaseUrl") + way, headers={"Authorization": proof})
        return judged(payment, slug, parsed(told.content, Decimal)["data"])
    return None

def judged(payment: Row, slug: str, told: Row) -> str | None:
    """The status that a report yields; a refusal when its money is another."""
    if slug == "provider_a":
        status = {"success": "SUCCESS", "failed": "FAILED", "reversed": "REVERSED"}.get(told["status"])
        amounts, currency = {told.get("requested_amount", told["amount"])}, told["currency"]
    else:
        word = told.get("transaction_status") if "merchant_transaction_reference" in told else told.get("status")
        status, currency = {"Completed": "SUCCESS", "Failed": "FAILED"}.get(str(word)), told.get("currency", told.get("currency_code"))
        paid, fee = Decimal(told["amount_received"]), Decimal(told.get("transaction_fee") or 0)
        amounts = {paid * 100, (paid - fee) * 100}
    refuse(status == "SUCCESS" and (payment["amount"] not in amounts or currency != payment["currency"]), 502, "PAYMENT_AMOUNT_MISMATCH")
    return status

async def verify(s: Any) -> Any:
    payment = payment_of(s)
    async with locks[payment["reference"]]:
        if payment["status"] not in EVENTS and payment["handoff"]:
            move(payment, await asked(payment) if payment["processor"] else payment["card"])
    return some(payment, "status callbackUrl")

# Events of the providers

async def receive(s: Any) -> Any:
    slug, _, where = s.params["route"].partition("/")
    refuse(slug not in ("provider_a", "provider_b") or where not in ("", "live", "sandbox"), 404, "NO_SUCH_ROUTE")
    times, word = inbound[s.client], where or "live"
    while times and times[0] <= time.time() - 60:
        times.popleft()
    refuse(len(times) >= CONFIG["rate"], 429, "SLOW_DOWN")
    times.append(time.time())
    credentials: Row = first(one["credentials"] for one in gateways.values() if one["slug"] == slug) or {}
    names = ("WebhookSecret", "SecretKey") if slug == "provider_a" else ("SigningSecret",)
    secret = first(credentials[word + name] for name in names if word + name in credentials)
    refuse(secret is None and (slug, where) == ("provider_a", ""), 503, "NOT_CONFIGURED")
    digest, signed = hmac.new((secret or "").encode(), s.raw, hashlib.sha512).digest(), s.headers.get(f"x-{slug}-signature", "")
    good = digest.hex() if slug == "provider_a" else base64.b64encode(digest).decode()
    is_genuine = secret and hmac.compare_digest(good.encode(), signed.encode())
    refuse(not is_genuine, 400, "INVALID_WEBHOOK_SIGNATURE")
    event = parsed(s.raw, Decimal)
    reject(slug == "provider_a" and not isinstance(event, dict), "body")
    # What cannot be read or tells of other money is acknowledged, and moves nothing.
    with suppress(Refused, KeyError, TypeError, AttributeError, ArithmeticError):
        told = event["data"] if slug == "provider_a" and event["event"].startswith("charge.") else event
        payment = payments[told["reference" if slug == "provider_a" else "merchant_reference"][:19]]
        async with locks[payment["reference"]]:
            if payment["environment"].lower() == word and payment["processor"] and payment["processor"]["slug"] == slug:
                move(payment, judged(payment, slug, told))
    return {}

def refused(_: Any, found: Exception) -> Response:
    if isinstance(found, HTTPException):
        found = Refused(found.status_code, "NO_SUCH_ROUTE")
    assert isinstance(found, Refused)
    return JSONResponse({"success": False, "error": found.error}, found.status)

def route(method: str, path: str, guard: Callable[[Any], None], handler: Callable[[Any], Any]) -> Route:
    async def endpoint(r: Request) -> Response:
        s: Any = SimpleNamespace(raw=await r.body(), params=r.path_params, query=r.query_params, headers=r.headers, business=None,
                                 client=r.client.host if r.client else "", path=r.url.path, method=method)
        guard(s)
        found = handler(s)
        found = await found if inspect.isawaitable(found) else found
        return found if isinstance(found, Response) else answer(found)

    return Route(API + path, endpoint, methods=[method])

ONE, SHOP, PAY, PUBLIC = "/admin/gateways/{gateway}", "/merchant/businesses/{business}", "/payments/{reference}", "/public/payments/{reference}"
ROUTES = [
    route("GET", "/admin/gateways", admin, lambda _: [summary(settled(one)) for one in gateways.values()]), route("POST", "/admin/gateways", admin, create_gateway),
    route("GET", ONE, admin, read_gateway), route("PATCH", ONE, admin, change_gateway), route("DELETE", ONE, admin, delete_gateway),
    route("POST", f"{ONE}/enable", admin, enable_gateway), route("POST", f"{ONE}/disable", admin, disable_gateway),
    route("GET", f"{ONE}/merchants", admin, merchants), route("PATCH", f"{ONE}/credentials", admin, store_credentials),
    route("POST", f"{ONE}/logo", admin, store_logo), route("GET", "/public/gateways/{id}/logo", nobody, read_logo),
    route("GET", f"{SHOP}/gateways", manager, list_settings), route("POST", f"{SHOP}/gateways/reorder", changer, reorder),
    route("PATCH", SHOP + "/gateways/{id}", changer, change_setting), route("GET", f"{SHOP}/api-keys", changer, list_keys),
    route("POST", f"{SHOP}/api-keys", changer, create_key), route("DELETE", SHOP + "/api-keys/{id}", manager, revoke_key),
    route("GET", f"{SHOP}/webhooks", manager,
          lambda s: [hook_record(one) for one in hooks.values() if one["business"] == s.business["id"]]), route("POST", f"{SHOP}/webhooks", changer, create_hook),
    route("PATCH", SHOP + "/webhooks/{id}", changer, change_hook), route("DELETE", SHOP + "/webhooks/{id}", changer, change_hook),
    route("POST", SHOP + "/webhooks/{id}/test", changer, test_hook),
    route("GET", SHOP + "/webhooks/{id}/deliveries", manager, list_deliveries), route("GET", "/payments/context", server, context),
    route("POST", "/payments/initiate", server, lambda s: begin(s, sent(s, PAYMENT_RULES, "amount"))), route("GET", PAY, server, lambda s: detail(payment_of(s))),
    route("POST", f"{PAY}/simulate", server, simulate), route("GET", PUBLIC, nobody, read_public),
    route("GET", f"{PUBLIC}/gateways", nobody, options), route("POST", f"{PUBLIC}/process", nobody, process),
    route("GET", f"{PUBLIC}/verify", nobody, verify), route("POST", f"{SHOP}/test-payment", changer, make_test),
    route("GET", SHOP + "/test-payment/{reference}", manager, lambda s: detail(payment_of(s))),
    route("POST", SHOP + "/test-payment/{reference}/simulate", manager, simulate),
    route("POST", "/webhooks/{route:path}", nobody, receive)]
app = Starlette(routes=ROUTES, exception_handlers={Refused: refused, HTTPException: refused})

if __name__ == "__main__":
    gateway_row(BUILTIN, "House", status="ACTIVE")
    gateway_row("provider_a", "Provider A", displayOrder=1)
    gateway_row("provider_b", "Provider B", displayOrder=2)
    uvicorn.run(app, host="127.0.0.1", port=CONFIG["port"], log_level="warning", access_log=False)
