"""Requests and answers of gateways, for administrators and merchants. Limits are in the types."""

from datetime import datetime
from typing import Annotated, Literal, cast

from msgspec import UNSET, Meta, Struct, UnsetType

from payagg.application.ports.gateways import GatewayMerchant
from payagg.application.schemas.views import view_of
from payagg.domain.business_gateway import DISPLAY_NAME_MAX, REORDER_MAX, BusinessGateway
from payagg.domain.gateway import (
    CREDENTIAL_VALUE_MAX,
    CREDENTIALS_MAX,
    DESCRIPTION_MAX,
    NAME_MAX,
    NAME_MIN,
    ORDER_MAX,
    REPLACED_MAX,
    Gateway,
    logo_url,
)
from payagg.domain.report import FaultKind
from payagg.domain.values import SLUG_MAX, SLUG_MIN, SLUG_PATTERN, Environment

SEARCH_MAX = 100

# The use case checks the form: a provider's own slug may be used again.
Slug = Annotated[str, Meta(min_length=SLUG_MIN, max_length=SLUG_MAX, extra_json_schema={"pattern": SLUG_PATTERN})]
# The domain refuses a blank one; the pattern is for who reads the description.
GatewayName = Annotated[
    str,
    Meta(min_length=NAME_MIN, max_length=NAME_MAX, extra_json_schema={"pattern": r"\S"}, examples=["Acme Pay"]),
]
Description = Annotated[str, Meta(max_length=DESCRIPTION_MAX, examples=["Cards and bank transfer"])]
DisplayOrder = Annotated[int, Meta(ge=0, le=ORDER_MAX, examples=[10])]
DisplayName = Annotated[str, Meta(max_length=DISPLAY_NAME_MAX, examples=["Pay by card"])]
# The business's id, or both ids when the business has its own settings.
MerchantId = Annotated[
    str, Meta(min_length=1, max_length=129, pattern="^[A-Za-z0-9_:-]+$", examples=["gw_0194bb1c2f00:biz_0194bb1c2f00"])
]
CredentialValue = Annotated[str, Meta(max_length=CREDENTIAL_VALUE_MAX)]
# DELETED exists only in the machine; no answer shows such a gateway.
ShownStatus = Literal["ACTIVE", "DRAINING", "DISABLED"]


class CreateGateway(Struct, rename="camel", kw_only=True, frozen=True):
    slug: Slug
    name: GatewayName
    description: Description | None = None
    display_order: DisplayOrder | None = None


class UpdateGateway(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """An absent field keeps its value; `description: null` clears, `displayOrder: null` is the same as absent, and a
    gateway always has a name."""

    name: GatewayName | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    display_order: DisplayOrder | None = None


class UpdateCredentials(Struct, rename="camel", kw_only=True, frozen=True):
    """Replaces the stored object in full; with `keepOthers` only the named ones, an empty value removing one."""

    credentials: Annotated[dict[str, CredentialValue], Meta(min_length=1, max_length=CREDENTIALS_MAX)]
    keep_others: bool = False

    def __repr__(self) -> str:
        return f"UpdateCredentials({len(self.credentials)} values)"


class TestCredentials(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    environment: Environment


class CredentialsTest(Struct, rename="camel", kw_only=True, frozen=True):
    """`fault`: why the provider gave no usable answer, BAD_CREDENTIALS when it refuses the key; null otherwise."""

    environment: Environment
    is_accepted: bool
    fault: FaultKind | None


class UpdateBusinessGateway(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """An absent field keeps its value; `displayName: null` clears, null elsewhere is the same as absent."""

    is_enabled: bool | None = None
    display_order: DisplayOrder | None = None
    display_name: DisplayName | UnsetType | None = UNSET
    is_default: bool | None = None


class OrderedGateway(Struct, rename="camel", kw_only=True, frozen=True):
    gateway_id: str
    display_order: DisplayOrder


class ReorderGateways(Struct, rename="camel", kw_only=True, frozen=True):
    order: Annotated[list[OrderedGateway], Meta(min_length=1, max_length=REORDER_MAX)]


class AdminGatewaySummary(Struct, rename="camel", kw_only=True, frozen=True):
    """`businessCount`: active businesses minus those that turned the gateway off, whatever its status."""

    id: str
    slug: str
    name: str
    description: str | None
    logo_path: str | None
    logo_url: str | None
    is_active: bool
    status: ShownStatus
    display_order: int
    is_built_in: bool
    drain_started_at: datetime | None
    drain_ends_at: datetime | None
    business_count: int
    has_credentials: bool
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, gateway: Gateway, business_count: int) -> "AdminGatewaySummary":
        status = cast(ShownStatus, gateway.status.value)
        return view_of(cls, gateway, status=status, logo_url=logo_url(gateway), business_count=business_count)


class GatewayOverride(Struct, rename="camel", kw_only=True, frozen=True):
    """A business that turned the gateway off, and when its settings last changed."""

    business_id: str
    business_name: str
    updated_at: datetime

    @classmethod
    def of(cls, merchant: GatewayMerchant) -> "GatewayOverride":
        own = merchant.settings
        return cls(
            business_id=merchant.business.id,
            business_name=merchant.business.name,
            updated_at=(own.updated_at if own else None) or merchant.business.created_at,
        )


class AdminGatewayDetail(AdminGatewaySummary, rename="camel", kw_only=True, frozen=True):
    overrides: list[GatewayOverride]


class AdminGatewayMerchant(Struct, rename="camel", kw_only=True, frozen=True):
    """An active business's settings of one gateway; the defaults when it never configured the gateway."""

    id: MerchantId
    business_id: str
    business_name: str
    is_enabled: bool
    display_name: str | None
    display_order: int
    is_default: bool
    created_at: datetime

    @classmethod
    def of(cls, merchant: GatewayMerchant, gateway: Gateway) -> "AdminGatewayMerchant":
        business, own = merchant.business, merchant.settings or BusinessGateway(merchant.business.id, gateway.id)
        return cls(
            id=business.id if merchant.settings is None else f"{gateway.id}:{business.id}",
            business_id=business.id,
            business_name=business.name,
            is_enabled=own.is_enabled,
            display_name=own.display_name,
            display_order=gateway.display_order if own.display_order is None else own.display_order,
            is_default=own.is_default,
            # Without settings of its own, a business has had the gateway since both exist.
            created_at=own.created_at or max(business.created_at, gateway.created_at),
        )


class GatewayWithBusinessSettings(Struct, rename="camel", kw_only=True, frozen=True):
    """A gateway with one business's settings; `businessDisplayOrder` null = the platform's order applies."""

    id: str
    slug: str
    name: str
    description: str | None
    logo_path: str | None
    logo_url: str | None
    display_order: int
    is_built_in: bool
    is_enabled: bool
    business_display_order: int | None
    display_name: str | None
    is_default: bool

    @classmethod
    def of(cls, gateway: Gateway, own: BusinessGateway) -> "GatewayWithBusinessSettings":
        return view_of(
            cls,
            gateway,
            logo_url=logo_url(gateway),
            is_enabled=own.is_enabled,
            business_display_order=own.display_order,
            display_name=own.display_name,
            is_default=own.is_default,
        )


class EndedSecret(Struct, rename="camel", kw_only=True, frozen=True):
    """A replaced signing secret that would have proved events of `environment` until `validUntil`."""

    environment: Environment
    valid_until: datetime


class EndedOverlap(Struct, rename="camel", kw_only=True, frozen=True):
    """The signing secrets that no longer prove events, newest first; empty when none was replaced within the
    overlap."""

    ended_secrets: Annotated[list[EndedSecret], Meta(max_length=REPLACED_MAX)]


class UploadedLogo(Struct, rename="camel", kw_only=True, frozen=True):
    logo_url: str
