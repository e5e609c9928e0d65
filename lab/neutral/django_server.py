"""An honest payment aggregator in Django, written from the interface before its author read a check of the harness; he
had seen the list of its assumptions, and how the Starlette one speaks to providers.

Its one argument is JSON: `port`, `jwtKey`, `ttl`, `drain`, `rate` and `businesses` (`id`, `name`, `kyc`, `status`,
`members`). What the document does not show is left out, as to change or to try a webhook endpoint, or chosen unlike
payagg and the other two, but for the names of credentials, provider_b's hand-off and `idempotencyKey` of a test.
A row has the names of the interface; what begins with an underscore is never shown."""
# fmt: off

import base64
import hashlib
import hmac
import json
import logging
import re
import secrets
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Annotated, Any, Literal
from wsgiref.simple_server import WSGIRequestHandler as BareHandler

import httpx
import jwt
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.http import HttpResponse, JsonResponse
from django.urls import path
from PIL import Image
from pydantic import ConfigDict, Field, StringConstraints, ValidationError, create_model

Row = dict[str, Any]
CONFIG = json.loads(sys.argv[1])
ORIGIN = f"http://127.0.0.1:{CONFIG['port']}"
OUTCOMES = {"approve": "SUCCESS", "refuse": "FAILED", "give-back": "REVERSED"}
CARDS = {"6011000000000004": "SUCCESS", "6011000000000012": "FAILED", "6011000000000020": "REVERSED",
         "6011000000000038": None}
EVENTS = {"PENDING": "charge.opened", "SUCCESS": "charge.paid", "FAILED": "charge.refused",
          "REVERSED": "charge.returned"}
WORDS = {"success": "SUCCESS", "Completed": "SUCCESS", "failed": "FAILED", "Failed": "FAILED", "reversed": "REVERSED"}
FINAL = ("SUCCESS", "FAILED", "REVERSED")
PROVIDERS: dict[str, Row] = {
    "provider_a": {"needs": "SecretKey", "proofs": ("WebhookSecret", "SecretKey"), "names": "reference"},
    "provider_b": {"needs": "PublicKey", "proofs": ("SigningSecret",), "names": "merchant_reference"}}

LOCK = threading.RLock()  # of all rows; what waits for a provider holds that of its payment instead
shops: dict[str, Row] = {one["id"]: one for one in CONFIG["businesses"]}
gateways: dict[str, Row] = {}
choices: dict[tuple[str, str], Row] = defaultdict(lambda: {  # of (business, gateway)
    "isEnabled": True, "businessDisplayOrder": None, "displayName": None, "isDefault": False, "_updatedAt": None})
keys: dict[str, Row] = {}
hooks: dict[str, Row] = {}
payments: dict[str, Row] = {}
arrivals: dict[str, list[float]] = defaultdict(list)
outside = httpx.Client(timeout=10, trust_env=False)

class Refused(Exception):
    def __init__(self, status: int, code: str, field: str = "") -> None:
        self.status, self.error = status, {"code": code, "message": code.replace("_", " ").capitalize()}
        if field:
            self.error["field"] = field

def refuse(case: object, status: int, code: str, field: str = "") -> None:
    if case:
        raise Refused(status, code, field)

def invalid(case: object, field: str) -> None:
    refuse(case, 400, "VALIDATION_ERROR", field)

def at(later: float = 0) -> str:
    return datetime.fromtimestamp(time.time() + later, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

def only(row: Row, names: str) -> Row:
    return {name: row[name] for name in names.split()}

def shown(row: Row) -> Row:
    return {name: value for name, value in row.items() if name[0] != "_"}

# Bodies

def text(least: int = 0, most: int = 10_000, pattern: str = "") -> Any:
    return Annotated[str, StringConstraints(min_length=least, max_length=most, pattern=pattern)]

def body(closed: bool = False, /, **fields: Any) -> Any:
    """A model of an object by its fields; a closed one has no other property."""
    optional = {name: kind if isinstance(kind, tuple) else (kind, None) for name, kind in fields.items()}
    config = ConfigDict(strict=True, extra="forbid" if closed else "ignore")
    return create_model("Body", __config__=config, **optional)  # type: ignore[call-overload]

def read_body(request: Any, model: Any) -> Row:
    try:
        if request.method == "GET":
            return dict(model.model_validate_strings(request.GET.dict()).model_dump(exclude_unset=True))
        return dict(model.model_validate_json(request.body or b"{}").model_dump(exclude_unset=True))
    except ValidationError as wrong:
        raise Refused(400, "VALIDATION_ERROR", str([*wrong.errors()[0]["loc"], "body"][0])) from None

def read(raw: bytes) -> Any:
    """JSON of a provider, or None."""
    with suppress(ValueError, RecursionError):
        return json.loads(raw, parse_float=Decimal)
    return None

COUNT, NAME, DESCRIPTION = Annotated[int, Field(ge=0)], text(2, 100), text(0, 1000)
SLUG = text(2, 50, "^[a-z0-9]+(?:-[a-z0-9]+)*$")
ENVIRONMENT, URL = Literal["SANDBOX", "LIVE"], text(pattern=r"^https?://[\w.-]+[^\s]*$")
AMOUNT, EMAIL = Annotated[int, Field(ge=100)], text(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")
NEW_GATEWAY = body(slug=(SLUG, ...), name=(NAME, ...), description=DESCRIPTION, displayOrder=COUNT)
GATEWAY_CHANGE = body(True, name=NAME, description=DESCRIPTION | None, displayOrder=COUNT)
SECRETS = Annotated[dict[str, text(0, 4000)], Field(min_length=1, max_length=50)]  # type: ignore[misc, valid-type]
CREDENTIALS = body(credentials=(SECRETS, ...))
PAGE = body(page=Annotated[int, Field(ge=1)], perPage=Annotated[int, Field(ge=1, le=100)], search=text(0, 100))
OPTION = body(True, isEnabled=bool, displayOrder=COUNT, displayName=text(0, 50) | None, isDefault=bool)
PLACE = body(gatewayId=(str, ...), displayOrder=(COUNT, ...))
ORDER = body(order=(Annotated[list[PLACE], Field(min_length=1, max_length=100)], ...))  # type: ignore[valid-type]
NEW_KEY = body(True, environment=(ENVIRONMENT, ...), name=(NAME, ...))
NEW_HOOK = body(True, url=(URL, ...), environment=(ENVIRONMENT, ...), description=text(0, 200),
                events=list[Literal[*EVENTS.values()]])  # type: ignore[misc]
NEW_TEST = body(amount=(AMOUNT, ...), idempotencyKey=str)
NEW_PAYMENT = body(
    amount=(AMOUNT, ...), currency=Literal["NGN"], customerEmail=EMAIL, customerName=str, customerPhone=str,
    gateway=str, callbackUrl=URL, webhookUrl=text(pattern=r"^https://[\w.-]+[^\s]*$"), idempotencyKey=str,
    metadata=Annotated[dict[str, Any], Field(max_length=50)])
OUTCOME = body(outcome=(text(pattern=f"^({'|'.join(OUTCOMES)})$"), ...))
CHECKOUT_CHOICE = body(gatewaySlug=str, cardNumber=str)

# Who asks

def bearer(request: Any) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    refuse(scheme.lower() != "bearer" or not token.strip(), 401, "UNAUTHORIZED")
    return str(token.strip())

def claims(request: Any, realm: str) -> Row:
    try:
        told: Row = jwt.decode(bearer(request), CONFIG["jwtKey"], ["HS256"], options={"require": ["sub"]})
    except jwt.InvalidTokenError:
        raise Refused(401, "UNAUTHORIZED") from None
    refuse(told.get("type") != realm, 403, "WRONG_REALM")
    return told

def admin(request: Any, named: Row) -> None:
    refuse(claims(request, "admin").get("role") != "ADMIN", 403, "WRONG_ROLE")

def manager(request: Any, named: Row) -> None:
    told, request.shop = claims(request, "merchant"), shops.get(named.pop("business"))
    role = request.shop and request.shop["members"].get(told["sub"])
    refuse(role not in ("OWNER", "ADMIN") or told.get("emailVerified") is not True, 403, "NOT_A_MANAGER")
    request.environment = "SANDBOX"

def active(request: Any, named: Row) -> None:
    manager(request, named)
    refuse(request.shop["status"] != "ACTIVE", 403, "BUSINESS_RESTRICTED")

def secret(request: Any, named: Row) -> None:
    digest = hashlib.sha256(bearer(request).encode("utf-8", "replace")).hexdigest()
    key: Any = next((one for one in keys.values() if one["_digest"] == digest and one["status"] == "ACTIVE"), None)
    refuse(key is None, 401, "INVALID_API_KEY")
    request.shop, request.environment = key["_shop"], key["_environment"]
    refuse(request.shop["status"] != "ACTIVE", 403, "BUSINESS_RESTRICTED")
    refuse(request.environment == "LIVE" and request.shop["kyc"] != "APPROVED", 403, "KYC_REQUIRED")
    key["lastUsedAt"] = at()

def sandbox(request: Any, named: Row) -> None:
    secret(request, named)
    refuse(request.environment == "LIVE", 403, "SANDBOX_ONLY")

# The rows that a path names, each for whoever asks; a payer may see each payment

def own(request: Any, rows: dict[str, Row], id: str, code: str) -> Row:
    row = rows.get(id, {})
    refuse(not row or request.shop not in (None, row.get("_shop", request.shop)), 404, code)
    return row

def payment_of(request: Any, reference: str) -> Row:
    refuse(not re.fullmatch("[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}", reference), 400, "INVALID_REFERENCE")
    payment = own(request, payments, reference, "PAYMENT_NOT_FOUND")
    refuse(request.environment not in (None, payment["environment"]), 404, "PAYMENT_NOT_FOUND")
    return payment

FINDERS: dict[str, Callable[[Any, str], Row]] = {
    "gateway": lambda request, id: settled(own(request, gateways, id, "GATEWAY_MISSING")),
    "key": lambda request, id: own(request, keys, id, "KEY_MISSING"),
    "hook": lambda request, id: own(request, hooks, id, "ENDPOINT_MISSING"),
    "payment": payment_of}

# Gateways

def add_gateway(slug: str, name: str, **more: Any) -> Row:
    id = secrets.token_hex(8)
    gateways[id] = {
        "id": id, "slug": slug, "name": name, "description": None, "displayOrder": 0, "status": "DISABLED",
        "isBuiltIn": False, "logoPath": None, "logoUrl": None, "drainStartedAt": None, "drainEndsAt": None,
        "hasCredentials": False, "createdAt": at(), "updatedAt": at(), "_credentials": {}, "_logo": None, **more}
    return gateways[id]

def settled(gateway: Row) -> Row:
    """The gateway, whose drain ends here when its time is over."""
    if gateway["status"] == "DRAINING" and gateway["drainEndsAt"] <= at():
        gateway |= {"status": "DISABLED", "drainStartedAt": None, "drainEndsAt": None}
    return gateway

def choice(shop: Row, gateway: Row) -> Row:
    return choices[shop["id"], gateway["id"]]

def summary(gateway: Row) -> Row:
    users = [shop for shop in shops.values() if shop["status"] == "ACTIVE" and choice(shop, gateway)["isEnabled"]]
    return shown(settled(gateway)) | {"isActive": gateway["status"] == "ACTIVE", "businessCount": len(users)}

def changed(gateway: Row, **values: Any) -> Row:
    gateway |= {**values, "updatedAt": at()}
    return summary(gateway)

def create_gateway(request: Any) -> tuple[Row, int]:
    slug = request.sent["slug"]
    refuse(slug in {"sandbox", *(one["slug"] for one in gateways.values())}, 409, "SLUG_EXISTS", "slug")
    return summary(add_gateway(**request.sent)), 201

def show_gateway(request: Any, gateway: Row) -> Row:
    off = [shop for shop in shops.values() if not choice(shop, gateway)["isEnabled"]]
    return summary(gateway) | {"overrides": [
        {"businessId": shop["id"], "businessName": shop["name"], "updatedAt": choice(shop, gateway)["_updatedAt"]}
        for shop in off]}

def edit_gateway(request: Any, gateway: Row) -> Row:
    for name in request.sent:
        invalid(gateway["isBuiltIn"] and name != "displayOrder", name)
    return changed(gateway, **request.sent)

def remove_gateway(request: Any, gateway: Row) -> Row:
    refuse(gateway["isBuiltIn"] or gateway["status"] != "DISABLED", 409, "GATEWAY_IN_USE")
    del gateways[gateway["id"]]
    return {"message": "Removed."}

def enable_gateway(request: Any, gateway: Row) -> Row:
    refuse(gateway["status"] == "ACTIVE", 409, "CANNOT_SWITCH")
    return changed(gateway, status="ACTIVE", drainStartedAt=None, drainEndsAt=None)

def disable_gateway(request: Any, gateway: Row) -> Row:
    refuse(gateway["isBuiltIn"] or gateway["status"] != "ACTIVE", 409, "CANNOT_SWITCH")
    return changed(gateway, status="DRAINING", drainStartedAt=at(), drainEndsAt=at(CONFIG["drain"]))

def gateway_merchants(request: Any, gateway: Row) -> JsonResponse:
    number, size = int(request.sent.get("page", 1)), int(request.sent.get("perPage", 20))
    search = request.sent.get("search", "").lower()
    rows = [only(choice(shop, gateway), "isEnabled displayName isDefault") | {
        "id": f"{shop['id']}.{gateway['id']}", "businessId": shop["id"], "businessName": shop["name"],
        "createdAt": gateway["createdAt"], "displayOrder": order_of(shop, gateway)}
        for shop in shops.values() if shop["status"] == "ACTIVE" and search in shop["name"].lower()]
    meta = {"page": number, "perPage": size, "total": len(rows)}
    return JsonResponse({"success": True, "data": rows[(number - 1) * size:number * size], "meta": meta})

def keep_credentials(request: Any, gateway: Row) -> JsonResponse:
    changed(gateway, _credentials=request.sent["credentials"], hasCredentials=True)
    return JsonResponse({"success": True})

def keep_logo(request: Any, gateway: Row) -> tuple[Row, int]:
    file = request.FILES.get("file")
    invalid(file is None or not 0 < file.size <= 2 * 2**20, "file")
    content = file.read()
    try:
        with Image.open(BytesIO(content), formats=("PNG", "JPEG")) as image:
            image.load()
            kind = str(image.format).lower()
    except Exception:  # noqa: BLE001 - Pillow has many
        invalid(True, "file")
    place = f"/api/v1/public/gateways/{gateway['id']}/logo"
    changed(gateway, logoPath=f"logos/{gateway['id']}.{kind}", logoUrl=place, _logo=(content, f"image/{kind}"))
    return {"logoUrl": place}, 201

def show_logo(request: Any, gateway: Row) -> HttpResponse:
    refuse(gateway["_logo"] is None, 404, "LOGO_MISSING")
    headers = {"Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff"}
    return HttpResponse(*gateway["_logo"], headers=headers)

# What a business makes of them

def order_of(shop: Row, gateway: Row) -> int:
    own = choice(shop, gateway)["businessDisplayOrder"]
    return int(gateway["displayOrder"] if own is None else own)

def active_gateways(shop: Row) -> list[Row]:
    found = [one for one in list(gateways.values()) if settled(one)["status"] == "ACTIVE"]
    return sorted(found, key=lambda one: (not one["isBuiltIn"], order_of(shop, one), one["createdAt"]))

def enabled_gateways(shop: Row) -> dict[str, Row]:
    return {one["slug"]: one for one in active_gateways(shop) if choice(shop, one)["isEnabled"]}

def option(shop: Row, gateway: Row) -> Row:
    looks = only(gateway, "id slug name description logoPath logoUrl displayOrder isBuiltIn")
    return looks | shown(choice(shop, gateway))

def list_options(request: Any) -> list[Row]:
    return [option(request.shop, one) for one in active_gateways(request.shop)]

def edit_option(request: Any, gateway: Row) -> Row:
    refuse(gateway["status"] != "ACTIVE", 404, "GATEWAY_MISSING")
    sent, own = request.sent, choice(request.shop, gateway)
    is_enabled = sent.get("isEnabled", own["isEnabled"])
    invalid(gateway["isBuiltIn"] and not is_enabled, "isEnabled")
    invalid(gateway["isBuiltIn"] and "displayOrder" in sent, "displayOrder")
    invalid(sent.get("isDefault") and not is_enabled, "isDefault")
    if sent.get("isDefault"):
        for other in gateways.values():
            choice(request.shop, other)["isDefault"] = False
    own["businessDisplayOrder"] = sent.pop("displayOrder", own["businessDisplayOrder"])
    own |= {**sent, "_updatedAt": at()}
    own["isDefault"] = own["isDefault"] and is_enabled
    return option(request.shop, gateway)

def reorder(request: Any) -> list[Row]:
    known, order = {one["id"]: one for one in active_gateways(request.shop)}, request.sent["order"]
    invalid(any(item["gatewayId"] not in known for item in order), "order")
    for item in order:
        gateway = known[item["gatewayId"]]
        if not gateway["isBuiltIn"]:
            choice(request.shop, gateway)["businessDisplayOrder"] = item["displayOrder"]
    return list_options(request)

# Keys and endpoints of merchants

def keys_of(shop: Row, environment: str, status: str) -> list[Row]:
    wanted = (shop, environment, status)
    return [one for one in keys.values() if (one["_shop"], one["_environment"], one["status"]) == wanted]

def list_keys(request: Any) -> Row:
    groups = {}
    for environment in ("SANDBOX", "LIVE"):
        revoked = keys_of(request.shop, environment, "REVOKED")
        latest = sorted(revoked, key=lambda key: key["revokedAt"], reverse=True)[:20]
        groups[environment.lower()] = [shown(key) for key in keys_of(request.shop, environment, "ACTIVE") + latest]
    return groups

def create_key(request: Any) -> tuple[Row, int]:
    name, environment = request.sent["name"], request.sent["environment"]
    refuse(environment == "LIVE" and request.shop["kyc"] != "APPROVED", 403, "KYC_REQUIRED")
    refuse(len(keys_of(request.shop, environment, "ACTIVE")) >= 5, 409, "KEY_LIMIT_REACHED")
    word, id = environment[:4].lower(), secrets.token_hex(8)
    raw = f"ssk_{word}_{secrets.token_hex(20)}"
    keys[id] = {
        "id": id, "name": name, "publicKey": f"spk_{word}_{secrets.token_hex(20)}", "status": "ACTIVE",
        "secretKeyDisplay": f"ssk_{word}_...{raw[-4:]}", "createdAt": at(), "lastUsedAt": None, "revokedAt": None,
        "_shop": request.shop, "_environment": environment, "_digest": hashlib.sha256(raw.encode()).hexdigest()}
    once = {"secretKey": raw, "environment": environment, "secretKeyNote": "It is shown this once."}
    return only(keys[id], "id name publicKey createdAt") | once, 201

def revoke_key(request: Any, key: Row) -> Row:
    refuse(key["status"] == "REVOKED", 409, "ALREADY_REVOKED")
    key.update(status="REVOKED", revokedAt=at())
    return {"message": "Revoked."}

def hooks_of(shop: Row) -> list[Row]:
    return [one for one in list(hooks.values()) if one["_shop"] == shop]

def create_hook(request: Any) -> tuple[Row, int]:
    sent, id, raw = request.sent, secrets.token_hex(8), secrets.token_urlsafe(24)
    invalid(sent["environment"] == "LIVE" and not sent["url"].startswith("https:"), "url")
    refuse(sum(hook["isActive"] for hook in hooks_of(request.shop)) >= 5, 409, "TOO_MANY_ENDPOINTS")
    hooks[id] = {
        "description": None, "events": [], **sent, "id": id, "isActive": True, "secretLast4": raw[-4:],
        "createdAt": at(), "deliverySummary": {"successful": 0, "failed": 0}, "_shop": request.shop, "_secret": raw}
    return shown(hooks[id]) | {"secret": raw}, 201

def close_hook(request: Any, hook: Row) -> Row:
    hook["isActive"] = False
    return shown(hook)

def deliver(hook: Row, raw: bytes) -> None:
    signature, end = hmac.new(hook["_secret"].encode(), raw, hashlib.sha256).hexdigest(), "failed"
    with suppress(httpx.HTTPError, httpx.InvalidURL):
        told = outside.post(hook["url"], content=raw, headers={"X-Service-Signature": signature})
        end = "successful" if told.is_success else "failed"
    hook["deliverySummary"][end] += 1

# Payments

def detail(payment: Row) -> Row:
    return only(payment, "reference amount currency environment status gateway customerEmail callbackUrl metadata")

def initiated(payment: Row) -> Row:
    return only(payment, "reference amount currency environment status expiresAt checkoutUrl")

def show_context(request: Any) -> Row:
    names = {"businessId": "id", "businessName": "name", "kycStatus": "kyc"}
    return {name: request.shop[own] for name, own in names.items()} | {"environment": request.environment}

def credential(gateway: Row, environment: str, name: str) -> str:
    return str(gateway["_credentials"].get(environment.lower() + name, ""))

def is_ready(gateway: Row, environment: str) -> bool:
    needed = PROVIDERS.get(gateway["slug"], {}).get("needs", "")
    return credential(gateway, environment, needed) != "" and credential(gateway, environment, "Enabled") != "false"

def initiate(request: Any) -> tuple[Row, int]:
    shop, environment, sent = request.shop, request.environment, request.sent
    token, slug, enabled = sent.get("idempotencyKey"), sent.get("gateway"), enabled_gateways(shop)
    for twin in payments.values() if token is not None else ():
        if (twin["_shop"], twin["environment"], twin["idempotencyKey"]) == (shop, environment, token):
            refuse(twin["status"] in FINAL, 409, "DUPLICATE_PAYMENT")
            return initiated(twin), 200
    if slug is not None and (slug, environment) != ("sandbox", "SANDBOX"):
        refuse(slug not in [one["slug"] for one in active_gateways(shop)], 400, "GATEWAY_NOT_FOUND", "gateway")
        refuse(slug not in enabled, 400, "GATEWAY_DISABLED", "gateway")
    is_served = environment == "SANDBOX" or any(is_ready(one, environment) for one in enabled.values())
    refuse(not is_served, 503, "NO_GATEWAY_AVAILABLE")
    tail = "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") for _ in range(6))
    reference = f"DJA-{datetime.now(UTC):%Y%m%d}-{tail}"
    payments[reference] = dict.fromkeys(NEW_PAYMENT.model_fields) | {"currency": "NGN"} | sent | {
        "reference": reference, "environment": environment, "status": "INITIATED", "createdAt": at(),
        "expiresAt": at(CONFIG["ttl"]), "checkoutUrl": f"{ORIGIN}/to/{reference}", "_shop": shop, "_tries": 0,
        "_handoff": None, "_processor": None, "_outcome": None, "_lock": threading.Lock()}
    return initiated(payments[reference]), 201

def make_test(request: Any) -> tuple[Row, int]:
    refuse(not keys_of(request.shop, "SANDBOX", "ACTIVE"), 400, "NO_SANDBOX_KEY")
    request.sent["gateway"] = "sandbox"
    return initiate(request)

def move(payment: Row, status: str | None) -> None:
    with LOCK:
        if status is None or payment["status"] in (status, *FINAL):
            return
        payment["status"], name = status, EVENTS[status]
        raw = json.dumps({"name": name, "at": at(), "payment": detail(payment)}).encode()
    for hook in hooks_of(payment["_shop"]):
        is_asked = name in (hook["events"] or [name]) and hook["environment"] == payment["environment"]
        if hook["isActive"] and is_asked:
            threading.Thread(target=deliver, args=(hook, raw), daemon=True).start()

def simulate(request: Any, payment: Row) -> Row:
    refuse(payment["status"] in FINAL, 409, "PAYMENT_ALREADY_FINAL")
    move(payment, OUTCOMES[request.sent["outcome"]])
    return detail(payment)

# Checkout

def show_checkout(request: Any, payment: Row) -> Row:
    return initiated(payment) | {"businessName": payment["_shop"]["name"]}

def checkout_options(request: Any, payment: Row) -> Row:
    shop, environment = payment["_shop"], payment["environment"]
    rows = [{"slug": slug, "title": choice(shop, one)["displayName"] or one["name"], "logoUrl": one["logoUrl"],
             "available": is_ready(one, environment)} for slug, one in enabled_gateways(shop).items()]
    simulator = {"slug": "sandbox", "title": "Simulator", "logoUrl": None, "available": True}
    return {"gateways": [*rows, simulator] if environment == "SANDBOX" else rows}

def process(request: Any, payment: Row) -> Row:
    slug, card = request.sent.get("gatewaySlug", payment["gateway"]), request.sent.get("cardNumber", "")
    with payment["_lock"]:
        refuse(payment["status"] in FINAL, 409, "PAYMENT_ALREADY_PROCESSED")
        refuse(payment["expiresAt"] <= at(), 410, "PAYMENT_EXPIRED")
        if payment["_handoff"] is None:
            invalid(slug not in ("sandbox", *PROVIDERS), "gatewaySlug")
            is_simulated = (slug, payment["environment"]) == ("sandbox", "SANDBOX")
            invalid(is_simulated and card not in CARDS, "cardNumber")
            handoff = f"{payment['checkoutUrl']}/done" if is_simulated else charged(payment, slug)
            payment |= {"_handoff": handoff, "_outcome": CARDS.get(card), "gateway": slug}
            move(payment, "PENDING")
        return {"checkoutUrl": payment["_handoff"]}

def charged(payment: Row, slug: str) -> str:
    """The hand-off of a provider, whose charge begins; each try is under a reference of its own."""
    environment, gateway = payment["environment"], enabled_gateways(payment["_shop"]).get(slug, {})
    refuse(not gateway, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
    refuse(not is_ready(gateway, environment), 400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "gatewaySlug")
    name, mail = f"{payment['reference']}.{payment['_tries']}", payment["customerEmail"] or "nobody@example.com"
    payment |= {"_tries": payment["_tries"] + 1, "_processor": gateway, "_named": name}
    if slug == "provider_b":
        launch = {
            "merchant_key": credential(gateway, environment, "PublicKey"), "checkout_amount": payment["amount"] / 100,
            "connection_mode": {"LIVE": "Live"}.get(environment, "Test"), "currency_code": payment["currency"],
            "email_address": mail, "first_name": "Web", "last_name": "Payer", "phone_number": "",
            "transaction_reference": name}
        return f"{payment['checkoutUrl']}#{base64.urlsafe_b64encode(json.dumps(launch).encode()).decode()}"
    charge = {"email": mail, "amount": payment["amount"], "currency": payment["currency"], "reference": name}
    told = call(payment, "POST", "/transaction/initialize", charge)
    refuse(not told.get("authorization_url"), 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
    return str(told["authorization_url"])

def call(payment: Row, method: str, place: str, sent: Row | None = None) -> Row:
    """The `data` of a provider's answer; empty when it gives none."""
    gateway, environment = payment["_processor"], payment["environment"]
    proof = f"Bearer {credential(gateway, environment, 'SecretKey')}"
    if gateway["slug"] == "provider_b":
        public_key = credential(gateway, environment, "PublicKey").encode()
        proof = f"Payaza {base64.b64encode(public_key).decode()}"
    with suppress(httpx.HTTPError, httpx.InvalidURL, LookupError, TypeError, ValueError):
        address, headers = credential(gateway, environment, "BaseUrl") + place, {"Authorization": proof}
        return dict(read(outside.request(method, address, json=sent, headers=headers).content)["data"])
    return {}

def verify(request: Any, payment: Row) -> Row:
    place, status = "/transaction/verify/", payment["_outcome"]
    if payment["gateway"] == "provider_b":
        place = "/merchant-collection/transfer_notification_controller/merchant/transaction-query?merchant_reference="
    if payment["gateway"] in PROVIDERS and payment["_handoff"] and payment["status"] not in FINAL:
        status = told_by(payment, call(payment, "GET", place + payment["_named"]))
    move(payment, status)
    return only(payment, "status callbackUrl")

def told_by(payment: Row, report: Row) -> str | None:
    """The status of a report, which must be of the payment's money; None when it cannot be read."""
    with suppress(LookupError, TypeError, AttributeError, ArithmeticError):
        if payment["_processor"]["slug"] == "provider_a":
            word, paid = report["status"], {report.get("requested_amount", report["amount"])}
        else:
            word = report["transaction_status"] if "currency" in report else report["status"]
            received, fee = Decimal(report["amount_received"]) * 100, Decimal(report.get("transaction_fee") or 0) * 100
            paid = {received, received - fee}
        status, currency = WORDS.get(word), report.get("currency", report.get("currency_code"))
        differs = payment["amount"] not in paid or currency != payment["currency"]
        refuse(status in ("SUCCESS", "REVERSED") and differs, 502, "PAYMENT_AMOUNT_MISMATCH")
        return status
    return None

# Events of providers

def receive(request: Any, provider: str, environment: str = "") -> Row:
    refuse(provider not in PROVIDERS or environment not in ("", "sandbox", "live"), 404, "NO_SUCH_PAGE")
    recent = arrivals[request.META["REMOTE_ADDR"]]
    recent[:] = [*(one for one in recent if one > time.time() - 60), time.time()]
    refuse(len(recent) > CONFIG["rate"], 429, "TOO_MANY_REQUESTS")
    word = environment or "live"
    gateway = next(one for one in gateways.values() if one["slug"] == provider)
    shared = next(filter(None, (credential(gateway, word, name) for name in PROVIDERS[provider]["proofs"])), "")
    refuse(not shared and provider == "provider_a" and not environment, 503, "NOT_CONFIGURED")
    digest = hmac.new(shared.encode(), request.body, hashlib.sha512).digest()
    right = digest.hex().encode() if provider == "provider_a" else base64.b64encode(digest)
    sent = request.META.get(f"HTTP_X_{provider.upper()}_SIGNATURE", "").encode()
    refuse(not shared or not hmac.compare_digest(right, sent), 400, "INVALID_WEBHOOK_SIGNATURE")
    event = read(request.body)
    invalid(provider == "provider_a" and not isinstance(event, dict), "body")
    with suppress(Refused, LookupError, TypeError, AttributeError):  # what it cannot use moves nothing
        report = event["data"] if provider == "provider_a" else event
        payment = payments[report[PROVIDERS[provider]["names"]][:19]]
        if (payment["environment"].lower(), payment["_processor"]["slug"]) == (word, provider):
            move(payment, told_by(payment, report))
    return {}

# Routes

GATEWAY, SHOP = "admin/gateways/<str:gateway>", "merchant/businesses/<str:business>"
PAYMENT, CHECKOUT = "payments/<str:payment>", "public/payments/<str:payment>"
TEST = f"{SHOP}/test-payment/<str:payment>"
UNLOCKED = (process, verify, receive)
ROUTES: list[tuple[Any, ...]] = [
    ("GET", "admin/gateways", admin, lambda _: [summary(one) for one in gateways.values()]),
    ("POST", "admin/gateways", admin, create_gateway, NEW_GATEWAY),
    ("GET", GATEWAY, admin, show_gateway),
    ("PATCH", GATEWAY, admin, edit_gateway, GATEWAY_CHANGE),
    ("DELETE", GATEWAY, admin, remove_gateway),
    ("POST", f"{GATEWAY}/enable", admin, enable_gateway),
    ("POST", f"{GATEWAY}/disable", admin, disable_gateway),
    ("GET", f"{GATEWAY}/merchants", admin, gateway_merchants, PAGE),
    ("PATCH", f"{GATEWAY}/credentials", admin, keep_credentials, CREDENTIALS),
    ("POST", f"{GATEWAY}/logo", admin, keep_logo),
    ("GET", "public/gateways/<str:gateway>/logo", None, show_logo),
    ("GET", f"{SHOP}/gateways", manager, list_options),
    ("POST", f"{SHOP}/gateways/reorder", manager, reorder, ORDER),
    ("PATCH", f"{SHOP}/gateways/<str:gateway>", manager, edit_option, OPTION),
    ("GET", f"{SHOP}/api-keys", active, list_keys),
    ("POST", f"{SHOP}/api-keys", active, create_key, NEW_KEY),
    ("DELETE", f"{SHOP}/api-keys/<str:key>", manager, revoke_key),
    ("GET", f"{SHOP}/webhooks", manager, lambda request: [shown(hook) for hook in hooks_of(request.shop)]),
    ("POST", f"{SHOP}/webhooks", active, create_hook, NEW_HOOK),
    ("DELETE", f"{SHOP}/webhooks/<str:hook>", active, close_hook),
    ("GET", "payments/context", secret, show_context),
    ("POST", "payments/initiate", secret, initiate, NEW_PAYMENT),
    ("GET", PAYMENT, secret, lambda _, payment: detail(payment)),
    ("POST", f"{PAYMENT}/simulate", sandbox, simulate, OUTCOME),
    ("GET", CHECKOUT, None, show_checkout),
    ("GET", f"{CHECKOUT}/gateways", None, checkout_options),
    ("POST", f"{CHECKOUT}/process", None, process, CHECKOUT_CHOICE),
    ("GET", f"{CHECKOUT}/verify", None, verify),
    ("POST", f"{SHOP}/test-payment", active, make_test, NEW_TEST),
    ("GET", TEST, manager, lambda _, payment: detail(payment)),
    ("POST", f"{TEST}/simulate", active, simulate, OUTCOME),
    ("POST", "webhooks/<str:provider>", None, receive),
    ("POST", "webhooks/<str:provider>/<str:environment>", None, receive)]

def view(methods: dict[str, list[Any]]) -> Callable[..., HttpResponse]:
    def serve(request: Any, **named: Any) -> HttpResponse:
        request.shop = request.environment = None
        try:
            refuse(request.method not in methods, 405, "WRONG_METHOD")
            guard, handler, *model = methods[request.method]
            with nullcontext() if handler in UNLOCKED else LOCK:
                if guard:
                    guard(request, named)
                rows = {name: FINDERS[name](request, id) if name in FINDERS else id for name, id in named.items()}
                request.sent = read_body(request, *model) if model else {}
                found = handler(request, **rows)
        except Refused as refusal:
            return JsonResponse({"success": False, "error": refusal.error}, status=refusal.status)
        data, status = found if isinstance(found, tuple) else (found, 200)
        return data if isinstance(data, HttpResponse) else JsonResponse({"success": True, "data": data}, status=status)
    return serve

def handler404(request: Any, exception: Exception) -> HttpResponse:
    return JsonResponse({"success": False, "error": {"code": "NO_SUCH_PAGE", "message": "No such page."}}, status=404)

METHODS: dict[str, dict[str, list[Any]]] = defaultdict(dict)
for method, place, *how in ROUTES:
    METHODS[place][method] = how
urlpatterns = [path(f"api/v1/{place}", view(methods)) for place, methods in METHODS.items()]

class Handler(WSGIRequestHandler):  # type: ignore[misc]  # Django has no types
    """Django's own would drop `x-provider_a-signature`, for its underscore."""

    def get_environ(self) -> Row:
        return BareHandler.get_environ(self)

    def log_message(self, *_: Any) -> None:
        """Requests are not logged."""

if __name__ == "__main__":
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], APPEND_SLASH=False, USE_TZ=True, MIDDLEWARE=[],
                       LOGGING_CONFIG=None, DATA_UPLOAD_MAX_MEMORY_SIZE=None, DATABASES={})
    logging.getLogger("django").setLevel(logging.ERROR)
    add_gateway("house", "House", status="ACTIVE", isBuiltIn=True)
    for number, slug in enumerate(PROVIDERS):
        add_gateway(slug, slug.replace("_", " ").title(), displayOrder=number + 1)
    server = ThreadedWSGIServer(("127.0.0.1", CONFIG["port"]), Handler)
    server.set_app(WSGIHandler())
    server.serve_forever()
