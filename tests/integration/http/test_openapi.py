"""The description: valid, complete, and true to what the server answers."""

import json
import re
from typing import Any

import pytest
from litestar.routes import HTTPRoute

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.app import DEFAULTS, api_routes, create_app
from payagg.entrypoints.http.docs.description import Audience, describe, described_for
from payagg.entrypoints.http.docs.pages import MISSING
from payagg.entrypoints.http.docs.site import DocsSite
from payagg.entrypoints.http.server.routing import API_PATH
from tests.support.assembly import services_over
from tests.support.http_world import Api, assert_refused
from tools.openapi.document import document
from tools.openapi.examples import FILE, load_examples
from tools.openapi.operations import routes_of

DOCUMENT = document(api_routes())


def misfit(value: Any, schema: dict[str, Any]) -> str | None:
    """What of `value` does not fit `schema`."""
    from jsonschema import Draft202012Validator  # takes a second

    errors = Draft202012Validator({**schema, "components": DOCUMENT["components"]}).iter_errors(value)
    return next((error.message for error in errors), None)


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, op) for path, methods in DOCUMENT["paths"].items() for method, op in methods.items()]


@pytest.mark.rule("description.1")
def test_the_document_is_valid_openapi() -> None:
    from openapi_spec_validator import validate  # takes a second

    validate(DOCUMENT)
    assert DOCUMENT["servers"][0]["url"] == "http://127.0.0.1:8000/api/v1"
    assert DOCUMENT["info"]["version"] == "0.1.0"


@pytest.mark.rule("access.2")
def test_every_request_answer_and_event_has_an_example_that_fits_its_schema() -> None:
    sent = [(kind, "post", item["post"]) for kind, item in DOCUMENT["webhooks"].items()]
    for path, method, operation in [*operations(), *sent]:
        for body in [operation.get("requestBody", {}), *operation["responses"].values()]:
            for media in (body.get("content", {}).get(kind) for kind in ("application/json", "text/csv")):
                if media is None or "examples" in media:
                    continue
                assert misfit(media["example"], media["schema"]) is None, (method, path)


# Nothing that a caller of one installation does provokes these.
OURS = {"SERVICE_UNAVAILABLE", "INTERNAL_ERROR", "MISDIRECTED_REQUEST"}


def test_every_code_has_an_answer_that_was_recorded() -> None:
    examples = DOCUMENT["components"]["examples"]
    assert {code.name for code in ErrorCode} - set(examples) == {"METHOD_NOT_ALLOWED", "MISDIRECTED_REQUEST"}
    for name, example in examples.items():
        assert misfit(example["value"], {"$ref": "#/components/schemas/ErrorEnvelope"}) is None
        assert example["value"]["error"]["code"] == name
    assert {code.name for code in ErrorCode} - set(load_examples()["errors"]) == OURS


def test_examples_show_no_secret_and_speak_as_the_deployment_does() -> None:
    shown = FILE.read_text()
    assert re.findall(r"ssk_(?:sand|live)_[0-9a-f]*[1-9a-f][0-9a-f]{4,}", shown) == []
    assert re.findall(r"whsec_A*[^A\"\W][^\"]{8,}", shown) == []
    own = DEFAULTS.having(base_url="https://pay.example", reference_prefix="ABC", provider_a_slug="paystack")
    whole = json.dumps(describe(own))
    assert "127.0.0.1:8000" not in whole
    assert "PAY-2" not in whole
    assert "provider_a" not in whole.replace("gw_provider_a", "")


@pytest.mark.rule("access.8")
def test_every_answer_in_json_has_data_but_the_one_that_the_interface_says() -> None:
    without = set()
    for _, _, operation in operations():
        for status, answer in operation["responses"].items():
            shown = answer.get("content", {}).get("application/json")
            if shown is not None and status < "300":
                envelope = DOCUMENT["components"]["schemas"][shown["schema"]["$ref"].rpartition("/")[2]]
                if "data" not in envelope["required"]:
                    without.add(operation["operationId"])
    assert without == {"updateGatewayCredentials"}  # `{ success: true }` with no `data`


@pytest.mark.parametrize("audience", Audience)
def test_an_audience_reads_of_its_own_operations_and_of_nothing_else(audience: Audience) -> None:
    shown = described_for(audience, DOCUMENT)
    assert shown["paths"] == {
        path: {method: {**op, "responses": shown["paths"][path][method]["responses"]} for method, op in item.items()}
        for path, item in DOCUMENT["paths"].items()
        if path.startswith(audience.prefixes)
    }
    assert ("webhooks" in shown) is (audience is Audience.MERCHANT)
    text = json.dumps(shown)
    held = {f"#/components/{kind}/{name}" for kind, named in shown["components"].items() for name in named}
    used = set(re.findall(r'"(#/components/[^"]+)"', text))
    assert used <= held
    assert all(name in used or name.startswith("#/components/securitySchemes/") for name in held)
    ids = {operation["operationId"] for item in shown["paths"].values() for operation in item.values()}
    assert set(re.findall(r'"operationId": "(?!on[A-Z])([^"]+)"', text)) == ids


@pytest.mark.rule("description.2")
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


@pytest.mark.rule("description.3")
async def test_the_documents_are_served_to_each_audience(api: Api) -> None:
    assert (await api.client.get(f"{api.origin}/openapi.json")).json() == DOCUMENT
    for audience in Audience:
        own = await api.client.get(f"{api.origin}/openapi/{audience.word}.json")
        assert own.json() == described_for(audience, DOCUMENT)
    assert (await api.client.get(f"{api.origin}/openapi/nobody.json")).status_code == 404


@pytest.mark.rule("description.3")
async def test_the_site_is_served_without_outside_hosts(api: Api) -> None:
    files = DocsSite(DOCUMENT).files()
    missing = files.pop(MISSING)
    for name, body in files.items():
        page = await api.client.get(f"{api.origin}/docs/{name}".rstrip("/"))
        assert (page.status_code, page.content) == (200, body)
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in page.headers["content-security-policy"]
        kinds = {"css": "text/css", "js": "text/javascript", "md": "text/markdown", "txt": "text/plain"}
        kinds |= {"png": "image/png", "svg": "image/svg+xml"}
        assert page.headers["content-type"].startswith(kinds.get(name.rpartition(".")[2], "text/html"))
    for link in re.findall(r"\]\((/docs/[^)]+)\)", (await api.client.get(f"{api.origin}/llms.txt")).text):
        assert link.removeprefix("/docs/") in files
    plain = await api.client.get(f"{api.origin}/docs", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    nothing = f"{api.origin}/docs/nothing"
    assert_refused(await api.client.get(nothing), 404, "NOT_FOUND")
    shown = await api.client.get(nothing, headers={"Accept": "text/html,*/*"})
    assert (shown.status_code, shown.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert shown.content == missing


OTHERS = [("paystack", "pb2"), ("provider_b", "provider_a"), ("provider_b-2", "payaza")]


@pytest.mark.parametrize("slugs", [("provider_a", "provider_b"), *OTHERS])
def test_the_description_has_the_routes_of_the_deployment_under_frozen_ids(slugs: tuple[str, str]) -> None:
    """Generated clients name their methods after these: one may be added, none may change."""
    names = {"provider_a_slug": slugs[0], "provider_b_slug": slugs[1], "reference_prefix": "ABC"}
    own = DEFAULTS.having(base_url="https://provider_b.example/PAY-20250131-7K2M9X", **names)
    described = describe(own)
    assert described["servers"][0]["url"] == own.base_url + API_PATH
    shown = {(path, method, op["operationId"]) for path, of in described["paths"].items() for method, op in of.items()}
    assert shown == {(route.path, route.method, route.id) for route in routes_of(api_routes(own))}
