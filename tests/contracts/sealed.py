"""What every Store promises about what lies sealed."""

from dataclasses import replace
from typing import Any

import pytest
from payagg_testing.builders import NOW, a_business, a_gateway, an_endpoint

from payagg.application.ports.upkeep import SealedBlob, SealedKind
from payagg.domain.gateway import GatewayStatus
from tests.contracts.database import Database, put

OFF = GatewayStatus.DISABLED
OF = {
    SealedKind.GATEWAY_CREDENTIALS: "credentials",
    SealedKind.REPLACED_SECRETS: "replaced_secrets",
    SealedKind.ENDPOINT_CURRENT: "secret",
    SealedKind.ENDPOINT_PREVIOUS: "previous_secret",
}


class SealedContract:
    async def _with_blobs(self, db: Database) -> None:
        """Two gateways and two endpoints, of which each first one has every blob; one endpoint is removed."""
        both: dict[str, Any] = {"credentials": b"c1", "replaced_secrets": b"r1", "replaced_secrets_until": NOW}
        rotated: dict[str, Any] = {"secret": b"s1", "previous_secret": b"p1", "previous_secret_expires_at": NOW}
        await put(
            db,
            a_business(),
            a_gateway("acme", OFF, **both),
            a_gateway("bold", OFF, credentials=None),
            an_endpoint("whe_1", **rotated),
            an_endpoint("whe_2", secret=b"s2"),
        )
        await db.endpoints.remove("whe_2", NOW)

    async def test_sealed_things_are_listed_by_kind_in_pages(self, db: Database) -> None:
        await self._with_blobs(db)
        expected = {
            SealedKind.GATEWAY_CREDENTIALS: [SealedBlob("gw_acme", b"c1")],
            SealedKind.REPLACED_SECRETS: [SealedBlob("gw_acme", b"r1")],
            SealedKind.ENDPOINT_CURRENT: [SealedBlob("whe_1", b"s1"), SealedBlob("whe_2", b"s2")],
            SealedKind.ENDPOINT_PREVIOUS: [SealedBlob("whe_1", b"p1")],
        }
        for kind, blobs in expected.items():
            assert await db.upkeep.sealed_blobs(kind, "", 100) == blobs
            assert await db.upkeep.sealed_blobs(kind, "", 1) == blobs[:1]
            assert await db.upkeep.sealed_blobs(kind, blobs[0].owner_id, 100) == blobs[1:]

    @pytest.mark.parametrize("kind", SealedKind)
    async def test_a_blob_is_replaced_only_where_it_still_is_the_one_seen(self, db: Database, kind: SealedKind) -> None:
        await self._with_blobs(db)
        [one, *_] = await db.upkeep.sealed_blobs(kind, "", 100)
        gateway, endpoint = await db.gateways.get("gw_acme"), await db.endpoints.lock("biz_1", "whe_1")
        assert not await db.upkeep.reseal(kind, one.owner_id, b"another", b"new")
        assert not await db.upkeep.reseal(kind, "unknown", one.blob, b"new")
        assert await db.upkeep.reseal(kind, one.owner_id, one.blob, b"new")
        assert not await db.upkeep.reseal(kind, one.owner_id, one.blob, b"newer")
        # Nothing else of the owner has changed.
        new: dict[str, Any] = {OF[kind]: b"new"}
        is_gateways = one.owner_id.startswith("gw_")
        assert gateway is not None
        assert endpoint is not None
        assert await db.gateways.get("gw_acme") == (replace(gateway, **new) if is_gateways else gateway)
        stored = await db.endpoints.lock("biz_1", "whe_1")
        assert stored == (endpoint if is_gateways else replace(endpoint, **new))
