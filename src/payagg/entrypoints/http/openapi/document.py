"""The OpenAPI 3.1 document, generated from what the handlers declare and from the types they decode and answer."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler

from payagg.application.schemas.payments import Reference
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.errors import HTTP_STATUS
from payagg.entrypoints.http.openapi.operations import Route, routes_of
from payagg.entrypoints.http.openapi.schemas import ID, bounded, example_of, prefixed
from payagg.entrypoints.http.routing import Operation
from payagg.entrypoints.http.wire import PAGE_MAX, PaginationMeta
from payagg.entrypoints.settings import Settings

API_PATH = "/api/v1"
VERSION = "0.1.0"  # interface, Versioning
REF = "#/components/schemas/{name}"
_JSON = "application/json"


EVERYWHERE = (ErrorCode.INTERNAL_ERROR, ErrorCode.SERVICE_UNAVAILABLE)
SECURITY_SCHEMES = {
    "adminBearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A JWT (RFC7519, used as RFC8725 advises) with `sub`, `exp`, `type: admin` and `role`: "
        "SUPER_ADMIN or ADMIN, or SUPPORT for reads.",
    },
    "merchantBearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A JWT (RFC7519, used as RFC8725 advises) with `sub`, `exp`, `type: merchant` and "
        "`emailVerified: true`. The user must be OWNER or ADMIN of the business in the path.",
    },
    "secretKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "`ssk_sand_...` or `ssk_live_...`; the key selects the environment.",
    },
}
HEADERS = {
    "X-Request-Id": {
        "description": "Names this request in our logs; a sane `X-Request-Id` of the caller is taken over.",
        "schema": {"type": "string", "maxLength": 64, "pattern": "^[A-Za-z0-9._-]{8,64}$"},
    },
    "Retry-After": {
        "description": "Seconds to wait before another try.",
        "schema": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 86400},
    },
    "RateLimit": {
        "description": "Of what is limited: by limit, how much is left (`r`), and the seconds until it is whole or, "
        "on a 429 without a policy, until the next request may come (`t`).",
        "schema": {
            "type": "string",
            "maxLength": 256,
            "pattern": '^"[a-z]+";r=[0-9]+;t=[0-9]+(?:, "[a-z]+";r=[0-9]+;t=[0-9]+)*$',
        },
    },
    "RateLimit-Policy": {
        "description": "By limit, how many requests (`q`) at once, and again over so many seconds (`w`); each server "
        "process counts for itself.",
        "schema": {
            "type": "string",
            "maxLength": 256,
            "pattern": '^"[a-z]+";q=[0-9]+;w=[0-9]+(?:, "[a-z]+";q=[0-9]+;w=[0-9]+)*$',
        },
    },
    "Access-Control-Allow-Origin": {
        "description": "The asking origin, where the deployment names it as one whose scripts may read "
        "answers; this service's own origin otherwise.",
        "schema": {"type": "string", "format": "uri", "maxLength": 2048},
    },
    "Idempotency-Replayed": {
        "description": "Present on a replay: the payment existed already.",
        "schema": {"type": "string", "const": "true"},
    },
    "Credentials-Removed": {
        "description": "Present when names that were on file are gone: those of them that a header can carry.",
        "schema": {
            "type": "string",
            "maxLength": 3300,
            "pattern": "^[A-Za-z0-9._-]{1,64}(?:, [A-Za-z0-9._-]{1,64})*$",
            "examples": ["liveSecretKey, liveWebhookSecret"],
        },
    },
    "Idempotency-Mismatch": {
        "description": "Present when the key came with another body than the first time.",
        "schema": {"type": "string", "const": "true"},
    },
    "Webhook-Url-Warning": {
        "description": "Present when nothing can be sent to `webhookUrl`: events are signed with the secrets of the "
        "business's active endpoints in this environment, and there is none.",
        "schema": {"type": "string", "const": "no-active-endpoint"},
    },
}
EVERY_ANSWER = ("X-Request-Id", "Access-Control-Allow-Origin", "RateLimit", "RateLimit-Policy")
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The equal of the field `idempotencyKey`.",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": "^[\\x21-\\x7e]+$",
        "examples": ["order-1001"],
    },
}


def document(handlers: Iterable[HTTPRouteHandler], settings: Settings) -> dict[str, Any]:
    """The description of `app.api_routes(settings)`; needs no database."""
    routes = routes_of(handlers)
    types = {kind for route in routes for kind in (route.operation.body, route.operation.returns) if _is_json(kind)}
    ordered = sorted(types, key=str)
    described, components = msgspec.json.schema_components([*ordered, Reference, PaginationMeta], ref_template=REF)
    schemas = dict(zip([*ordered, Reference], described, strict=False))
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for route in routes:
        paths[route.path][route.method] = _operation(route, routes, schemas)
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "payagg",
            "version": VERSION,
            "summary": "A payment aggregator for merchants.",
            "description": "Every JSON answer is an envelope: `{success, data}`, lists in pages add `meta`, failures "
            "are `{success, error: {code, message, field?}}`. Money is an integer number of kobo.",
            "contact": {"name": "payagg", "url": settings.base_url},
            "license": {"name": "Proprietary", "identifier": "LicenseRef-Proprietary"},
        },
        "servers": [
            {
                "url": settings.base_url + API_PATH,
                "description": "Production and sandbox: the key decides.",
                "x-internal": False,
            }
        ],
        "tags": [{"name": tag, "description": f"{tag}."} for tag in dict.fromkeys(r.operation.tag for r in routes)],
        "paths": dict(paths),
        "components": {
            "schemas": components,
            "securitySchemes": SECURITY_SCHEMES,
            "headers": HEADERS,
        },
    }
    bounded(whole)
    prefixed(whole, settings.reference_prefix)
    _add_examples(whole)
    return whole


def _operation(route: Route, routes: list[Route], schemas: dict[Any, Any]) -> dict[str, Any]:
    operation = route.operation
    described: dict[str, Any] = {
        "operationId": route.id,
        "summary": operation.summary,
        "description": operation.description or f"{operation.summary}.",
        "tags": [operation.tag],
        "security": [{operation.guard.scheme: []}] if operation.guard.scheme else [{}],
        "parameters": _parameters(route, schemas),
        "responses": _responses(route, routes, schemas),
    }
    if operation.body is bytes:
        described["requestBody"] = {
            "required": True,
            "description": f"The provider's own shape; the signature covers the raw bytes. {_at_most(operation)}",
            "content": {_JSON: {"schema": {"type": "object", "additionalProperties": True}}},
        }
    elif operation.body is not None:
        described["requestBody"] = {
            "required": True,
            "description": _at_most(operation),
            "content": {_JSON: {"schema": schemas[operation.body]}},
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
    if route.operation.is_keyed:
        found.append(IDEMPOTENCY_KEY)
    return found


def _responses(route: Route, routes: list[Route], schemas: dict[Any, Any]) -> dict[str, Any]:
    operation = route.operation
    warnings = ["Webhook-Url-Warning"] if "webhook_url" in getattr(operation.body, "__struct_fields__", ()) else []
    success: dict[str, Any] = {"description": "Success.", "headers": _headers(*operation.headers, *warnings)}
    if _JSON not in operation.media_types:
        picture = {"schema": {"type": "string", "format": "binary"}}
        success["content"] = {media_type: dict(picture) for media_type in operation.media_types}
    else:
        success["content"] = {_JSON: {"schema": _envelope(operation, schemas)}}
    links = _links(route, routes)
    if links:
        success["links"] = links
    responses = {str(operation.status): success}
    if operation.replay_status is not None:
        replay = success | {
            "description": "The open payment that holds the idempotency key.",
            "headers": _headers("Idempotency-Replayed", "Idempotency-Mismatch", *warnings),
        }
        responses[str(operation.replay_status)] = replay
    by_status: dict[int, list[ErrorCode]] = defaultdict(list)
    for code in _errors(route):
        by_status[HTTP_STATUS[code.kind]].append(code)
    for status, codes in sorted(by_status.items()):
        names = ["Retry-After"] if status in (429, 503) else []
        responses[str(status)] = {
            "description": " ".join(f"`{code.name}`: {code.message}" for code in codes),
            "headers": _headers(*names),
            "content": {
                _JSON: {
                    "schema": _error_schema(codes),
                    "examples": {
                        code.name: {"value": {"success": False, "error": {"code": code.name, "message": code.message}}}
                        for code in codes
                    },
                }
            },
        }
    return dict(sorted(responses.items()))


def _errors(route: Route) -> list[ErrorCode]:
    """What the route declares and what its guard, path, body and query bring by themselves, by precedence."""
    operation = route.operation
    codes = {*operation.errors, *operation.guard.errors, *EVERYWHERE}
    if "reference" in route.parameters:
        codes.add(ErrorCode.INVALID_REFERENCE)
    if operation.body is not None or operation.upload is not None:
        codes |= {ErrorCode.VALIDATION_ERROR, ErrorCode.PAYLOAD_TOO_LARGE}
    if operation.paginated or operation.query:
        codes.add(ErrorCode.VALIDATION_ERROR)
    return [code for code in ErrorCode if code in codes]


def _envelope(operation: Operation, schemas: dict[Any, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {"success": {"type": "boolean", "const": True}}
    if operation.returns is not None:
        properties["data"] = schemas[operation.returns]
    if operation.paginated:
        properties["meta"] = {"$ref": "#/components/schemas/PaginationMeta"}
    return {"type": "object", "required": list(properties), "properties": properties}


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


def _error_schema(codes: list[ErrorCode]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["success", "error"],
        "properties": {
            "success": {"type": "boolean", "const": False},
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"type": "string", "enum": [code.name for code in codes]},
                    "message": {"type": "string", "maxLength": 500, "description": "Words for a person."},
                    "field": {
                        "type": "string",
                        "maxLength": 100,
                        "description": "The offending input, nested as `order[0].gatewayId`.",
                    },
                },
            },
        },
    }


def _add_examples(whole: dict[str, Any]) -> None:
    for path in whole["paths"].values():
        for operation in path.values():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for media in (body.get("content", {}).get(_JSON) for body in bodies):
                if media is not None and "examples" not in media:
                    media["example"] = example_of(media["schema"], whole["components"]["schemas"])


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*EVERY_ANSWER, *names)}


def _is_json(kind: Any) -> bool:
    return kind is not None and kind is not bytes
