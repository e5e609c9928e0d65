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
    guard=admin_reads,
    query={
        "search": {"type": "string", "maxLength": SEARCH_MAX},
        **cursor_parameters("biz", PAGE_DEFAULT, PAGE_MAX),
    },
)
async def list_businesses(call: Call[Administrator, None]) -> BusinessPage:
    """List the businesses. Newest first; pass `nextCursor` as `after`. `search` is a literal part of the name; letter
    case does not matter."""
    search = text_query(call.request, "search", SEARCH_MAX)
    after, limit = cursor_query(call.request, "biz", PAGE_DEFAULT, PAGE_MAX)
    return await call.services.businesses.list_businesses(search, after, limit)


@routes.add("POST", BASE, guard=admin_changes, body_max=8 * KB, status=201)
async def create_business(call: Call[Administrator, CreateBusiness]) -> AdminBusinessDetail:
    """Create a business with its first OWNER. ACTIVE and NOT_SUBMITTED by default; `kycStatus` may bring a decision
    that was made elsewhere."""
    kyc, status = call.body.kyc_status or KycStatus.NOT_SUBMITTED, call.body.status or BusinessStatus.ACTIVE
    return await call.services.businesses.create(call.body.name, call.body.owner, kyc, status, by=by(call))


@routes.add("GET", ONE, guard=admin_reads)
async def get_business(call: Call[Administrator, None]) -> AdminBusinessDetail:
    """Read a business with its members."""
    return await call.services.businesses.detail(call.path["business_id"])


@routes.add("PATCH", ONE, guard=admin_changes, body_max=KB)
async def update_business(call: Call[Administrator, ChangeBusiness]) -> AdminBusiness:
    """Move the KYC or set the status. Both or neither. A KYC move that does not exist is refused on `kycStatus`."""
    kyc, status = call.body.kyc_status, call.body.status
    return await call.services.businesses.change(call.path["business_id"], kyc, status, by=by(call))


@routes.add("POST", ONE + "/members", guard=admin_changes, body_max=4 * KB, errors=(ErrorCode.LAST_OWNER,))
async def set_business_member(call: Call[Administrator, SetMember]) -> BusinessMember:
    """Add a member or change the role."""
    business_id, member = call.path["business_id"], call.body
    return await call.services.businesses.set_member(business_id, member.subject, member.role, by=by(call))


@routes.add("POST", ONE + "/members/remove", guard=admin_changes, body_max=4 * KB, errors=(ErrorCode.LAST_OWNER,))
async def remove_business_member(call: Call[Administrator, RemoveMember]) -> Message:
    """Remove a member. The subject is in the body because it may contain characters that a path cannot."""
    await call.services.businesses.remove_member(call.path["business_id"], call.body.subject, by=by(call))
    return Message("The member is removed.")


@routes.add("GET", "/merchant/businesses", tag="Businesses", guard=merchant)
async def list_own_businesses(call: Call[MerchantUser, None]) -> ManagedBusinesses:
    """List your businesses. Those in which the token's user is OWNER or ADMIN, oldest first, at most 1,000."""
    return await call.services.businesses.list_managed(call.caller.subject)


@routes.add("GET", "/merchant/businesses/{business_id:str}", tag="Businesses", guard=manager_reads)
async def get_own_business(call: Call[Manager, None]) -> AdminBusiness:
    """Read one of your businesses."""
    return view_of(AdminBusiness, call.caller.business)


@routes.add("GET", "/merchant/businesses/{business_id:str}/members", tag="Businesses", guard=manager_reads)
async def list_own_business_members(call: Call[Manager, None]) -> list[BusinessMember]:
    """List the members of one of your businesses."""
    return (await call.services.businesses.detail(call.path["business_id"])).members


KEYS = "/merchant/businesses/{business_id:str}/api-keys"


# The interface refuses this list, unlike others, to a business that is not active.
@keys.add("GET", KEYS, guard=manager_changes)
async def list_api_keys(call: Call[Manager, None]) -> BusinessApiKeyGroups:
    """List the keys."""
    return await call.services.api_keys.groups(call.caller.business.id)


@keys.add(
    "POST",
    KEYS,
    guard=manager_changes,
    body_max=2 * KB,
    status=201,
    errors=(ErrorCode.KYC_REQUIRED, ErrorCode.KEY_LIMIT_REACHED),
)
async def generate_api_key(call: Call[Manager, GenerateApiKey]) -> GeneratedApiKey:
    """Generate a key. Only this response shows the secret."""
    return await call.services.api_keys.generate(call.caller.business.id, call.body, by=by(call))


# Whatever the business's status.
@keys.add("DELETE", KEYS + "/{key_id:str}", guard=manager_reads, errors=(ErrorCode.API_KEY_ALREADY_REVOKED,))
async def revoke_api_key(call: Call[Manager, None]) -> Message:
    """Revoke a key. Permanent: the next request with the key fails."""
    await call.services.api_keys.revoke(call.caller.business.id, call.path["key_id"], by=by(call))
    return Message("The key is revoked.")
