"""API keys of a business."""

from payagg.application.accounts.access import Manager
from payagg.application.accounts.api_keys import BusinessApiKeyGroups, GenerateApiKey, GeneratedApiKey
from payagg.application.schemas.payments import Message
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.api.auth import by, manager_changes, manager_reads
from payagg.entrypoints.http.server.routing import KB, Call, Routes

routes = Routes("API keys")
BASE = "/merchant/businesses/{business_id:str}/api-keys"


# The interface refuses this list, unlike others, to a business that is not active.
@routes.add("GET", BASE, "List the keys", guard=manager_changes)
async def list_api_keys(call: Call[Manager, None]) -> BusinessApiKeyGroups:
    return await call.services.api_keys.groups(call.caller.business.id)


@routes.add(
    "POST",
    BASE,
    "Generate a key",
    guard=manager_changes,
    body_max=2 * KB,
    status=201,
    errors=(ErrorCode.KYC_REQUIRED, ErrorCode.KEY_LIMIT_REACHED),
    description="Only this response shows the secret.",
)
async def generate_api_key(call: Call[Manager, GenerateApiKey]) -> GeneratedApiKey:
    return await call.services.api_keys.generate(call.caller.business.id, call.body, by=by(call))


# Whatever the business's status.
@routes.add(
    "DELETE",
    BASE + "/{key_id:str}",
    "Revoke a key",
    guard=manager_reads,
    errors=(ErrorCode.API_KEY_ALREADY_REVOKED,),
    description="Permanent: the next request with the key fails.",
)
async def revoke_api_key(call: Call[Manager, None]) -> Message:
    await call.services.api_keys.revoke(call.caller.business.id, call.path["key_id"], by=by(call))
    return Message("The key is revoked.")
