"""API keys of a business."""

from typing import Any

from litestar import Request, Response, delete, get, post
from litestar.params import FromPath

from payagg.application.api_keys import BusinessApiKeyGroups, GenerateApiKey, GeneratedApiKey
from payagg.application.schemas.payments import Message
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.auth import manager, services
from payagg.entrypoints.http.wire import decoded, describe, envelope

TAG = "API keys"
BASE = "/merchant/businesses/{business_id:str}/api-keys"


@get(
    BASE,
    opt=describe(
        "listApiKeys", "List the keys", TAG, returns=BusinessApiKeyGroups, errors=(ErrorCode.BUSINESS_RESTRICTED,)
    ),
)
async def listed(request: Request[Any, Any, Any], business_id: FromPath[str]) -> Response[bytes]:
    # The interface refuses this list, unlike those of gateways and webhooks, to a business that is not active.
    who = await manager(request, business_id, changes=True)
    return envelope(await services(request).api_keys.groups(who.business.id))


@post(
    BASE,
    opt=describe(
        "generateApiKey",
        "Generate a key",
        TAG,
        body=GenerateApiKey,
        returns=GeneratedApiKey,
        status=201,
        errors=(ErrorCode.BUSINESS_RESTRICTED, ErrorCode.KYC_REQUIRED, ErrorCode.KEY_LIMIT_REACHED),
        description="The secret is shown in this answer and never again.",
    ),
)
async def generate(request: Request[Any, Any, Any], business_id: FromPath[str]) -> Response[bytes]:
    who = await manager(request, business_id, changes=True)
    command = await decoded(request, GenerateApiKey)
    return envelope(await services(request).api_keys.generate(who.business.id, command), 201)


@delete(
    BASE + "/{key_id:str}",
    status_code=200,
    opt=describe(
        "revokeApiKey",
        "Revoke a key",
        TAG,
        returns=Message,
        errors=(ErrorCode.NOT_FOUND, ErrorCode.API_KEY_ALREADY_REVOKED),
        description="Permanent: the next request with the key fails.",
    ),
)
async def revoke(request: Request[Any, Any, Any], business_id: FromPath[str], key_id: FromPath[str]) -> Response[bytes]:
    who = await manager(request, business_id, changes=False)
    await services(request).api_keys.revoke(who.business.id, key_id)
    return envelope(Message("The key is revoked."))


routes = [listed, generate, revoke]
