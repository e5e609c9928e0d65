"""The description: valid, complete, and true to what the server answers."""

import json
import re
from dataclasses import replace
from typing import Any

import httpx
import jsonschema
import pytest
from litestar.routes import HTTPRoute
from openapi_spec_validator import validate

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.app import DEFAULTS, api_routes, create_app
from payagg.entrypoints.http.openapi.document import API_PATH, document
from payagg.entrypoints.settings import Settings
from tests.support.assembly import services_over
from tests.support.http_world import Api

pytestmark = pytest.mark.anyio
DOCUMENT = document(api_routes(), DEFAULTS)


def nodes(node: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    found = [pair for key, value in inner for pair in nodes(value, f"{path}/{key}")]
    return [(path, node), *found] if isinstance(node, dict) else found


def check(value: Any, schema: dict[str, Any]) -> None:
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, op) for path, methods in DOCUMENT["paths"].items() for method, op in methods.items()]


def test_the_document_is_valid_openapi() -> None:
    validate(DOCUMENT)
    assert DOCUMENT["servers"][0]["url"] == "http://127.0.0.1:8000/api/v1"
    assert DOCUMENT["info"]["version"] == "0.1.0"


def test_every_string_number_and_list_states_its_bounds() -> None:
    for path, node in nodes({"paths": DOCUMENT["paths"], "components": DOCUMENT["components"]}):
        if "example" in path or not isinstance(node.get("type"), str) or "const" in node or "enum" in node:
            continue
        match node["type"]:
            case "string":
                assert "maxLength" in node or "format" in node, path
                assert "pattern" in node or "format" in node, path
            case "integer":
                assert {"minimum", "maximum", "format"} <= set(node), path
            case "array":
                assert "maxItems" in node, path


def test_every_example_fits_its_schema() -> None:
    for path, method, operation in operations():
        for body in [operation.get("requestBody", {}), *operation["responses"].values()]:
            for media in body.get("content", {}).values():
                values = [media["example"]] if "example" in media else []
                for value in values + [example["value"] for example in media.get("examples", {}).values()]:
                    try:
                        check(value, media["schema"])
                    except jsonschema.ValidationError as error:
                        pytest.fail(f"{method} {path}: {error.message}")


def test_every_code_of_the_catalogue_is_described_somewhere() -> None:
    shown = json.dumps(DOCUMENT["paths"])
    # 404 and 405 of paths that are no operation cannot stand under one.
    missing = {code.name for code in ErrorCode if f'"{code.name}"' not in shown}
    assert missing <= {"METHOD_NOT_ALLOWED"}


def test_links_lead_to_operations_that_take_what_they_carry() -> None:
    by_id = {operation["operationId"]: operation for _, _, operation in operations()}
    links = [
        link
        for operation in by_id.values()
        for answer in operation["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert {"getPayment", "processPayment", "revokeApiKey"} <= {link["operationId"] for link in links}
    for link in links:
        taken = {item["name"] for item in by_id[link["operationId"]]["parameters"] if item["in"] == "path"}
        assert set(link["parameters"]) == taken


async def test_every_route_of_the_app_is_described_and_the_reverse(store: Any) -> None:
    app = create_app(services_over(store))
    routed = {
        (re.sub(r":str", "", route.path.removeprefix(API_PATH)), method.lower())
        for route in app.routes
        if isinstance(route, HTTPRoute) and route.path.startswith(API_PATH)
        for method in route.methods
        if method != "OPTIONS"
    }
    described = {
        (re.sub(r"(?<=[a-z])([A-Z])", lambda found: "_" + found[1].lower(), path), method)
        for path, method, _ in operations()
    }
    assert routed == described


async def test_the_document_and_its_page_are_served_without_outside_hosts(api: Api) -> None:
    served = await api.client.get(f"{api.origin}/openapi.json")
    assert served.json() == DOCUMENT
    page = await api.client.get(f"{api.origin}/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "<script" not in page.text
    assert set(re.findall(r'(?:src|href)="([^"]*)"', page.text)) == {"/docs/style.css", "/openapi.json"}
    assert (await api.client.get(f"{api.origin}/docs/style.css")).headers["content-type"].startswith("text/css")
    for _, _, operation in operations():
        assert f'id="{operation["operationId"]}"' in page.text


async def test_answers_fit_the_description(api: Api) -> None:
    await api.open_gateways()
    shop = await api.open_shop()
    reference = (await api.initiate(shop, customerEmail="ada@example.com", metadata={"a": [1, None]}))["reference"]

    def fits(path: str, answer: httpx.Response) -> None:
        method = answer.request.method.lower()
        described = DOCUMENT["paths"][path][method]["responses"][str(answer.status_code)]
        check(answer.json(), described["content"]["application/json"]["schema"])

    key, owner = shop.as_sandbox, shop.as_owner
    client = api.client
    fits("/payments/context", await client.get("/payments/context", headers=key))
    fits("/payments/context", await client.get("/payments/context"))
    fits("/payments/initiate", await client.post("/payments/initiate", json={"amount": 100}, headers=key))
    fits("/payments/initiate", await client.post("/payments/initiate", json={"amount": 1}, headers=key))
    fits("/payments/{reference}", await client.get(f"/payments/{reference}", headers=key))
    public = f"/public/payments/{reference}"
    fits("/public/payments/{reference}", await client.get(public))
    fits("/public/payments/{reference}/gateways", await client.get(f"{public}/gateways"))
    card = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}
    fits("/public/payments/{reference}/process", await client.post(f"{public}/process", json=card))
    fits("/public/payments/{reference}/verify", await client.get(f"{public}/verify"))
    keys = "/merchant/businesses/{businessId}/api-keys"
    fits(keys, await client.get(f"{shop.path}/api-keys", headers=owner))
    made = await client.post(f"{shop.path}/api-keys", json={"environment": "LIVE", "name": "x1"}, headers=owner)
    fits(keys, made)
    fits(f"{keys}/{{keyId}}", await client.delete(f"{shop.path}/api-keys/{made.json()['data']['id']}", headers=owner))
    tests = "/merchant/businesses/{businessId}/test-payment"
    fits(tests, await client.post(f"{shop.path}/test-payment", json={"amount": 100}, headers=owner))


# Generated clients name their methods after these: one may be added, none may change.
OPERATION_IDS = {
    "acknowledgeAnomaly",
    "closeAnomaly",
    "listAnomalies",
    "createBusiness",
    "createGateway",
    "createTestPayment",
    "createWebhook",
    "deactivateWebhook",
    "deleteGateway",
    "disableGateway",
    "enableGateway",
    "endCredentialsOverlap",
    "exportAllPayments",
    "exportBusinessPayments",
    "exportPayments",
    "generateApiKey",
    "getBusiness",
    "getAllPaymentsSummary",
    "getBusinessPaymentSummary",
    "getBusinessPaymentStory",
    "getGateway",
    "getGatewayLogo",
    "getPayment",
    "getPaymentContext",
    "getGatewayReadiness",
    "getOwnBusiness",
    "getPaymentStory",
    "getPaymentSummary",
    "getServiceHealth",
    "getPublicPayment",
    "getTestPayment",
    "initiatePayment",
    "listAllPayments",
    "listApiKeys",
    "listAudit",
    "listBusinessAudit",
    "listBusinessGateways",
    "listBusinessMembers",
    "listBusinesses",
    "listBusinessPayments",
    "listEvents",
    "listEventsOfKey",
    "listGatewayMerchants",
    "listGateways",
    "listPaymentOptions",
    "listPayments",
    "listWebhookDeliveries",
    "listWebhooks",
    "processPayment",
    "receiveProviderAEvent",
    "receiveProviderALiveEvent",
    "receiveProviderASandboxEvent",
    "receiveProviderBEvent",
    "receiveProviderBLiveEvent",
    "receiveProviderBSandboxEvent",
    "redeliverWebhook",
    "removeBusinessMember",
    "reorderBusinessGateways",
    "revokeApiKey",
    "rotateWebhookSecret",
    "setBusinessMember",
    "simulatePayment",
    "simulateTestPayment",
    "testWebhook",
    "updateBusiness",
    "updateBusinessGateway",
    "updateGateway",
    "updateGatewayCredentials",
    "updateWebhook",
    "uploadGatewayLogo",
    "verifyPayment",
}


@pytest.mark.parametrize("settings", [DEFAULTS, replace(DEFAULTS, provider_a_slug="paystack", provider_b_slug="pb2")])
def test_operation_ids_are_frozen_and_the_same_whatever_the_slugs_are(settings: Settings) -> None:
    shown = [
        item["operationId"]
        for path in document(api_routes(settings), settings)["paths"].values()
        for item in path.values()
    ]
    assert sorted(shown) == sorted(OPERATION_IDS)
