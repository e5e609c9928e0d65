"""What use cases need of gateways, merchants' choices among them and their health."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from payagg.domain.business import Business
from payagg.domain.gateway import BusinessGateway, Gateway
from payagg.domain.health import Health
from payagg.domain.values import Environment


@dataclass(frozen=True)
class GatewayMerchant:
    """One row of an administrator's list of a gateway's merchants."""

    business: Business
    settings: BusinessGateway | None


@dataclass(frozen=True)
class GatewayChoices:
    """What a business can offer its payers: every gateway by display order, its own settings by gateway id, and the
    health of providers."""

    gateways: list[Gateway]
    settings: dict[str, BusinessGateway]
    health: list[Health]


class GatewayRepository(Protocol):
    """Reads return gateways as stored; callers apply `as_of(now)`. DELETED ones are returned where it says so alone."""

    async def all(self) -> list[Gateway]:
        """By display order, then slug."""

    async def get(self, gateway_id: str) -> Gateway | None: ...

    async def lock(self, gateway_id: str) -> Gateway | None: ...

    async def by_slug(self, slug: str) -> Gateway | None: ...

    async def get_any(self, gateway_id: str) -> Gateway | None:
        """A DELETED one too: payments that were handed to it are still settled through it."""

    async def everything(self) -> list[Gateway]:
        """DELETED ones too, by id. For copies in other cells."""

    async def to_wipe(self, now: datetime) -> list[Gateway]:
        """Locked rows (skipping locked ones): DELETED ones that have credentials on file, and any whose replaced
        secrets have ended by `now`. At most 100."""

    async def add(self, gateway: Gateway) -> bool:
        """False when the slug is taken."""

    async def save(self, gateway: Gateway) -> None: ...

    async def draining(self, now: datetime) -> list[Gateway]:
        """Locked rows (skipping locked ones) whose drain has ended by `now`."""


class GatewayChoiceRepository(Protocol):
    """What businesses chose among the gateways."""

    async def of_business(self, business_id: str) -> GatewayChoices: ...

    async def active_businesses(self) -> int: ...

    async def opt_outs(self, gateway_id: str | None = None) -> dict[str, int]:
        """Per gateway id: how many active businesses turned it off."""

    async def overrides(self, gateway_id: str) -> list[GatewayMerchant]:
        """Businesses that turned it off, by name."""

    async def merchants(
        self, gateway_id: str, search: str | None, offset: int, limit: int
    ) -> tuple[list[GatewayMerchant], int]:
        """A page of active businesses (literal, case-insensitive substring of the name) and the total."""

    async def settings(self, business_id: str) -> dict[str, BusinessGateway]:
        """By gateway id."""

    async def save(self, settings: BusinessGateway) -> None:
        """Insert or replace. When it is the default, every other default of the business is cleared first."""


class HealthRepository(Protocol):
    async def all(self) -> list[Health]: ...

    async def lock(self, gateway: str, environment: Environment) -> Health:
        """The row, locked, made when absent."""

    async def save(self, health: Health) -> None: ...
