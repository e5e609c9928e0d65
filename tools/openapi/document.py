"""The OpenAPI 3.1 document, generated from what the handlers declare and from the types they decode and answer."""

import copy
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler

from payagg.application.schemas.payments import Reference
from payagg.application.schemas.webhooks import EventBody, TestBody
from payagg.entrypoints.http.docs.description import DEFAULTS
from payagg.entrypoints.http.server.routing import API_PATH, Operation
from payagg.entrypoints.http.server.wire import PAGE_MAX, PaginationMeta
from tools.openapi.answers import ERRORS, envelopes, errors, responses
from tools.openapi.components import HEADERS, IDEMPOTENCY_KEY, JSON, REF, SECURITY_SCHEMES, TAGS
from tools.openapi.events import SCHEMAS as EVENT_SCHEMAS
from tools.openapi.events import TAG as EVENTS_TAG
from tools.openapi.events import webhooks
from tools.openapi.examples import error_examples, load_examples, place
from tools.openapi.operations import Route, routes_of
from tools.openapi.schemas import ID, add_bounds

VERSION = "0.1.0"  # interface, Versioning


def document(handlers: Iterable[HTTPRouteHandler]) -> dict[str, Any]:
    """The description of `app.api_routes()` with the default settings, as which `describe` reads it."""
    routes = routes_of(handlers)
    types = {kind for route in routes for kind in (route.operation.body, route.operation.returns) if _is_json(kind)}
    ordered = [*sorted(types, key=str), Reference]
    extra = [PaginationMeta, EventBody, TestBody]
    described, components = msgspec.json.schema_components([*ordered, *extra], ref_template=REF)
    schemas = dict(zip(ordered, described, strict=False))
    recordings = load_examples()
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for route in routes:
        paths[route.path][route.method] = _operation(route, routes, schemas)
    tags = {*(route.operation.tag for route in routes), EVENTS_TAG}
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "payagg",
            "version": VERSION,
            "summary": "A payment aggregator for merchants.",
            "description": "Every JSON response is an envelope: `{success, data}`; numbered pages add `meta`; failures "
            "are `{success, error: {code, message, field?}}`. Money is an integer number of kobo.",
            "contact": {"name": "payagg", "url": DEFAULTS.base_url},
            "license": {"name": "Proprietary", "identifier": "LicenseRef-Proprietary"},
        },
        "servers": [
            {
                "url": DEFAULTS.base_url + API_PATH,
                "description": "Production and sandbox: the key decides.",
                "x-internal": False,
            }
        ],
        "tags": [{"name": tag, "description": words} for tag, words in TAGS.items() if tag in tags],
        "paths": dict(paths),
        "webhooks": webhooks(),
        "components": {
            "schemas": components | envelopes(routes, schemas) | ERRORS | EVENT_SCHEMAS,
            "securitySchemes": SECURITY_SCHEMES,
            "headers": HEADERS,
            "examples": error_examples(recordings, {code for route in routes for code in errors(route)}),
        },
    }
    # Shared components and parameters are bounded once.
    whole = copy.deepcopy(whole)
    add_bounds(whole)
    place(whole, recordings)
    return whole


def _operation(route: Route, routes: list[Route], schemas: dict[Any, Any]) -> dict[str, Any]:
    operation = route.operation
    answers = responses(route)
    links = _links(route, routes)
    if links:
        answers[str(operation.status)]["links"] = links
    described: dict[str, Any] = {
        "operationId": route.id,
        "summary": operation.summary,
        "description": operation.description or f"{operation.summary}.",
        "tags": [operation.tag],
        "security": [{operation.guard.scheme: []}] if operation.guard.scheme else [{}],
        "parameters": _parameters(route, schemas),
        "responses": answers,
    }
    if operation.body is bytes:
        described["requestBody"] = {
            "required": True,
            "description": f"The provider's own shape; the signature covers the raw bytes. {_at_most(operation)}",
            "content": {JSON: {"schema": {"type": "object", "additionalProperties": True}}},
        }
    elif operation.body is not None:
        described["requestBody"] = {
            "required": True,
            "description": _at_most(operation),
            "content": {JSON: {"schema": schemas[operation.body]}},
        }
    elif operation.upload is not None:
        part = {
            "type": "object",
            "required": [operation.upload],
            "properties": {operation.upload: {"type": "string", "format": "binary", "maxLength": operation.upload_max}},
        }
        described["requestBody"] = {
            "required": True,
            "description": _at_most(operation),
            "content": {"multipart/form-data": {"schema": part}},
        }
    return described


def _at_most(operation: Operation) -> str:
    return f"At most {operation.body_max} bytes."


def _parameters(route: Route, schemas: dict[Any, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": schemas[Reference] if name == "reference" else ID,
        }
        for name in route.parameters
    ]
    query: dict[str, Any] = {}
    if route.operation.paginated:
        query["page"] = {"type": "integer", "format": "int32", "minimum": 1, "maximum": PAGE_MAX, "default": 1}
        query["perPage"] = {"type": "integer", "format": "int32", "minimum": 1, "maximum": 100, "default": 20}
    for name, schema in {**query, **route.operation.query}.items():
        required = name in route.operation.query_required
        found.append({"name": name, "in": "query", "required": required, "schema": schema})
    for name, schema in route.operation.request_headers.items():
        found.append({"name": name, "in": "header", "required": True, "schema": schema})
    if route.operation.is_keyed:
        found.append(IDEMPOTENCY_KEY)
    return found


def _links(route: Route, routes: list[Route]) -> dict[str, Any]:
    """Where the id or reference in a 201 leads: the operations that take it in their path."""
    fields = getattr(route.operation.returns, "__struct_fields__", ())
    named = next((name for name in ("reference", "id") if name in fields), None)
    if route.operation.status != 201 or named is None:
        return {}
    found = {}
    for other in routes:
        taken = [name for name in other.parameters if name not in route.parameters]
        within = other.path.startswith(route.path.removesuffix("/initiate") + "/{") or (
            named == "reference" and other.path.startswith("/public/payments/")
        )
        if not within or not taken or (taken[0] == "reference") != (named == "reference") or len(taken) > 1:
            continue
        parameters = {name: f"$request.path.{name}" for name in other.parameters if name in route.parameters}
        parameters[taken[0]] = f"$response.body#/data/{named}"
        found[other.id] = {"operationId": other.id, "parameters": parameters}
    return found


def _is_json(kind: Any) -> bool:
    return kind is not None and kind is not bytes
