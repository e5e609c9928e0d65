"""What a business may change of a gateway, and which gateways its payers are offered."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from payagg.domain.checks import check_flag, check_id, check_instant, check_integer, check_text, is_blank
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import ORDER_MAX, Gateway

DISPLAY_NAME_MAX = 50
REORDER_MAX = 100


@dataclass(frozen=True)
class BusinessGateway:
    """What one business chose for one gateway. No row means the defaults: the model is opt-out.

    Raises VALIDATION_ERROR for what no settings can be, with the field's JSON name.
    """

    business_id: str
    gateway_id: str
    is_enabled: bool = True
    display_name: str | None = None
    display_order: int | None = None
    is_default: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None

    def __post_init__(self) -> None:
        check_id(self.business_id, "businessId")
        check_id(self.gateway_id, "gatewayId")
        check_flag(self.is_enabled, "isEnabled")
        check_flag(self.is_default, "isDefault")
        if self.display_name is not None:
            check_text(self.display_name, "displayName", DISPLAY_NAME_MAX)
        if self.display_order is not None:
            check_integer(self.display_order, "displayOrder", 0, ORDER_MAX)
        if self.is_default and not self.is_enabled:
            raise invalid("isDefault", "A disabled gateway cannot be the default.")
        for instant, field in ((self.created_at, "createdAt"), (self.updated_at, "updatedAt")):
            if instant is not None:
                check_instant(instant, field)

    def with_settings(
        self,
        gateway: Gateway,
        now: datetime,
        *,
        is_enabled: bool | None = None,
        display_order: int | None = None,
        is_default: bool | None = None,
        display_name: str | None = None,
        rename: bool = False,
    ) -> "BusinessGateway":
        """The settings after a merchant's change; None keeps a value, `rename` makes `display_name` count.

        Raises VALIDATION_ERROR when the built-in gateway would be disabled or reordered, or when a disabled
        gateway would become the default. Turning a gateway off clears its default flag.
        """
        if gateway.is_built_in and is_enabled is False:
            raise invalid("isEnabled", "The built-in gateway cannot be disabled.")
        if gateway.is_built_in and display_order is not None:
            raise invalid("displayOrder", "The built-in gateway cannot be reordered.")
        enabled = self.is_enabled if is_enabled is None else is_enabled
        if is_default and not enabled:
            raise invalid("isDefault", "A disabled gateway cannot be the default.")
        return replace(
            self,
            is_enabled=enabled,
            display_order=self.display_order if display_order is None else display_order,
            is_default=enabled and (self.is_default if is_default is None else is_default),
            display_name=display_name if rename else self.display_name,
            created_at=self.created_at or now,
            updated_at=now,
        )


def parse_order(gateway_ids: Sequence[str]) -> Sequence[str]:
    """The gateways of a reorder themselves; raises VALIDATION_ERROR on `order` for none, too many or a repeat."""
    if not 1 <= len(gateway_ids) <= REORDER_MAX:
        raise invalid("order", f"Must have 1 to {REORDER_MAX} items.")
    for place, gateway_id in enumerate(gateway_ids):
        if gateway_id in gateway_ids[:place]:
            raise invalid("order", f"Each gateway may appear once: order[{place}].gatewayId repeats one.")
    return gateway_ids


def ensure_selectable(gateway: Gateway | None, settings: BusinessGateway | None) -> Gateway:
    """The gateway a merchant prefers; raises GATEWAY_NOT_FOUND unless ACTIVE, GATEWAY_DISABLED when opted out."""
    if gateway is None or not gateway.is_active:
        raise Refusal(ErrorCode.GATEWAY_NOT_FOUND, field="gateway")
    if settings is not None and not settings.is_enabled:
        raise Refusal(ErrorCode.GATEWAY_DISABLED, field="gateway")
    return gateway


def is_offered(gateway: Gateway, settings: BusinessGateway | None) -> bool:
    """Whether a payer of this business sees the gateway at all."""
    return gateway.is_active and (settings is None or settings.is_enabled)


def checkout_order(pair: tuple[Gateway, BusinessGateway | None]) -> tuple[bool, int, int, str]:
    """Sort key of a business's list: the built-in first, then the business's order, then the platform's."""
    gateway, settings = pair
    own = settings.display_order if settings and settings.display_order is not None else gateway.display_order
    return (not gateway.is_built_in, own, gateway.display_order, gateway.slug)


def shown_name(gateway: Gateway, own: BusinessGateway | None) -> str:
    """Payers see the business's own name for the gateway, unless it is blank."""
    renamed = own.display_name if own is not None else None
    return gateway.name if renamed is None or is_blank(renamed) else renamed
