"""An honest payment aggregator in Django, written from the interface before its author read a check of the harness; he had
seen the list of its assumptions, and how the Starlette one speaks to providers.

Its one argument is JSON: `port`, `jwtKey`, `ttl`, `drain`, `rate`, `businesses` (`id`, `name`, `kyc`, `status`, `members`).
What the document does not show is left out, as to change or to try a webhook endpoint, or chosen unlike payagg and the other
two, but for the names of credentials, provider_b's hand-off and `idempotencyKey` of a test payment."""
# fmt: off

import base64
import hashlib
import hmac
import json
import logging
import re
import secrets
import string
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from io import BytesIO
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler as BareHandler

import httpx
import jwt
from django.conf import settings
from django.core import validators as must
from django.core.exceptions import ValidationError
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from PIL import Image

Row = dict[str, Any]
CONFIG = json.loads(sys.argv[1])
ORIGIN = f"http://127.0.0.1:{CONFIG['port']}"
OUTCOMES = {"approve": "SUCCESS", "refuse": "FAILED", "give-back": "REVERSED"}
CARDS = {"6011000000000004": "SUCCESS", "6011000000000012": "FAILED", "6011000000000020": "REVERSED", "6011000000000038": None}
EVENTS = {"PENDING": "charge.opened", "SUCCESS": "charge.paid", "FAILED": "charge.refused", "REVERSED": "charge.returned"}
PROVIDERS = ("provider_a", "provider_b")
FINAL = ("SUCCESS", "FAILED", "REVERSED")
WORDS = {"SANDBOX": "sand", "LIVE": "live"}

LOCK = threading.RLock()  # of all rows; what waits for a provider holds that of its payment instead
shops: dict[str, Row] = {one["id"]: one for one in CONFIG["businesses"]}
gateways: dict[str, Row] = {}
choices: dict[tuple[str, str], Row] = defaultdict(  # of (business, gateway)
    lambda: {"isEnabled": True, "displayOrder": None, "displayName": None, "isDefault": False, "updatedAt": None})
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

def invalid(case: object, field: str) -> None: refuse(case, 400, "VALIDATION_ERROR", field)
def at(seconds: float | None) -> str | None: return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
def only(row: Row, names: str) -> Row: return {name: row[name] for name in names.split()}

# Bodies

class Field:
    def __init__(self, kind: type, *checks: Callable[[Any], None], required: bool = False, null: bool = False) -> None:
        self.kind, self.checks, self.required, self.null = kind, checks, required, null

    def check(self, name: str, value: Any) -> None:
        if value is None and self.null:
            return
        invalid(type(value) is not self.kind, name)
        try:
            for check in self.checks:
                check(value)
        except ValidationError:
            invalid(True, name)

def text(least: int = 0, most: int = 10_000, **how: bool) -> Field: return Field(str, must.MinLengthValidator(least), must.MaxLengthValidator(most), **how)

def read(raw: bytes, number: Callable[[str], Any] = float) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(raw, parse_float=number, parse_constant=lambda name: invalid(True, "body"))
    return None

def body(request: HttpRequest, fields: dict[str, Field], *, closed: bool = False) -> Row:
    """The JSON object that was sent, by its fields; `closed` allows no other property."""
    sent = read(request.body or b"{}")
    invalid(not isinstance(sent, dict), "body")
    for name, field in fields.items():
        invalid(field.required and name not in sent, name)
    for name, value in sent.items():
        if name in fields:
            fields[name].check(name, value)
        invalid(closed and name not in fields, name)
    return {name: sent[name] for name in fields if name in sent}

def page(request: HttpRequest, rows: list[Row]) -> JsonResponse:
    sent = {"page": request.GET.get("page", "1"), "perPage": request.GET.get("perPage", "20")}
    for name, most in (("page", 10**9), ("perPage", 100)):
        invalid(not re.fullmatch("[0-9]{1,9}", sent[name]) or not 1 <= int(sent[name]) <= most, name)
    number, size = int(sent["page"]), int(sent["perPage"])
    meta = {"page": number, "perPage": size, "total": len(rows)}
    return JsonResponse({"success": True, "data": rows[(number - 1) * size:number * size], "meta": meta})

# Who asks

def bearer(request: HttpRequest) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    refuse(scheme.lower() != "bearer" or not token.strip(), 401, "UNAUTHORIZED")
    return str(token.strip())

def claims(request: HttpRequest, realm: str) -> Row:
    try:
        told: Row = jwt.decode(bearer(request), CONFIG["jwtKey"], ["HS256"], options={"require": ["sub"]})
    except jwt.InvalidTokenError:
        raise Refused(401, "UNAUTHORIZED") from None
    refuse(told.get("type") != realm, 403, "WRONG_REALM")
    return told

def public(request: Any, named: Row) -> None:
    """The route asks for no credentials."""

def admin(request: Any, named: Row) -> None: refuse(claims(request, "admin").get("role") != "ADMIN", 403, "WRONG_ROLE")

def manager(request: Any, named: Row) -> None:
    told, request.shop = claims(request, "merchant"), shops.get(named.pop("business"))
    role = request.shop and request.shop["members"].get(told["sub"])
    refuse(role not in ("OWNER", "ADMIN") or told.get("emailVerified") is not True, 403, "NOT_A_MANAGER")

def active(request: Any, named: Row) -> None:
    manager(request, named)
    refuse(request.shop["status"] != "ACTIVE", 403, "BUSINESS_RESTRICTED")

def secret(request: Any, named: Row) -> None:
    digest = hashlib.sha256(bearer(request).encode("utf-8", "replace")).hexdigest()
    request.key = next((key for key in keys.values() if key["digest"] == digest and not key["revokedAt"]), None)
    refuse(request.key is None, 401, "INVALID_API_KEY")
    request.shop = shops[request.key["shop"]]
    refuse(request.shop["status"] != "ACTIVE", 403, "BUSINESS_RESTRICTED")
    refuse(request.key["environment"] == "LIVE" and request.shop["kyc"] != "APPROVED", 403, "KYC_REQUIRED")
    request.key["lastUsedAt"] = time.time()

# Gateways

def add_gateway(slug: str, name: str, **more: Any) -> Row:
    now, id_ = time.time(), secrets.token_hex(8)
    gateways[id_] = {"id": id_, "slug": slug, "name": name, "description": None, "displayOrder": 0, "status": "DISABLED",
                     "isBuiltIn": False, "drainStartedAt": None, "credentials": {}, "logo": None, "createdAt": now, "updatedAt": now, **more}
    return gateways[id_]

def settled(gateway: Row) -> Row:
    """The gateway, whose drain ends here when its time is over."""
    if gateway["status"] == "DRAINING" and time.time() >= gateway["drainStartedAt"] + CONFIG["drain"]:
        gateway |= {"status": "DISABLED", "drainStartedAt": None}
    return gateway

def gateway_of(id_: str) -> Row:
    refuse(id_ not in gateways, 404, "GATEWAY_MISSING")
    return settled(gateways[id_])

def active_gateways() -> list[Row]: return [one for one in list(gateways.values()) if settled(one)["status"] == "ACTIVE"]
def choice(shop: Row, gateway: Row) -> Row: return choices[shop["id"], gateway["id"]]
def logo_url(gateway: Row) -> str | None: return f"/api/v1/public/gateways/{gateway['id']}/logo" if gateway["logo"] else None

def looks(gateway: Row) -> Row:
    return only(gateway, "id slug name description displayOrder isBuiltIn") | {"logoPath": gateway["logo"] and gateway["logo"][0], "logoUrl": logo_url(gateway)}

def users() -> list[Row]: return [shop for shop in shops.values() if shop["status"] == "ACTIVE"]

def summary(gateway: Row) -> Row:
    settled(gateway)
    start = gateway["drainStartedAt"]
    return looks(gateway) | {
        "isActive": gateway["status"] == "ACTIVE", "status": gateway["status"], "drainStartedAt": at(start),
        "drainEndsAt": at(start and start + CONFIG["drain"]), "hasCredentials": bool(gateway["credentials"]),
        "businessCount": sum(choice(shop, gateway)["isEnabled"] for shop in users()),
        "createdAt": at(gateway["createdAt"]), "updatedAt": at(gateway["updatedAt"])}

def changed(gateway: Row, **values: Any) -> Row:
    gateway |= {**values, "updatedAt": time.time()}
    return summary(gateway)

DESCRIBED = {"name": text(2, 100), "displayOrder": Field(int, must.MinValueValidator(0))}

def create_gateway(request: Any) -> tuple[Row, int]:
    slug = text(2, 50, required=True)
    slug.checks += (must.RegexValidator(r"^[a-z0-9]+(?:-[a-z0-9]+)*\Z"),)
    sent = body(request, {**DESCRIBED, "slug": slug, "name": text(2, 100, required=True), "description": text(most=1000)})
    refuse(sent["slug"] in {"sandbox", *(one["slug"] for one in gateways.values())}, 409, "SLUG_EXISTS", "slug")
    return summary(add_gateway(**sent)), 201

def show_gateway(request: Any, id: str) -> Row:
    gateway = gateway_of(id)
    off = [(shop, choice(shop, gateway)) for shop in shops.values() if not choice(shop, gateway)["isEnabled"]]
    return summary(gateway) | {"overrides": [{"businessId": shop["id"], "businessName": shop["name"], "updatedAt": at(one["updatedAt"])} for shop, one in off]}

def edit_gateway(request: Any, id: str) -> Row:
    gateway = gateway_of(id)
    sent = body(request, {**DESCRIBED, "description": text(most=1000, null=True)}, closed=True)
    invalid(gateway["isBuiltIn"] and sent.keys() - {"displayOrder"}, next(iter(sent.keys() - {"displayOrder"}), ""))
    return changed(gateway, **sent)

def remove_gateway(request: Any, id: str) -> Row:
    gateway = gateway_of(id)
    refuse(gateway["isBuiltIn"] or gateway["status"] != "DISABLED", 409, "GATEWAY_IN_USE")
    del gateways[id]
    return {"message": "Removed."}

def switch(request: Any, id: str, way: str) -> Row:
    gateway, start = gateway_of(id), {"enable": None, "disable": time.time()}[way]
    refuse((gateway["status"] == "ACTIVE") == (start is None) or (start and gateway["isBuiltIn"]), 409, "CANNOT_SWITCH")
    return changed(gateway, status="DRAINING" if start else "ACTIVE", drainStartedAt=start)

def gateway_merchants(request: Any, id: str) -> JsonResponse:
    gateway, search = gateway_of(id), request.GET.get("search", "")
    invalid(len(search) > 100, "search")
    rows = [{"id": f"{shop['id']}.{id}", "businessId": shop["id"], "businessName": shop["name"], "createdAt": at(gateway["createdAt"]),
             **only(choice(shop, gateway), "isEnabled displayName isDefault"), "displayOrder": order_of(shop, gateway)}
            for shop in users() if search.lower() in shop["name"].lower()]
    return page(request, rows)

def keep_credentials(request: Any, id: str) -> JsonResponse:
    gateway, sent = gateway_of(id), body(request, {"credentials": Field(dict, required=True)})["credentials"]
    invalid(not 1 <= len(sent) <= 50, "credentials")
    for value in sent.values():
        text(most=4000).check("credentials", value)
    changed(gateway, credentials=sent)
    return JsonResponse({"success": True})

def keep_logo(request: Any, id: str) -> tuple[Row, int]:
    gateway = gateway_of(id)
    file = request.FILES.get("file")
    invalid(file is None or not 0 < file.size <= 2 * 2**20, "file")
    content = file.read()
    try:
        with Image.open(BytesIO(content), formats=("PNG", "JPEG")) as image:
            image.load()
            kind = str(image.format).lower()
    except Exception:  # noqa: BLE001 - Pillow has many
        invalid(True, "file")
    changed(gateway, logo=(f"logos/{id}.{kind}", f"image/{kind}", content))
    return {"logoUrl": logo_url(gateway)}, 201

def show_logo(request: Any, id: str) -> HttpResponse:
    logo: Any = gateways[id]["logo"] if id in gateways else None
    refuse(not logo, 404, "LOGO_MISSING")
    return HttpResponse(logo[2], content_type=logo[1], headers={"Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff"})

def order_of(shop: Row, gateway: Row) -> int:
    own = choice(shop, gateway)["displayOrder"]
    return int(gateway["displayOrder"] if own is None else own)

def option(shop: Row, gateway: Row) -> Row:
    own = choice(shop, gateway)
    return looks(gateway) | only(own, "isEnabled displayName isDefault") | {"businessDisplayOrder": own["displayOrder"]}

def ordered(shop: Row) -> list[Row]: return sorted(active_gateways(), key=lambda one: (not one["isBuiltIn"], order_of(shop, one), one["createdAt"]))
def list_options(request: Any) -> list[Row]: return [option(request.shop, one) for one in ordered(request.shop)]

def edit_option(request: Any, id: str) -> Row:
    gateway = gateway_of(id)
    refuse(gateway["status"] != "ACTIVE", 404, "GATEWAY_MISSING")
    sent = body(request, {"isEnabled": Field(bool), "displayOrder": Field(int, must.MinValueValidator(0)),
                          "displayName": text(most=50, null=True), "isDefault": Field(bool)}, closed=True)
    own = choice(request.shop, gateway)
    invalid(gateway["isBuiltIn"] and sent.get("isEnabled") is False, "isEnabled")
    invalid(gateway["isBuiltIn"] and "displayOrder" in sent, "displayOrder")
    invalid(sent.get("isDefault") and not sent.get("isEnabled", own["isEnabled"]), "isDefault")
    if sent.get("isDefault"):
        for other in gateways.values():
            choice(request.shop, other)["isDefault"] = False
    own |= {**sent, "updatedAt": time.time()}
    own["isDefault"] = own["isDefault"] and own["isEnabled"]
    return option(request.shop, gateway)

def reorder(request: Any) -> list[Row]:
    order, known = body(request, {"order": Field(list, required=True)})["order"], {one["id"]: one for one in active_gateways()}
    invalid(not 1 <= len(order) <= 100, "order")
    for item in order:
        invalid(not isinstance(item, dict) or type(item.get("displayOrder")) is not int or item["displayOrder"] < 0, "order")
        invalid(not isinstance(item.get("gatewayId"), str) or item["gatewayId"] not in known, "order")
    for item in order:
        if not known[item["gatewayId"]]["isBuiltIn"]:
            choice(request.shop, known[item["gatewayId"]])["displayOrder"] = item["displayOrder"]
    return list_options(request)

# Keys

def key_record(key: Row) -> Row:
    return only(key, "id name publicKey secretKeyDisplay") | {"status": "REVOKED" if key["revokedAt"] else "ACTIVE"} | {
        name: at(key[name]) for name in ("lastUsedAt", "createdAt", "revokedAt")}

def of(rows: dict[str, Row], shop: Row, environment: str = "") -> list[Row]:
    return [row for row in list(rows.values()) if row["shop"] == shop["id"] and environment in ("", row["environment"])]

def list_keys(request: Any) -> Row:
    def group(environment: str) -> list[Row]:
        mine = of(keys, request.shop, environment)
        gone = sorted((key for key in mine if key["revokedAt"]), key=lambda key: -key["revokedAt"])
        return [key_record(key) for key in [*(key for key in mine if not key["revokedAt"]), *gone[:20]]]
    return {"sandbox": group("SANDBOX"), "live": group("LIVE")}

ENVIRONMENT = Field(str, must.RegexValidator(r"^(SANDBOX|LIVE)\Z"), required=True)

def create_key(request: Any) -> tuple[Row, int]:
    sent = body(request, {"environment": ENVIRONMENT, "name": text(2, 100, required=True)}, closed=True)
    refuse(sent["environment"] == "LIVE" and request.shop["kyc"] != "APPROVED", 403, "KYC_REQUIRED")
    refuse(sum(not key["revokedAt"] for key in of(keys, request.shop, sent["environment"])) >= 5, 409, "KEY_LIMIT_REACHED")
    word, id_ = WORDS[sent["environment"]], secrets.token_hex(8)
    raw = f"ssk_{word}_{secrets.token_hex(20)}"
    keys[id_] = key = {**sent, "id": id_, "shop": request.shop["id"], "publicKey": f"spk_{word}_{secrets.token_hex(20)}",
                       "secretKeyDisplay": f"ssk_{word}_...{raw[-4:]}", "digest": hashlib.sha256(raw.encode()).hexdigest(),
                       "createdAt": time.time(), "lastUsedAt": None, "revokedAt": None}
    return only(key, "id name publicKey environment") | {"secretKey": raw, "createdAt": at(key["createdAt"]), "secretKeyNote": "It is shown this once."}, 201

def revoke_key(request: Any, id: str) -> Row:
    refuse(id not in keys or keys[id]["shop"] != request.shop["id"], 404, "KEY_MISSING")
    refuse(keys[id]["revokedAt"], 409, "ALREADY_REVOKED")
    keys[id]["revokedAt"] = time.time()
    return {"message": "Revoked."}

# Webhooks of merchants

def hook_record(hook: Row) -> Row:
    return only(hook, "id url description environment isActive events") | {
        "secretLast4": hook["secret"][-4:], "createdAt": at(hook["createdAt"]),
        "deliverySummary": {"successful": hook["log"].count(True), "failed": hook["log"].count(False)}}

def http_url(*schemes: str, **how: bool) -> Field: return Field(str, must.URLValidator(schemes), **how)

def create_hook(request: Any) -> tuple[Row, int]:
    sent = body(request, {"url": http_url("http", "https", required=True), "description": text(most=200), "events": Field(list),
                          "environment": ENVIRONMENT}, closed=True)
    invalid(sent["environment"] == "LIVE" and not sent["url"].startswith("https:"), "url")
    invalid(any(one not in EVENTS.values() for one in sent.get("events", [])), "events")
    refuse(sum(hook["isActive"] for hook in of(hooks, request.shop)) >= 5, 409, "TOO_MANY_ENDPOINTS")
    id_ = secrets.token_hex(8)
    hooks[id_] = {"description": None, "events": [], **sent, "id": id_, "shop": request.shop["id"], "isActive": True,
                  "secret": secrets.token_urlsafe(24), "createdAt": time.time(), "log": []}
    return hook_record(hooks[id_]) | {"secret": hooks[id_]["secret"]}, 201

def close_hook(request: Any, id: str) -> Row:
    refuse(id not in hooks or hooks[id]["shop"] != request.shop["id"], 404, "ENDPOINT_MISSING")
    hooks[id]["isActive"] = False
    return hook_record(hooks[id])

def deliver(hook: Row, raw: bytes) -> None:
    signature = hmac.new(hook["secret"].encode(), raw, hashlib.sha256).hexdigest()
    hook["log"].append(False)
    with suppress(httpx.HTTPError, httpx.InvalidURL):
        hook["log"][-1] = outside.post(hook["url"], content=raw, headers={"X-Service-Signature": signature}).is_success

def dispatch(payment: Row) -> None:
    name = EVENTS[payment["status"]]
    raw = json.dumps({"name": name, "at": at(time.time()), "payment": detail(payment)}).encode()
    for hook in of(hooks, {"id": payment["shop"]}, payment["environment"]):
        if hook["isActive"] and (not hook["events"] or name in hook["events"]):
            threading.Thread(target=deliver, args=(hook, raw), daemon=True).start()

# Payments

NAIRA = Field(str, must.RegexValidator(r"^NGN\Z"))
INITIATE = {
    "amount": Field(int, must.MinValueValidator(100), required=True), "currency": NAIRA, "customerEmail": Field(str, must.EmailValidator()),
    "customerName": text(), "customerPhone": text(), "gateway": text(), "callbackUrl": http_url("http", "https"),
    "webhookUrl": http_url("https"), "metadata": Field(dict, must.MaxLengthValidator(50)), "idempotencyKey": text()}

def detail(payment: Row) -> Row:
    return only(payment, "reference amount currency environment status gateway customerEmail customerName callbackUrl metadata") | {
        "createdAt": at(payment["createdAt"]), "expiresAt": at(payment["expiresAt"])}

def payment_of(reference: str, shop: Row | None = None, environment: str = "") -> Row:
    refuse(not re.fullmatch("[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}", reference), 400, "INVALID_REFERENCE")
    payment = payments.get(reference)
    is_hidden = payment is None or (shop and (payment["shop"], payment["environment"]) != (shop["id"], environment))
    refuse(is_hidden, 404, "PAYMENT_NOT_FOUND")
    return payments[reference]

def account(gateway: Row, environment: str) -> Callable[[str], str]:
    """Of the provider's credentials for an environment, by name; empty when there is none."""
    return lambda name: str(gateway["credentials"].get(environment.lower() + name, ""))

def is_ready(gateway: Row, environment: str) -> bool:
    needed = {"provider_a": "SecretKey", "provider_b": "PublicKey"}.get(gateway["slug"])
    credential = account(gateway, environment)
    return needed is not None and credential(needed) != "" and credential("Enabled") != "false"

def prefer(shop: Row, environment: str, slug: str | None) -> None:
    """Refuses a payment that has no gateway to go to."""
    if slug is not None and (slug, environment) != ("sandbox", "SANDBOX"):
        gateway = next((one for one in active_gateways() if one["slug"] == slug), None)
        refuse(gateway is None, 400, "GATEWAY_NOT_FOUND", "gateway")
        refuse(not choice(shop, gateway or {})["isEnabled"], 400, "GATEWAY_DISABLED", "gateway")
    usable = any(is_ready(one, environment) and choice(shop, one)["isEnabled"] for one in active_gateways())
    refuse(environment == "LIVE" and not usable, 503, "NO_GATEWAY_AVAILABLE")

def begin(shop: Row, environment: str, sent: Row) -> tuple[Row, int]:
    token = sent.get("idempotencyKey")
    twin = next((one for one in of(payments, shop, environment) if token is not None and one["idempotencyKey"] == token), None)
    if twin:
        refuse(twin["status"] in FINAL, 409, "DUPLICATE_PAYMENT")
        return initiated(twin), 200
    prefer(shop, environment, sent.get("gateway"))
    now = time.time()
    tail = "".join(secrets.choice(string.ascii_uppercase + string.digits) for _ in range(6))
    reference = f"DJA-{datetime.fromtimestamp(now, UTC):%Y%m%d}-{tail}"
    payments[reference] = {
        **dict.fromkeys(INITIATE), "currency": "NGN", **sent, "reference": reference, "shop": shop["id"], "environment": environment,
        "status": "INITIATED", "createdAt": now, "expiresAt": now + CONFIG["ttl"], "lock": threading.RLock(),
        "handoff": None, "processor": None, "outcome": None, "tries": 0, "named": None}
    return initiated(payments[reference]), 201

def initiated(payment: Row) -> Row:
    return only(payment, "reference amount currency environment status") | {
        "expiresAt": at(payment["expiresAt"]), "checkoutUrl": f"{ORIGIN}/to/{payment['reference']}"}

def move(payment: Row, status: str | None) -> None:
    if status and payment["status"] not in (status, *FINAL):
        payment["status"] = status
        dispatch(payment)

def show_payment(request: Any, reference: str) -> Row:
    return detail(payment_of(reference, request.shop, request.key["environment"] if request.key else "SANDBOX"))

def simulate(request: Any, reference: str) -> Row:
    refuse(request.key and request.key["environment"] == "LIVE", 403, "SANDBOX_ONLY")
    payment = payment_of(reference, request.shop, "SANDBOX")
    word = body(request, {"outcome": text(required=True)})["outcome"]
    invalid(word not in OUTCOMES, "outcome")
    with payment["lock"]:
        refuse(payment["status"] in FINAL, 409, "PAYMENT_ALREADY_FINAL")
        move(payment, OUTCOMES[word])
    return detail(payment)

def make_test(request: Any) -> tuple[Row, int]:
    sent = body(request, only(INITIATE, "amount idempotencyKey"))
    refuse(all(key["revokedAt"] for key in of(keys, request.shop, "SANDBOX")), 400, "NO_SANDBOX_KEY")
    return begin(request.shop, "SANDBOX", sent | {"gateway": "sandbox"})

# Checkout

def show_checkout(request: Any, reference: str) -> Row:
    payment = payment_of(reference)
    return only(payment, "reference amount currency environment status") | {"businessName": shops[payment["shop"]]["name"], "expiresAt": at(payment["expiresAt"])}

def checkout_options(request: Any, reference: str) -> Row:
    payment = payment_of(reference)
    shop = shops[payment["shop"]]
    rows = [{"slug": one["slug"], "title": choice(shop, one)["displayName"] or one["name"], "logoUrl": logo_url(one),
             "available": is_ready(one, payment["environment"])} for one in ordered(shop) if choice(shop, one)["isEnabled"]]
    simulator = {"slug": "sandbox", "title": "Simulator", "logoUrl": None, "available": True}
    return {"gateways": rows + [simulator] * (payment["environment"] == "SANDBOX")}

def process(request: Any, reference: str) -> Row:
    sent, payment = body(request, {"gatewaySlug": text(), "cardNumber": text()}), payment_of(reference)
    slug: Any = sent.get("gatewaySlug", payment["gateway"])
    with payment["lock"]:
        refuse(payment["status"] in FINAL, 409, "PAYMENT_ALREADY_PROCESSED")
        refuse(time.time() >= payment["expiresAt"], 410, "PAYMENT_EXPIRED")
        if payment["handoff"] is None:
            invalid(slug not in ("sandbox", *PROVIDERS), "gatewaySlug")
            start = simulated if slug == "sandbox" else charged
            payment |= {"handoff": start(payment, slug, sent.get("cardNumber")), "gateway": slug}
            move(payment, "PENDING")
        return {"checkoutUrl": payment["handoff"]}

def simulated(payment: Row, slug: str, card: str | None) -> str:
    refuse(payment["environment"] != "SANDBOX", 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
    invalid(card not in CARDS, "cardNumber")
    payment["outcome"] = CARDS[str(card)]
    return f"{ORIGIN}/to/{payment['reference']}/done"

def charged(payment: Row, slug: str, _: str | None) -> str:
    """The hand-off of a provider, whose charge begins; each try is under a reference of its own."""
    environment, shop = payment["environment"], shops[payment["shop"]]
    gateway = next((one for one in active_gateways() if one["slug"] == slug and choice(shop, one)["isEnabled"]), None)
    refuse(gateway is None, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
    assert gateway is not None
    refuse(not is_ready(gateway, environment), 400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "gatewaySlug")
    payment["tries"] += 1
    name, credential = f"{payment['reference']}.{payment['tries']}", account(gateway, environment)
    mail = payment["customerEmail"] or "nobody@example.com"
    if slug == "provider_b":
        launch = {"merchant_key": credential("PublicKey"), "connection_mode": {"LIVE": "Live"}.get(environment, "Test"),
                  "checkout_amount": payment["amount"] / 100, "currency_code": payment["currency"], "email_address": mail,
                  "first_name": "Web", "last_name": "Payer", "phone_number": "", "transaction_reference": name}
        handoff = f"{ORIGIN}/to/{payment['reference']}#{base64.urlsafe_b64encode(json.dumps(launch).encode()).decode()}"
    else:
        asked = {"email": mail, "amount": payment["amount"], "currency": payment["currency"], "reference": name}
        handoff = ""
        with suppress(httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
            told = outside.post(f"{credential('BaseUrl') or 'https://api.paystack.co'}/transaction/initialize", json=asked,
                                headers={"Authorization": f"Bearer {credential('SecretKey')}"})
            handoff = told.json()["data"]["authorization_url"]
        refuse(not handoff, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
    payment |= {"processor": gateway, "named": name}
    return handoff

def verify(request: Any, reference: str) -> Row:
    payment = payment_of(reference)
    with payment["lock"]:
        if payment["status"] not in FINAL:
            move(payment, fetched(payment) if payment["processor"] else payment["outcome"])
    return only(payment, "status callbackUrl")

def fetched(payment: Row) -> str | None:
    """The status that the provider tells; None when it tells none."""
    credential, name = account(payment["processor"], payment["environment"]), payment["named"]
    if payment["gateway"] == "provider_a":
        place, proof = f"{credential('BaseUrl')}/transaction/verify/{name}", f"Bearer {credential('SecretKey')}"
    else:
        place = f"{credential('BaseUrl')}/merchant-collection/transfer_notification_controller/merchant/transaction-query?merchant_reference={name}"
        proof = "Payaza " + base64.b64encode(credential("PublicKey").encode()).decode()
    with suppress(httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, AttributeError, InvalidOperation):
        return told_by(payment, read(outside.get(place, headers={"Authorization": proof}).content, Decimal)["data"])
    return None

def told_by(payment: Row, report: Row) -> str | None:
    """The status of a report, which must be of the payment's money."""
    if payment["gateway"] == "provider_a":
        status, currency = {"success": "SUCCESS", "failed": "FAILED", "reversed": "REVERSED"}.get(report["status"]), report["currency"]
        paid = {report.get("requested_amount", report["amount"])}
    else:
        word = report["transaction_status"] if "currency" in report else report["status"]
        status, currency = {"Completed": "SUCCESS", "Failed": "FAILED"}.get(word), report.get("currency", report.get("currency_code"))
        received, fee = Decimal(report["amount_received"]) * 100, Decimal(report.get("transaction_fee") or 0) * 100
        paid = {received, received - fee}
    differs = payment["amount"] not in paid or currency != payment["currency"]
    refuse(status in ("SUCCESS", "REVERSED") and differs, 502, "PAYMENT_AMOUNT_MISMATCH")
    return status

# Events of providers

def receive(request: Any, provider: str, environment: str = "") -> Row:
    refuse(provider not in PROVIDERS or environment not in ("", "sandbox", "live"), 404, "NO_SUCH_PAGE")
    recent = arrivals[request.META["REMOTE_ADDR"]]
    recent[:] = [*(one for one in recent if one > time.time() - 60), time.time()]
    refuse(len(recent) > CONFIG["rate"], 429, "TOO_MANY_REQUESTS")
    credentials = next(one["credentials"] for one in gateways.values() if one["slug"] == provider)
    names = {"provider_a": ("WebhookSecret", "SecretKey"), "provider_b": ("SigningSecret",)}[provider]
    shared = next(filter(None, (credentials.get((environment or "live") + name) for name in names)), None)
    refuse(not shared and provider == "provider_a" and not environment, 503, "NOT_CONFIGURED")
    digest = hmac.new((shared or "").encode(), request.body, hashlib.sha512).digest()
    right = digest.hex().encode() if provider == "provider_a" else base64.b64encode(digest)
    sent = request.META.get(f"HTTP_X_{provider.upper()}_SIGNATURE", "").encode()
    refuse(not shared or not hmac.compare_digest(right, sent), 400, "INVALID_WEBHOOK_SIGNATURE")
    event = read(request.body, Decimal)
    invalid(provider == "provider_a" and not isinstance(event, dict), "body")
    with suppress(Refused, LookupError, TypeError, AttributeError, InvalidOperation):  # what it cannot use moves nothing
        report = event["data"] if provider == "provider_a" else event
        payment = payments[report["reference" if provider == "provider_a" else "merchant_reference"][:19]]
        with payment["lock"]:
            if (payment["environment"], payment["gateway"]) == ((environment or "live").upper(), provider) and payment["processor"]:
                move(payment, told_by(payment, report))
    return {}

# Routes

UNLOCKED = (simulate, process, verify, receive)

def view(**methods: tuple[Callable[[Any, Row], None], Callable[..., Any]]) -> Callable[..., HttpResponse]:
    def serve(request: Any, **named: Any) -> HttpResponse:
        request.key = None
        try:
            refuse(request.method not in methods, 405, "WRONG_METHOD")
            guard, handler = methods[request.method]
            guard(request, named)
            if handler in UNLOCKED:
                found = handler(request, **named)
            else:
                with LOCK:
                    found = handler(request, **named)
        except Refused as refusal:
            return JsonResponse({"success": False, "error": refusal.error}, status=refusal.status)
        data, status = found if isinstance(found, tuple) else (found, 200)
        return data if isinstance(data, HttpResponse) else JsonResponse({"success": True, "data": data}, status=status)
    return serve

def handler404(request: Any, exception: Exception) -> HttpResponse:
    return JsonResponse({"success": False, "error": {"code": "NO_SUCH_PAGE", "message": "No such page."}}, status=404)

GATEWAY, SHOP, CHECKOUT = "admin/gateways/<str:id>", "merchant/businesses/<str:business>", "public/payments/<str:reference>"
ROUTES: dict[str, dict[str, Any]] = {
    "admin/gateways": {"GET": (admin, lambda _: [summary(one) for one in gateways.values()]), "POST": (admin, create_gateway)},
    GATEWAY: {"GET": (admin, show_gateway), "PATCH": (admin, edit_gateway), "DELETE": (admin, remove_gateway)},
    f"{GATEWAY}/enable": {"POST": (admin, lambda r, id: switch(r, id, "enable"))},
    f"{GATEWAY}/disable": {"POST": (admin, lambda r, id: switch(r, id, "disable"))},
    f"{GATEWAY}/merchants": {"GET": (admin, gateway_merchants)}, f"{GATEWAY}/credentials": {"PATCH": (admin, keep_credentials)},
    f"{GATEWAY}/logo": {"POST": (admin, keep_logo)}, "public/gateways/<str:id>/logo": {"GET": (public, show_logo)},
    f"{SHOP}/gateways": {"GET": (manager, list_options)}, f"{SHOP}/gateways/reorder": {"POST": (manager, reorder)},
    f"{SHOP}/gateways/<str:id>": {"PATCH": (manager, edit_option)},
    f"{SHOP}/api-keys": {"GET": (active, list_keys), "POST": (active, create_key)}, f"{SHOP}/api-keys/<str:id>": {"DELETE": (manager, revoke_key)},
    f"{SHOP}/webhooks": {"GET": (manager, lambda r: [hook_record(hook) for hook in of(hooks, r.shop)]), "POST": (active, create_hook)},
    f"{SHOP}/webhooks/<str:id>": {"DELETE": (active, close_hook)},
    "payments/context": {"GET": (secret, lambda r: {
        "businessId": r.shop["id"], "businessName": r.shop["name"], "environment": r.key["environment"], "kycStatus": r.shop["kyc"]})},
    "payments/initiate": {"POST": (secret, lambda r: begin(r.shop, r.key["environment"], body(r, INITIATE)))},
    "payments/<str:reference>": {"GET": (secret, show_payment)}, "payments/<str:reference>/simulate": {"POST": (secret, simulate)},
    CHECKOUT: {"GET": (public, show_checkout)}, f"{CHECKOUT}/gateways": {"GET": (public, checkout_options)},
    f"{CHECKOUT}/process": {"POST": (public, process)}, f"{CHECKOUT}/verify": {"GET": (public, verify)},
    f"{SHOP}/test-payment": {"POST": (active, make_test)}, f"{SHOP}/test-payment/<str:reference>": {"GET": (manager, show_payment)},
    f"{SHOP}/test-payment/<str:reference>/simulate": {"POST": (active, simulate)},
    "webhooks/<str:provider>": {"POST": (public, receive)}, "webhooks/<str:provider>/<str:environment>": {"POST": (public, receive)}}
urlpatterns = [path(f"api/v1/{place}", view(**methods)) for place, methods in ROUTES.items()]

class Handler(WSGIRequestHandler):  # type: ignore[misc]  # Django has no types
    """Django's own would drop `x-provider_a-signature`, for its underscore."""

    def get_environ(self) -> Row: return BareHandler.get_environ(self)

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
