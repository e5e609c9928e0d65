"""An honest payment aggregator in Starlette, written from the interface without sight of the harness; since then the
harness had it look at a logo's end.

Its one argument is JSON: `port`, `jwtKey`, `ttl`, `drain`, `rate` and `businesses` (`id`, `name`, `kyc`, `status`,
`members`). What the document does not show is left out, as to change or to try a webhook endpoint, or chosen unlike
payagg, but for the names of credentials and provider_b's hand-off. A row has the names of the interface; what begins
with an underscore is never shown."""
# fmt: off

import asyncio
import base64
import email.message
import email.policy
import hashlib
import hmac
import inspect
import json
import re
import secrets
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import httpx
import jwt
import uvicorn
from jsonschema import Draft4Validator
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

CONFIG = json.loads(sys.argv[1])
ORIGIN = f"http://127.0.0.1:{CONFIG['port']}"
EVENTS = {"SUCCESS": "transaction.paid", "FAILED": "transaction.declined", "REVERSED": "transaction.returned"}
OUTCOMES = {"paid": "SUCCESS", "declined": "FAILED", "returned": "REVERSED"}
CARDS = {"5060990000000001": "SUCCESS", "5060990000000002": "FAILED", "5060990000000003": "REVERSED",
         "5060990000000004": None}
WORDS = {"success": "SUCCESS", "Completed": "SUCCESS", "failed": "FAILED", "Failed": "FAILED", "reversed": "REVERSED"}
TRANSACTION_QUERY = "/merchant-collection/transfer_notification_controller/merchant/transaction-query"
PROVIDERS = {  # credential that is needed, those that prove an event, name of an event's reference, where to ask
    "provider_a": ("SecretKey", ("WebhookSecret", "SecretKey"), "reference", "/transaction/verify/"),
    "provider_b": ("PublicKey", ("SigningSecret",), "merchant_reference", f"{TRANSACTION_QUERY}?merchant_reference=")}
Row = dict[str, Any]

businesses: dict[str, Row] = {one["id"]: one for one in CONFIG["businesses"]}
settings: dict[tuple[str, str], Row] = defaultdict(lambda: {  # of (business, gateway)
    "isEnabled": True, "businessDisplayOrder": None, "displayName": None, "isDefault": False, "_updatedAt": None})
gateways: dict[str, Row] = {}
keys: dict[str, Row] = {}
endpoints: dict[str, Row] = {}
payments: dict[str, Row] = {}
payments_by_token: dict[tuple[Any, ...], Row] = {}  # business, environment and idempotency key
inbound: dict[str, list[float]] = defaultdict(list)  # times of events by address
deliveries: set[asyncio.Task[Any]] = set()
outside = httpx.AsyncClient(timeout=10, trust_env=False)

def refuse(case: object, status: int, code: str, field: str = "") -> None:
    if case:
        raise HTTPException(status, code, {"field": field} if field else None)

def reject(case: object, field: str) -> None:
    refuse(case, 400, "VALIDATION_ERROR", field)

def answer(data: Any, status: int = 200, **more: Any) -> Response:
    return JSONResponse({"success": True, "data": data, **more}, status)

def stamp(later: float = 0) -> str:
    return (datetime.now(UTC) + timedelta(seconds=later)).isoformat(timespec="microseconds")

def shown(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("_")}

def some(row: Row, names: str) -> Row:
    return {name: row[name] for name in names.split()}

def parsed(raw: bytes, number: Callable[[str], Any] = float) -> Any:
    """JSON, or None."""
    with suppress(ValueError, RecursionError):
        return json.loads(raw, parse_float=number)
    return None

# What is sent

def text(low: int = 0, high: int = 4000, kind: Any = "string") -> Row:
    return {"type": kind, "minLength": low, "maxLength": high}

def form(pattern: str) -> Row:
    return {"type": "string", "pattern": rf"\A(?:{pattern})\Z"}

class Body:
    """An object, by a JSON Schema of each field. Closed, it has no other property; null is refused unless it names it."""

    def __init__(self, needed: str = "", closed: bool = False, /, **fields: Row) -> None:
        self.needed, self.closed, self.fields = needed.split(), closed, fields

    def check(self, body: Any) -> Row:
        reject(not isinstance(body, dict), "body")
        for name in [*self.needed, *body]:
            is_known = name in self.fields
            reject(self.closed and not is_known, name)
            reject(is_known and not Draft4Validator(self.fields[name]).is_valid(body.get(name)), name)
        return {name: value for name, value in body.items() if name in self.fields}

COUNT = {"type": "integer", "minimum": 0}
FLAG = {"type": "boolean"}
URL = form(r"https?://[\w.-]+\S*")
ENVIRONMENT = {"enum": ["SANDBOX", "LIVE"]}
SLUG = form(r"[a-z0-9]+(?:-[a-z0-9]+)*") | text(2, 50)
NULLABLE = ["string", "null"]
NEW_GATEWAY = Body("slug name", slug=SLUG, name=text(2, 100), description=text(0, 1000), displayOrder=COUNT)
GATEWAY_CHANGE = Body("", True, name=text(2, 100), description=text(0, 1000, NULLABLE), displayOrder=COUNT)
SECRETS = {"type": "object", "minProperties": 1, "maxProperties": 50, "additionalProperties": text()}
CREDENTIALS = Body("credentials", credentials=SECRETS)
PAGE = Body(page=form("[1-9][0-9]{0,8}"), perPage=form("[1-9][0-9]?|100"), search=text(0, 100))
SETTING = Body("", True, isEnabled=FLAG, displayOrder=COUNT, displayName=text(0, 50, NULLABLE), isDefault=FLAG)
PLACE = {"type": "object", "required": ["gatewayId", "displayOrder"],
         "properties": {"gatewayId": text(), "displayOrder": COUNT}}
ORDER = Body("order", order={"type": "array", "minItems": 1, "maxItems": 100, "items": PLACE})
NEW_KEY = Body("environment name", True, environment=ENVIRONMENT, name=text(2, 100))
NEW_ENDPOINT = Body("url environment", True, url=URL, environment=ENVIRONMENT, description=text(0, 200),
                    events={"type": "array", "items": {"enum": list(EVENTS.values())}})
TEST_PAYMENT = Body(
    "amount", amount={"type": "integer", "minimum": 100, "maximum": 2**53 - 1}, currency={"enum": ["NGN"]},
    customerEmail=form(r"[^@\s]+@[^@\s]+\.[^@\s]+"), customerName=text(), customerPhone=text(), callbackUrl=URL,
    metadata={"type": "object", "maxProperties": 50}, idempotencyKey=text(1, 255))
NEW_PAYMENT = Body("amount", gateway=text(), webhookUrl=form(r"https://[\w.-]+\S*"), **TEST_PAYMENT.fields)
OUTCOME = Body("outcome", outcome={"enum": list(OUTCOMES)})
CHOICE = Body(gatewaySlug=text(), cardNumber=text())

# Who asks, and for which row

def bearer(ask: Any) -> str:
    scheme, _, token = ask.headers.get("authorization", "").partition(" ")
    refuse(scheme.lower() != "bearer" or not token.strip(), 401, "UNAUTHORIZED")
    return str(token.strip())

def claims(ask: Any, realm: str) -> Row:
    try:
        found: Row = jwt.decode(bearer(ask), CONFIG["jwtKey"], ["HS256"], options={"require": ["exp", "sub"]})
    except jwt.PyJWTError:
        raise HTTPException(401, "UNAUTHORIZED") from None
    refuse(found.get("type") != realm, 403, "WRONG_REALM")
    return found

def admin(ask: Any) -> None:
    refuse(claims(ask, "admin").get("role") not in ("ADMIN", "SUPER_ADMIN"), 403, "WRONG_ROLE")

def manager(ask: Any) -> None:
    found, business = claims(ask, "merchant"), businesses.get(ask.params["business"])
    is_theirs = business and business["members"].get(found["sub"]) in ("OWNER", "ADMIN")
    refuse(not found.get("emailVerified") or not is_theirs, 403, "NOT_A_MANAGER")
    ask.business, ask.environment = business, "SANDBOX"

def changer(ask: Any) -> None:
    """A manager of a business that is active."""
    manager(ask)
    refuse(ask.business["status"] != "ACTIVE", 403, "BUSINESS_RESTRICTED")

def server(ask: Any) -> None:
    digest = hashlib.sha256(bearer(ask).encode()).hexdigest()
    key: Any = next((one for one in keys.values() if one["_digest"] == digest and one["status"] == "ACTIVE"), None)
    refuse(key is None, 401, "INVALID_API_KEY")
    ask.business, ask.environment = key["_business"], key["_environment"]
    refuse(ask.business["status"] != "ACTIVE", 403, "BUSINESS_RESTRICTED")
    refuse(ask.environment == "LIVE" and ask.business["kyc"] != "APPROVED", 403, "KYC_REQUIRED")
    key["lastUsedAt"] = stamp()

def sandbox_server(ask: Any) -> None:
    server(ask)
    refuse(ask.environment == "LIVE", 403, "SANDBOX_ONLY")

def find(ask: Any) -> None:
    """The rows that the path names. Those of a business are there for itself alone, and a payment for payers too."""
    reference = ask.params.get("payment", "NEU-00000000-000000")
    refuse(not re.fullmatch("[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}", reference), 400, "INVALID_REFERENCE", "reference")
    for kind, rows, code in (("gateway", gateways, "NO_SUCH_GATEWAY"), ("key", keys, "NO_SUCH_KEY"),
                             ("endpoint", endpoints, "NO_SUCH_ENDPOINT"), ("payment", payments, "PAYMENT_NOT_FOUND")):
        row = rows.get(ask.params.get(kind), {})
        is_theirs = ask.business is None or kind == "gateway" or row.get("_business") == ask.business
        is_there = kind != "payment" or ask.business is None or row.get("environment") == ask.environment
        refuse(kind in ask.params and not (row and is_theirs and is_there), 404, code)
        setattr(ask, kind, settled(row))

def settled(row: Row) -> Row:
    """As time leaves it: a gateway whose drain has ended, a payment whose window has closed."""
    if row.get("status") == "DRAINING" and row["drainEndsAt"] <= stamp():
        row |= {"status": "DISABLED", "drainStartedAt": None, "drainEndsAt": None}
    if row.get("status") == "INITIATED" and row["expiresAt"] <= stamp():
        move(row, "FAILED")
    return row

# Gateways

def add_gateway(slug: str, name: str, **more: Any) -> Row:
    id, now = secrets.token_hex(10), stamp()
    gateways[id] = {
        "id": id, "slug": slug, "name": name, "description": None, "logoPath": None, "logoUrl": None, "displayOrder": 0,
        "status": "DISABLED", "isBuiltIn": False, "drainStartedAt": None, "drainEndsAt": None, "hasCredentials": False,
        "createdAt": now, "updatedAt": now, "_credentials": {}, "_logo": None, **more}
    return gateways[id]

def setting(business: Row, gateway: Row) -> Row:
    return settings[business["id"], gateway["id"]]

def summary(gateway: Row) -> Row:
    users = [one for one in businesses.values() if one["status"] == "ACTIVE" and setting(one, gateway)["isEnabled"]]
    return shown(settled(gateway)) | {"isActive": gateway["status"] == "ACTIVE", "businessCount": len(users)}

def change(gateway: Row, **values: Any) -> Row:
    gateway |= values | {"updatedAt": stamp()}
    return summary(gateway)

def create_gateway(ask: Any) -> Any:
    refuse(ask.body["slug"] in {"sandbox", *(one["slug"] for one in gateways.values())}, 409, "SLUG_TAKEN")
    return answer(summary(add_gateway(**ask.body)), 201)

def read_gateway(ask: Any) -> Any:
    each = [(one, setting(one, ask.gateway)) for one in businesses.values()]
    return summary(ask.gateway) | {"overrides": [
        {"businessId": business["id"], "businessName": business["name"], "updatedAt": own["_updatedAt"]}
        for business, own in each if not own["isEnabled"]]}

def change_gateway(ask: Any) -> Any:
    for name in ask.body:
        reject(ask.gateway["isBuiltIn"] and name != "displayOrder", name)
    return change(ask.gateway, **ask.body)

def delete_gateway(ask: Any) -> Any:
    refuse(ask.gateway["isBuiltIn"] or ask.gateway["status"] != "DISABLED", 409, "STILL_NEEDED")
    del gateways[ask.gateway["id"]]
    return {"message": "The gateway is gone."}

def enable_gateway(ask: Any) -> Any:
    refuse(ask.gateway["status"] == "ACTIVE", 409, "IS_ENABLED")
    return change(ask.gateway, status="ACTIVE", drainStartedAt=None, drainEndsAt=None)

def disable_gateway(ask: Any) -> Any:
    refuse(ask.gateway["isBuiltIn"] or ask.gateway["status"] != "ACTIVE", 409, "CANNOT_DRAIN")
    return change(ask.gateway, status="DRAINING", drainStartedAt=stamp(), drainEndsAt=stamp(CONFIG["drain"]))

def list_merchants(ask: Any) -> Any:
    number, size = int(ask.body.get("page", 1)), int(ask.body.get("perPage", 20))
    search = ask.body.get("search", "").lower()
    found = [one for one in businesses.values() if one["status"] == "ACTIVE" and search in one["name"].lower()]
    rows = [some(setting(one, ask.gateway), "isEnabled displayName isDefault") | {
        "id": f"{ask.gateway['id']}.{one['id']}", "businessId": one["id"], "businessName": one["name"],
        "createdAt": ask.gateway["createdAt"], "displayOrder": setting(one, ask.gateway)["businessDisplayOrder"] or 0}
        for one in found]
    return answer(rows[(number - 1) * size:number * size], meta={"page": number, "perPage": size, "total": len(rows)})

def store_credentials(ask: Any) -> Any:
    change(ask.gateway, _credentials=ask.body["credentials"], hasCredentials=True)
    return JSONResponse({"success": True})

def store_logo(ask: Any) -> Any:
    head = f"Content-Type: {ask.headers.get('content-type', '')}\r\n\r\n".encode()
    message = email.message_from_bytes(head + ask.raw, email.message.EmailMessage, policy=email.policy.HTTP)
    parts = [one for one in message.iter_parts() if one.get_param("name", header="content-disposition") == "file"]
    data: Any = parts[0].get_payload(decode=True) if parts else b""
    is_png = data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(b"IEND\xaeB`\x82")
    is_jpeg = data.startswith(b"\xff\xd8\xff") and data.endswith(b"\xff\xd9")
    reject(not (is_png or is_jpeg) or len(data) > 2 * 1024 * 1024, "file")
    path, kind = f"/public/gateways/{ask.gateway['id']}/logo", "image/png" if is_png else "image/jpeg"
    change(ask.gateway, _logo=(data, kind), logoPath=path, logoUrl=f"/api/v1{path}")
    return answer({"logoUrl": ask.gateway["logoUrl"]}, 201)

def read_logo(ask: Any) -> Any:
    refuse(ask.gateway["_logo"] is None, 404, "NO_LOGO")
    data, kind = ask.gateway["_logo"]
    return Response(data, 200, {"cache-control": "public, max-age=3600", "x-content-type-options": "nosniff"}, kind)

# What a business makes of them

def offered(business: Row) -> list[Row]:
    def place(one: Row) -> tuple[bool, int]:
        order = setting(business, one)["businessDisplayOrder"]
        return not one["isBuiltIn"], one["displayOrder"] if order is None else order
    return sorted((one for one in gateways.values() if settled(one)["status"] == "ACTIVE"), key=place)

def enabled(business: Row) -> dict[str, Row]:
    return {one["slug"]: one for one in offered(business) if setting(business, one)["isEnabled"]}

def with_setting(business: Row, gateway: Row) -> Row:
    look = some(gateway, "id slug name description logoPath logoUrl displayOrder isBuiltIn")
    return look | shown(setting(business, gateway))

def list_settings(ask: Any) -> Any:
    return [with_setting(ask.business, one) for one in offered(ask.business)]

def change_setting(ask: Any) -> Any:
    refuse(ask.gateway["status"] != "ACTIVE", 404, "NO_SUCH_GATEWAY")
    body, own = ask.body, setting(ask.business, ask.gateway)
    is_enabled = body.get("isEnabled", own["isEnabled"])
    reject(ask.gateway["isBuiltIn"] and not is_enabled, "isEnabled")
    reject(ask.gateway["isBuiltIn"] and "displayOrder" in body, "displayOrder")
    reject(body.get("isDefault") and not is_enabled, "isDefault")
    for one in gateways.values() if body.get("isDefault") else ():
        setting(ask.business, one)["isDefault"] = False
    own["businessDisplayOrder"] = body.pop("displayOrder", own["businessDisplayOrder"])
    own |= body | {"_updatedAt": stamp()}
    own["isDefault"] &= is_enabled
    return with_setting(ask.business, ask.gateway)

def reorder(ask: Any) -> Any:
    active, order = {one["id"]: one for one in offered(ask.business)}, ask.body["order"]
    reject(any(one["gatewayId"] not in active for one in order), "order")
    for one in order:
        if not active[one["gatewayId"]]["isBuiltIn"]:
            settings[ask.business["id"], one["gatewayId"]]["businessDisplayOrder"] = one["displayOrder"]
    return list_settings(ask)

# Keys and endpoints of merchants

def keys_of(business: Row, environment: str, status: str) -> list[Row]:
    """The latest to be revoked comes first."""
    wanted = (business, environment, status)
    found = [one for one in keys.values() if (one["_business"], one["_environment"], one["status"]) == wanted]
    return sorted(found, key=lambda one: one["revokedAt"] or "", reverse=True)

def list_keys(ask: Any) -> Any:
    def group(environment: str) -> list[Row]:
        active, gone = (keys_of(ask.business, environment, status) for status in ("ACTIVE", "REVOKED"))
        return [shown(one) for one in [*active, *gone[:20]]]
    return {"sandbox": group("SANDBOX"), "live": group("LIVE")}

def create_key(ask: Any) -> Any:
    name, environment = ask.body["name"], ask.body["environment"]
    refuse(environment == "LIVE" and ask.business["kyc"] != "APPROVED", 403, "KYC_REQUIRED")
    refuse(len(keys_of(ask.business, environment, "ACTIVE")) >= 5, 409, "KEY_LIMIT_REACHED")
    word = {"SANDBOX": "sand", "LIVE": "live"}[environment]
    id, secret = secrets.token_hex(10), f"ssk_{word}_{secrets.token_hex(20)}"
    keys[id] = {
        "id": id, "name": name, "publicKey": f"spk_{word}_{secrets.token_hex(12)}", "status": "ACTIVE",
        "secretKeyDisplay": f"ssk_{word}_...{secret[-4:]}", "lastUsedAt": None, "createdAt": stamp(), "revokedAt": None,
        "_business": ask.business, "_environment": environment, "_digest": hashlib.sha256(secret.encode()).hexdigest()}
    more = {"secretKey": secret, "environment": environment, "secretKeyNote": "Shown once."}
    return answer(some(keys[id], "id name publicKey createdAt") | more, 201)

def revoke_key(ask: Any) -> Any:
    refuse(ask.key["status"] == "REVOKED", 409, "IS_REVOKED")
    ask.key.update(status="REVOKED", revokedAt=stamp())
    return {"message": "The key opens nothing any more."}

def endpoints_of(business: Row) -> list[Row]:
    return [one for one in endpoints.values() if one["_business"] == business]

def create_endpoint(ask: Any) -> Any:
    reject(ask.body["environment"] == "LIVE" and not ask.body["url"].startswith("https:"), "url")
    refuse(sum(one["isActive"] for one in endpoints_of(ask.business)) >= 5, 409, "ENOUGH_ENDPOINTS")
    id, secret = secrets.token_hex(10), secrets.token_hex(24)
    endpoints[id] = {
        "id": id, "description": None, "events": [], **ask.body, "secretLast4": secret[-4:], "isActive": True,
        "createdAt": stamp(), "deliverySummary": {"successful": 0, "failed": 0}, "_business": ask.business,
        "_secret": secret}
    return answer(shown(endpoints[id]) | {"secret": secret}, 201)

def close_endpoint(ask: Any) -> Any:
    ask.endpoint["isActive"] = False
    return shown(ask.endpoint)

async def deliver(endpoint: Row, body: bytes) -> None:
    signature = hmac.new(endpoint["_secret"].encode(), body, hashlib.sha256).hexdigest()
    headers, end = {"X-Service-Signature": signature, "Content-Type": "application/json"}, "failed"
    with suppress(httpx.HTTPError):
        told = await outside.post(endpoint["url"], content=body, headers=headers)
        end = "successful" if told.is_success else "failed"
    endpoint["deliverySummary"][end] += 1

# Payments

def read_context(ask: Any) -> Any:
    names = {"businessId": "id", "businessName": "name", "kycStatus": "kyc"}
    return {name: ask.business[own] for name, own in names.items()} | {"environment": ask.environment}

def is_ready(gateway: Row, environment: str) -> bool:
    stored, word = gateway["_credentials"], environment.lower()
    needed = word + PROVIDERS.get(gateway["slug"], ("",))[0]
    return bool(stored.get(needed)) and stored.get(f"{word}Enabled") != "false"

def initiate(ask: Any) -> Any:
    token, slug = (ask.business["id"], ask.environment, ask.body.get("idempotencyKey")), ask.body.get("gateway")
    if token in payments_by_token:
        refuse(settled(payments_by_token[token])["status"] in EVENTS, 409, "DUPLICATE_PAYMENT")
        return payments_by_token[token]["_initiated"]
    usable = enabled(ask.business)
    if slug and (slug, ask.environment) != ("sandbox", "SANDBOX"):
        refuse(slug not in {one["slug"] for one in offered(ask.business)}, 400, "GATEWAY_NOT_FOUND", "gateway")
        refuse(slug not in usable, 400, "GATEWAY_DISABLED", "gateway")
    is_served = ask.environment == "SANDBOX" or any(is_ready(one, "LIVE") for one in usable.values())
    refuse(not is_served, 503, "NO_GATEWAY_AVAILABLE")
    tail = "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") for _ in range(6))
    reference = f"NEU-{datetime.now(UTC):%Y%m%d}-{tail}"
    initiated = {
        "reference": reference, "checkoutUrl": f"{ORIGIN}/pay/{reference}", "amount": ask.body["amount"],
        "currency": "NGN", "environment": ask.environment, "status": "INITIATED", "expiresAt": stamp(CONFIG["ttl"])}
    payments[reference] = dict.fromkeys(NEW_PAYMENT.fields) | ask.body | initiated | {
        "_initiated": initiated, "_business": ask.business, "_isTest": slug == "sandbox", "_lock": asyncio.Lock(),
        "_tries": 0, "_handoff": None, "_processor": None}
    if token[2] is not None:
        payments_by_token[token] = payments[reference]
    return answer(initiated, 201)

def initiate_test(ask: Any) -> Any:
    refuse(not keys_of(ask.business, "SANDBOX", "ACTIVE"), 400, "NO_SANDBOX_KEY")
    ask.body["gateway"] = "sandbox"
    return initiate(ask)

def detail(payment: Row) -> Row:
    return some(payment, "reference amount currency gateway status customerEmail callbackUrl metadata expiresAt")

def move(payment: Row, status: str | None) -> None:
    """To a later status; what is final stays."""
    if status is None or payment["status"] in (*EVENTS, status):
        return
    payment["status"], name = status, EVENTS.get(status)
    body = json.dumps({"name": name, "at": stamp(), "payment": detail(payment)}).encode()
    for one in endpoints.values():
        is_theirs = (one["_business"], one["environment"]) == (payment["_business"], payment["environment"])
        if name and is_theirs and one["isActive"] and name in (one["events"] or [name]):
            deliveries.add(task := asyncio.ensure_future(deliver(one, body)))
            task.add_done_callback(deliveries.discard)

def simulate(ask: Any) -> Any:
    refuse(ask.payment["status"] in EVENTS, 409, "PAYMENT_ALREADY_FINAL")
    move(ask.payment, OUTCOMES[ask.body["outcome"]])
    return detail(ask.payment)

# The hosted checkout

def read_checkout(ask: Any) -> Any:
    shop = ask.payment["_business"]["name"]
    return some(ask.payment, "reference amount currency status") | {"payTo": shop, "until": ask.payment["expiresAt"]}

def list_options(ask: Any) -> Any:
    business, environment = ask.payment["_business"], ask.payment["environment"]
    simulator = [{"slug": "sandbox", "name": "Simulator", "available": True}]
    rows = [{"slug": slug, "name": setting(business, one)["displayName"] or one["name"],
             "available": is_ready(one, environment)} for slug, one in enabled(business).items()]
    return {"gateways": (simulator if environment == "SANDBOX" else []) + ([] if ask.payment["_isTest"] else rows)}

async def process(ask: Any) -> Any:
    payment, card = ask.payment, ask.body.get("cardNumber", "")
    slug = ask.body.get("gatewaySlug") or payment["gateway"]
    async with payment["_lock"]:
        refuse(payment["expiresAt"] <= stamp(), 410, "PAYMENT_EXPIRED")
        refuse(payment["status"] in EVENTS, 409, "PAYMENT_ALREADY_PROCESSED")
        if payment["_handoff"] is None:
            is_simulated = (slug, payment["environment"]) == ("sandbox", "SANDBOX")
            reject(is_simulated and card not in CARDS, "cardNumber")
            payment["_outcome"] = CARDS.get(card)
            simulator = f"{ORIGIN}/pay/{payment['reference']}"
            payment["_handoff"] = simulator if is_simulated else await charged(payment, slug)
            payment["gateway"] = slug
            move(payment, "PENDING")
    return {"checkoutUrl": payment["_handoff"]}

async def charged(payment: Row, slug: str) -> str:
    """The redirect URL or launch parameters of a provider; each try is under a reference of its own."""
    reject(slug not in {"sandbox", *(one["slug"] for one in gateways.values())}, "gatewaySlug")
    gateway: Any = enabled(payment["_business"]).get(slug)
    refuse(not gateway or payment["_isTest"], 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
    refuse(not is_ready(gateway, payment["environment"]), 400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "gatewaySlug")
    reference, mail = f"{payment['reference']}-{payment['_tries']}", payment["customerEmail"] or "payer@example.com"
    payment |= {"_tries": payment["_tries"] + 1, "_named": reference, "_processor": gateway}
    if slug == "provider_b":
        launch = {
            "merchant_key": credential(payment, "PublicKey"), "checkout_amount": payment["amount"] / 100,
            "connection_mode": "Live" if payment["environment"] == "LIVE" else "Test", "currency_code": "NGN",
            "email_address": mail, "first_name": "Payer", "last_name": "Payer", "phone_number": "",
            "transaction_reference": reference}
        return f"{ORIGIN}/launch#{base64.urlsafe_b64encode(json.dumps(launch).encode()).decode()}"
    charge = {"email": mail, "amount": payment["amount"], "currency": "NGN", "reference": reference}
    told = await call(payment, "POST", "/transaction/initialize", charge)
    refuse("authorization_url" not in told, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
    return str(told["authorization_url"])

def credential(payment: Row, name: str) -> str:
    return str(payment["_processor"]["_credentials"].get(payment["environment"].lower() + name, ""))

async def call(payment: Row, method: str, path: str, body: Row | None = None) -> Row:
    """The `data` of a provider's answer; empty when it gives none."""
    proof = f"Bearer {credential(payment, 'SecretKey')}"
    if payment["_processor"]["slug"] == "provider_b":
        proof = f"Payaza {base64.b64encode(credential(payment, 'PublicKey').encode()).decode()}"
    with suppress(httpx.HTTPError, httpx.InvalidURL, LookupError, TypeError):
        place, headers = credential(payment, "BaseUrl") + path, {"Authorization": proof}
        told = await outside.request(method, place, json=body, headers=headers)
        return dict(parsed(told.content, Decimal)["data"])
    return {}

async def verify(ask: Any) -> Any:
    payment = ask.payment
    if payment["status"] not in EVENTS and payment["gateway"] in PROVIDERS and payment["_handoff"]:
        report = await call(payment, "GET", PROVIDERS[payment["gateway"]][-1] + payment["_named"])
        move(payment, judged(payment, report))
    elif payment["_handoff"]:
        move(payment, payment["_outcome"])
    return some(payment, "status callbackUrl")

def judged(payment: Row, report: Row) -> str | None:
    """The status that a report yields, None when it cannot be read; a refusal when its money is another."""
    with suppress(LookupError, TypeError, AttributeError, ArithmeticError):
        word, amounts = report.get("status"), {report.get("requested_amount", report.get("amount"))}
        if payment["_processor"]["slug"] == "provider_b":
            word = report.get("transaction_status") if "merchant_transaction_reference" in report else word
            received, fee = Decimal(report["amount_received"]), Decimal(report.get("transaction_fee") or 0)
            amounts = {received * 100, (received - fee) * 100}
        status, currency = WORDS.get(str(word)), report.get("currency", report.get("currency_code"))
        is_same = payment["amount"] in amounts and currency == payment["currency"]
        refuse(status == "SUCCESS" and not is_same, 502, "PAYMENT_AMOUNT_MISMATCH")
        return status
    return None

# Events of the providers

def receive(ask: Any) -> Any:
    slug, word = ask.params["provider"], ask.params.get("environment", "live")
    refuse(slug not in PROVIDERS or word not in ("live", "sandbox"), 404, "NO_SUCH_ROUTE")
    recent = [one for one in inbound[ask.client] if one > time.time() - 60]
    refuse(len(recent) >= CONFIG["rate"], 429, "SLOW_DOWN")
    inbound[ask.client] = [*recent, time.time()]
    _, names, pointer, _ = PROVIDERS[slug]
    stored: Row = next((one["_credentials"] for one in gateways.values() if one["slug"] == slug), {})
    secret = next((stored[word + name] for name in names if stored.get(word + name)), "")
    refuse(not secret and slug == "provider_a" and "environment" not in ask.params, 503, "NOT_CONFIGURED")
    digest = hmac.new(secret.encode(), ask.raw, hashlib.sha512).digest()
    right = digest.hex().encode() if slug == "provider_a" else base64.b64encode(digest)
    sent = ask.headers.get(f"x-{slug}-signature", "").encode()
    refuse(not secret or not hmac.compare_digest(right, sent), 400, "INVALID_WEBHOOK_SIGNATURE")
    event = parsed(ask.raw, Decimal)
    reject(slug == "provider_a" and not isinstance(event, dict), "body")
    # What cannot be read or tells of other money is acknowledged, and moves nothing.
    with suppress(HTTPException, LookupError, TypeError, AttributeError):
        report = event["data"] if slug == "provider_a" and event["event"].startswith("charge.") else event
        payment = payments[report[pointer][:19]]
        if (payment["environment"].lower(), payment["_processor"]["slug"]) == (word, slug):
            move(payment, judged(payment, report))
    return {}

# Routes

def refused(_: Request, found: Any) -> Response:
    code = found.detail if found.detail.isupper() else "NO_SUCH_ROUTE"
    error = {"code": code, "message": f"Refused: {code.lower().replace('_', ' ')}."}
    if "field" in (found.headers or {}):
        error["field"] = found.headers["field"]
    return JSONResponse({"success": False, "error": error}, found.status_code)

def route(method: str, path: str, guard: Any, handler: Callable[[Any], Any], body: Body | None = None) -> Route:
    async def endpoint(request: Request) -> Response:
        ask = SimpleNamespace(raw=await request.body(), headers=request.headers, query=dict(request.query_params),
                              params=request.path_params, client=str(request.client), business=None, environment=None)
        if guard:
            guard(ask)
        find(ask)
        ask.body = body and body.check(ask.query if method == "GET" else parsed(ask.raw or b"{}"))
        found = handler(ask)
        found = await found if inspect.isawaitable(found) else found
        return found if isinstance(found, Response) else answer(found)

    return Route(f"/api/v1{path}", endpoint, methods=[method])

GATEWAY, SHOP = "/admin/gateways/{gateway}", "/merchant/businesses/{business}"
PAYMENT, CHECKOUT, TEST = "/payments/{payment}", "/public/payments/{payment}", SHOP + "/test-payment/{payment}"
ROUTES = [
    route("GET", "/admin/gateways", admin, lambda _: [summary(one) for one in gateways.values()]),
    route("POST", "/admin/gateways", admin, create_gateway, NEW_GATEWAY),
    route("GET", GATEWAY, admin, read_gateway),
    route("PATCH", GATEWAY, admin, change_gateway, GATEWAY_CHANGE),
    route("DELETE", GATEWAY, admin, delete_gateway),
    route("POST", f"{GATEWAY}/enable", admin, enable_gateway),
    route("POST", f"{GATEWAY}/disable", admin, disable_gateway),
    route("GET", f"{GATEWAY}/merchants", admin, list_merchants, PAGE),
    route("PATCH", f"{GATEWAY}/credentials", admin, store_credentials, CREDENTIALS),
    route("POST", f"{GATEWAY}/logo", admin, store_logo),
    route("GET", "/public/gateways/{gateway}/logo", None, read_logo),
    route("GET", f"{SHOP}/gateways", manager, list_settings),
    route("POST", f"{SHOP}/gateways/reorder", changer, reorder, ORDER),
    route("PATCH", SHOP + "/gateways/{gateway}", changer, change_setting, SETTING),
    route("GET", f"{SHOP}/api-keys", changer, list_keys),
    route("POST", f"{SHOP}/api-keys", changer, create_key, NEW_KEY),
    route("DELETE", SHOP + "/api-keys/{key}", manager, revoke_key),
    route("GET", f"{SHOP}/webhooks", manager, lambda ask: list(map(shown, endpoints_of(ask.business)))),
    route("POST", f"{SHOP}/webhooks", changer, create_endpoint, NEW_ENDPOINT),
    route("DELETE", SHOP + "/webhooks/{endpoint}", changer, close_endpoint),
    route("GET", "/payments/context", server, read_context),
    route("POST", "/payments/initiate", server, initiate, NEW_PAYMENT),
    route("GET", PAYMENT, server, lambda ask: detail(ask.payment)),
    route("POST", f"{PAYMENT}/simulate", sandbox_server, simulate, OUTCOME),
    route("GET", CHECKOUT, None, read_checkout),
    route("GET", f"{CHECKOUT}/gateways", None, list_options),
    route("POST", f"{CHECKOUT}/process", None, process, CHOICE),
    route("GET", f"{CHECKOUT}/verify", None, verify),
    route("POST", f"{SHOP}/test-payment", changer, initiate_test, TEST_PAYMENT),
    route("GET", TEST, manager, lambda ask: detail(ask.payment)),
    route("POST", f"{TEST}/simulate", manager, simulate, OUTCOME),
    route("POST", "/webhooks/{provider}", None, receive),
    route("POST", "/webhooks/{provider}/{environment}", None, receive)]

if __name__ == "__main__":
    add_gateway("house", "House", status="ACTIVE", isBuiltIn=True)
    add_gateway("provider_a", "Provider A", displayOrder=1)
    add_gateway("provider_b", "Provider B", displayOrder=2)
    app = Starlette(routes=ROUTES, exception_handlers={HTTPException: refused})
    uvicorn.run(app, host="127.0.0.1", port=CONFIG["port"], log_level="warning", access_log=False)
