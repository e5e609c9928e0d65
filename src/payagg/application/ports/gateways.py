"""Ports of gateways, merchants' settings of them and their health."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from payagg.domain.business import Business
from payagg.domain.business_gateway import BusinessGateway
from payagg.domain.gateway import Gateway
from payagg.domain.health import Health
from payagg.domain.values import Environment


@dataclass(frozen=True)
class GatewayMerchant:
    """One row of an administrator's list of a gateway's merchants."""

    business: Business
    settings: BusinessGateway | None


@dataclass(frozen=True)
class GatewayChoices:
    """What a business can offer: every gateway by display order, the business's settings by gateway id, and the health
    of providers."""

    gateways: list[Gateway]
    settings: dict[str, BusinessGateway]
    health: list[Health]


class GatewayRepository(Protocol):
    """Reads return gateways as stored; callers apply `as_of(now)`. Only the methods that say so return DELETED ones."""

    async def all(self) -> list[Gateway]:
        """By display order, then slug."""

    async def get(self, gateway_id: str) -> Gateway | None: ...

    async def lock(self, gateway_id: str) -> Gateway | None: ...

    async def by_slug(self, slug: str) -> Gateway | None: ...

    async def get_any(self, gateway_id: str) -> Gateway | None:
        """Also a DELETED one: its payments are still settled through it."""

    async def everything(self) -> list[Gateway]:
        """Also DELETED ones, by id. For replication to other cells."""

    async def to_wipe(self, now: datetime) -> list[Gateway]:
        """Locked rows (skipping locked ones): DELETED gateways with credentials on file, and any whose replaced secrets
        ended by `now`. At most 100."""

    async def add(self, gateway: Gateway) -> bool:
        """False when the slug is taken."""

    async def save(self, gateway: Gateway) -> None: ...

    async def draining(self, now: datetime) -> list[Gateway]:
        """Locked rows (skipping locked ones) whose drain has ended by `now`."""


class GatewayChoiceRepository(Protocol):
    """The businesses' gateway settings."""

    async def of_business(self, business_id: str) -> GatewayChoices: ...

    async def active_businesses(self) -> int: ...

    async def opt_outs(self, gateway_id: str | None = None) -> dict[str, int]:
        """By gateway id: the number of active businesses that turned it off."""

    async def overrides(self, gateway_id: str) -> list[GatewayMerchant]:
        """Businesses that turned it off, by name."""

    async def merchants(
        self, gateway_id: str, search: str | None, offset: int, limit: int
    ) -> tuple[list[GatewayMerchant], int]:
        """A page of active businesses (literal, case-insensitive substring of the name) and the total."""

    async def save(self, settings: BusinessGateway) -> None:
        """Inserts or replaces. A new default clears every other default of the business first."""


class HealthRepository(Protocol):
    async def all(self) -> list[Health]: ...

    async def lock(self, gateway: str, environment: Environment) -> Health:
        """The row, locked, inserted when absent."""

    async def save(self, health: Health) -> None: ...
