"""Gateways, businesses and their use cases around one store, for the tests of both stores."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from payagg_testing.builders import AN_ADMIN, a_business
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore

from payagg.adapters.logos import ObjectLogos
from payagg.adapters.security import AesVault
from payagg.application.gateways.seed import seed_gateways
from payagg.application.ports.outside import ObjectStore
from payagg.application.ports.providers import Provider
from payagg.application.ports.store import Store
from payagg.application.schemas.gateways import UpdateBusinessGateway
from payagg.domain.business import Business, Role
from payagg.domain.gateway import Gateway
from tests.contracts.database import autocommit
from tests.support.assembly import KEYS, named, services_over

DRAIN = timedelta(minutes=30)
TICK = timedelta(microseconds=1)


def files_under(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@dataclass
class GatewayWorld:
    store: Store = field(default_factory=MemoryStore)
    clock: ManualClock = field(default_factory=ManualClock)
    logos: ObjectStore = field(default_factory=lambda: ObjectLogos("memory:///"))
    vault: AesVault = field(default_factory=lambda: AesVault(KEYS))
    providers: dict[str, Provider] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.entropy, self.db = SeededEntropy(), autocommit(self.store)
        services = services_over(
            self.store,
            clock=self.clock,
            entropy=self.entropy,
            vault=self.vault,
            providers=self.providers,
            logos=self.logos,
        )
        self.gateways, self.settings = services.gateways, services.checkout_settings
        self.settling = services.gateway_settling

    async def add(self, *businesses: Business) -> None:
        """Each managed by `bo`."""
        for business in businesses:
            await self.db.businesses.add(business)
            await self.db.members.add(business.id, "bo", Role.ADMIN)

    async def seeded(self, *slugs: str) -> dict[str, str]:
        """A business `biz_1`, the built-in, and an ACTIVE gateway per slug; their ids by slug."""
        await self.add(a_business())
        await seed_gateways(self.gateways, "builtin", named(*slugs))
        ids = {gateway.slug: gateway.id for gateway in await self.gateways.list_gateways()}
        for slug in slugs:
            await self.gateways.enable(ids[slug], by=AN_ADMIN)
        return ids

    async def choose(self, gateway_id: str, business_id: str = "biz_1", **changes: Any) -> Any:
        return await self.settings.update(business_id, gateway_id, UpdateBusinessGateway(**changes), by=AN_ADMIN)

    async def stored(self, gateway_id: str) -> Gateway:
        gateway = await self.db.gateways.get(gateway_id)
        assert gateway is not None
        return gateway
