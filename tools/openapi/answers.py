"""The answers of operations: envelopes, errors and codes, as shared components."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, get_args

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.docs.reference import CODES
from payagg.entrypoints.http.server.errors import HTTP_STATUS
from payagg.entrypoints.http.server.routing import Operation
from tools.openapi.components import JSON, REF, headers
from tools.openapi.operations import Route

EVERYWHERE = (ErrorCode.INTERNAL_ERROR, ErrorCode.SERVICE_UNAVAILABLE)
# No `const` for `success`: OpenAPI Generator turns it into a text and then refuses the boolean.
ERRORS: dict[str, Any] = {
    "ErrorCode": {
        "type": "string",
        "description": "What went wrong, as a word for programs. A later version may add codes.",
        "enum": [code.name for code in ErrorCode],
    },
    "ErrorDetail": {
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": {"$ref": REF.format(name="ErrorCode")},
            "message": {"type": "string", "maxLength": 500, "description": "Words for a person."},
            "field": {
                "type": "string",
                "maxLength": 100,
                "description": "The offending input, nested as `order[0].gatewayId`.",
            },
        },
    },
    "ErrorEnvelope": {
        "type": "object",
        "description": "The body of every failure.",
        "required": ["success", "error"],
        "properties": {
            "success": {"type": "boolean", "description": "Always false."},
            "error": {"$ref": REF.format(name="ErrorDetail")},
        },
    },
}


def responses(route: Route) -> dict[str, Any]:
    """By status: the success, the replay where there is one, and every refusal."""
    operation = route.operation
    warnings = ["Webhook-Url-Warning"] if "webhook_url" in getattr(operation.body, "__struct_fields__", ()) else []
    success: dict[str, Any] = {"description": "Success.", "headers": headers(*operation.headers, *warnings)}
    if JSON in operation.media_types:
        success["content"] = {JSON: {"schema": {"$ref": REF.format(name=_name(operation))}}}
    elif all(kind.startswith("text/") for kind in operation.media_types):
        success["content"] = {kind: {"schema": {"type": "string"}} for kind in operation.media_types}
    else:
        picture = {"schema": {"type": "string", "format": "binary"}}
        success["content"] = {kind: dict(picture) for kind in operation.media_types}
    found = {str(operation.status): success}
    if operation.replay_status is not None:
        found[str(operation.replay_status)] = success | {
            "description": "The open payment that holds the idempotency key.",
            "headers": headers("Idempotency-Replayed", "Idempotency-Mismatch", *warnings),
        }
    return dict(sorted((found | _failures(route)).items()))


def _failures(route: Route) -> dict[str, Any]:
    by_status: dict[int, list[ErrorCode]] = defaultdict(list)
    for code in errors(route):
        by_status[HTTP_STATUS[code.kind]].append(code)
    return {
        str(status): {
            "description": " ".join(f"`{code.name}`: {code.message}" for code in codes),
            CODES: [code.name for code in codes],
            "headers": headers("Link", *(["Retry-After"] if status in (429, 503) else [])),
            "content": {
                JSON: {
                    "schema": {"$ref": REF.format(name="ErrorEnvelope")},
                    "examples": {code.name: {"$ref": f"#/components/examples/{code.name}"} for code in codes},
                }
            },
        }
        for status, codes in sorted(by_status.items())
    }


def errors(route: Route) -> list[ErrorCode]:
    """The refusals of the route, its guard, path, body and query, by precedence."""
    operation = route.operation
    codes = {*operation.errors, *operation.guard.errors, *EVERYWHERE}
    if "reference" in route.parameters:
        codes |= {ErrorCode.INVALID_REFERENCE, ErrorCode.PAYMENT_NOT_FOUND}
    # A business that a merchant names and that is none of theirs is FORBIDDEN.
    of_user = {"reference"} if operation.guard.scheme != "merchantBearer" else {"reference", "businessId"}
    if set(route.parameters) - of_user:
        codes.add(ErrorCode.NOT_FOUND)
    if operation.body is not None or operation.upload is not None:
        codes |= {ErrorCode.VALIDATION_ERROR, ErrorCode.PAYLOAD_TOO_LARGE}
    if not operation.takes_any_query or operation.query_names:
        codes.add(ErrorCode.VALIDATION_ERROR)
    return [code for code in ErrorCode if code in codes]


def envelopes(routes: Iterable[Route], schemas: dict[Any, Any]) -> dict[str, Any]:
    """The component of each success: one for each type of `data`, named after it."""
    found: dict[str, Any] = {}
    for operation in (route.operation for route in routes):
        if JSON not in operation.media_types:
            continue
        properties: dict[str, Any] = {"success": {"type": "boolean", "description": "Always true."}}
        if operation.returns is not None:
            properties["data"] = schemas[operation.returns]
        if operation.paginated:
            properties["meta"] = {"$ref": REF.format(name="PaginationMeta")}
        envelope = {"type": "object", "required": list(properties), "properties": properties}
        assert found.setdefault(_name(operation), envelope) == envelope, f"two envelopes are {_name(operation)}"
    return dict(sorted(found.items()))


def _name(operation: Operation) -> str:
    """`PaymentDetailEnvelope`, `ApiKeyRecordListEnvelope`; `DoneEnvelope` has no data."""
    kind = operation.returns
    if kind is None:
        return "DoneEnvelope"
    of = get_args(kind)
    return f"{of[0].__name__}ListEnvelope" if of else f"{kind.__name__}Envelope"
