"""Businesses, their KYC and their members, for administrators; the own business and its API keys for its managers."""

from payagg.application.accounts.access import Administrator, Manager, MerchantUser
from payagg.application.accounts.api_keys import BusinessApiKeyGroups, GenerateApiKey, GeneratedApiKey
from payagg.application.accounts.businesses import (
    SEARCH_MAX,
    AdminBusiness,
    AdminBusinessDetail,
    BusinessMember,
    BusinessPage,
    ChangeBusiness,
    CreateBusiness,
    ManagedBusinesses,
    RemoveMember,
    SetMember,
)
from payagg.application.schemas.payments import Message
from payagg.application.schemas.views import PAGE_DEFAULT, PAGE_MAX, view_of
from payagg.domain.business import BusinessStatus, KycStatus
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.api.auth import admin_changes, admin_reads, by, manager_changes, manager_reads, merchant
from payagg.entrypoints.http.server.routing import KB, Call, Routes
from payagg.entrypoints.http.server.wire import cursor_parameters, cursor_query, text_query

routes = Routes("Admin businesses")
keys = Routes("API keys")
BASE = "/admin/businesses"
ONE = BASE + "/{business_id:str}"


@routes.add(
    "GET",
    BASE,
    "List the businesses",
    guard=admin_reads,
    query={
        "search": {"type": "string", "maxLength": SEARCH_MAX},
        **cursor_parameters("biz", PAGE_DEFAULT, PAGE_MAX),
    },
    description="Newest first; pass `nextCursor` as `after`. `search` is a literal part of the name; letter case "
    "does not matter.",
)
async def list_businesses(call: Call[Administrator, None]) -> BusinessPage:
    search = text_query(call.request, "search", SEARCH_MAX)
    after, limit = cursor_query(call.request, "biz", PAGE_DEFAULT, PAGE_MAX)
    return await call.services.businesses.list_businesses(search, after, limit)


@routes.add(
    "POST",
    BASE,
    "Create a business with its first OWNER",
    guard=admin_changes,
    body_max=8 * KB,
    status=201,
    description="ACTIVE and NOT_SUBMITTED by default; `kycStatus` may bring a decision that was made elsewhere.",
)
async def create_business(call: Call[Administrator, CreateBusiness]) -> AdminBusinessDetail:
    kyc, status = call.body.kyc_status or KycStatus.NOT_SUBMITTED, call.body.status or BusinessStatus.ACTIVE
    return await call.services.businesses.create(call.body.name, call.body.owner, kyc, status, by=by(call))


@routes.add("GET", ONE, "Read a business with its members", guard=admin_reads)
async def get_business(call: Call[Administrator, None]) -> AdminBusinessDetail:
    return await call.services.businesses.detail(call.path["business_id"])


@routes.add(
    "PATCH",
    ONE,
    "Move the KYC or set the status",
    guard=admin_changes,
    body_max=KB,
    description="Both or neither. A KYC move that does not exist is refused on `kycStatus`.",
)
async def update_business(call: Call[Administrator, ChangeBusiness]) -> AdminBusiness:
    kyc, status = call.body.kyc_status, call.body.status
    return await call.services.businesses.change(call.path["business_id"], kyc, status, by=by(call))


@routes.add(
    "POST",
    ONE + "/members",
    "Add a member or change the role",
    guard=admin_changes,
    body_max=4 * KB,
    errors=(ErrorCode.LAST_OWNER,),
)
async def set_business_member(call: Call[Administrator, SetMember]) -> BusinessMember:
    business_id, member = call.path["business_id"], call.body
    return await call.services.businesses.set_member(business_id, member.subject, member.role, by=by(call))


@routes.add(
    "POST",
    ONE + "/members/remove",
    "Remove a member",
    guard=admin_changes,
    body_max=4 * KB,
    errors=(ErrorCode.LAST_OWNER,),
    description="The subject is in the body because it may contain characters that a path cannot.",
)
async def remove_business_member(call: Call[Administrator, RemoveMember]) -> Message:
    await call.services.businesses.remove_member(call.path["business_id"], call.body.subject, by=by(call))
    return Message("The member is removed.")


@routes.add(
    "GET",
    "/merchant/businesses",
    "List your businesses",
    tag="Businesses",
    guard=merchant,
    description="Those in which the token's user is OWNER or ADMIN, oldest first, at most 1,000.",
)
async def list_own_businesses(call: Call[MerchantUser, None]) -> ManagedBusinesses:
    return await call.services.businesses.list_managed(call.caller.subject)


@routes.add(
    "GET",
    "/merchant/businesses/{business_id:str}",
    "Read one of your businesses",
    tag="Businesses",
    guard=manager_reads,
)
async def get_own_business(call: Call[Manager, None]) -> AdminBusiness:
    return view_of(AdminBusiness, call.caller.business)


@routes.add(
    "GET",
    "/merchant/businesses/{business_id:str}/members",
    "List the members of one of your businesses",
    tag="Businesses",
    guard=manager_reads,
)
async def list_own_business_members(call: Call[Manager, None]) -> list[BusinessMember]:
    return (await call.services.businesses.detail(call.path["business_id"])).members


KEYS = "/merchant/businesses/{business_id:str}/api-keys"


# The interface refuses this list, unlike others, to a business that is not active.
@keys.add("GET", KEYS, "List the keys", guard=manager_changes)
async def list_api_keys(call: Call[Manager, None]) -> BusinessApiKeyGroups:
    return await call.services.api_keys.groups(call.caller.business.id)


@keys.add(
    "POST",
    KEYS,
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
@keys.add(
    "DELETE",
    KEYS + "/{key_id:str}",
    "Revoke a key",
    guard=manager_reads,
    errors=(ErrorCode.API_KEY_ALREADY_REVOKED,),
    description="Permanent: the next request with the key fails.",
)
async def revoke_api_key(call: Call[Manager, None]) -> Message:
    await call.services.api_keys.revoke(call.caller.business.id, call.path["key_id"], by=by(call))
    return Message("The key is revoked.")
