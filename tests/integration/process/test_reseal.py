"""`payagg reseal` as an operator runs it while servers go on; killed, and run again."""

import base64
from typing import Any

import pytest
from payagg_testing.builders import NOW, a_business, a_gateway, an_endpoint

from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.security import AesVault
from payagg.application.ports.upkeep import SealedKind
from payagg.domain.gateway import GatewayStatus
from tests.support.processes import Command, one_line, succeeded

OLD, NEW = ("k1", bytes(range(32))), ("k2", bytes(range(32, 64)))
OFF = GatewayStatus.DISABLED
OPENS = "what is sealed opens under PAYAGG_ENCRYPTION_KEYS"


def keys(*pairs: tuple[str, bytes]) -> dict[str, str]:
    return {"PAYAGG_ENCRYPTION_KEYS": ",".join(f"{kid}:{base64.b64encode(key).decode()}" for kid, key in pairs)}


def sealed(kind: SealedKind, owner: str) -> bytes:
    return AesVault((OLD,)).seal(owner.encode(), kind.context(owner))


async def filled(store: PostgresStore, endpoints: int) -> None:
    """Two gateways, one of which has a replaced secret; half of the endpoints have a previous one."""
    credentials, replaced, current, previous = SealedKind
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        both: dict[str, Any] = {"replaced_secrets": sealed(replaced, "gw_acme"), "replaced_secrets_until": NOW}
        await tx.gateways.add(a_gateway("acme", OFF, credentials=sealed(credentials, "gw_acme"), **both))
        await tx.gateways.add(a_gateway("bold", OFF, credentials=sealed(credentials, "gw_bold")))
        for number in range(endpoints):
            id = f"whe_{number:04d}"
            rotated: dict[str, Any] = {"previous_secret": sealed(previous, id), "previous_secret_expires_at": NOW}
            own = an_endpoint(id, secret=sealed(current, id), **(rotated if number % 2 else {}))
            await tx.endpoints.add(own)


async def opened(store: PostgresStore, vault: AesVault) -> int:
    """How many things there are; each must open under `vault` as what it was."""
    async with store.begin() as tx:
        found = [(kind, one) for kind in SealedKind for one in await tx.upkeep.sealed_blobs(kind, "", 10_000)]
    for kind, one in found:
        assert vault.open(one.blob, kind.context(one.owner_id)) == one.owner_id.encode()
    return len(found)


@pytest.mark.rule("access.10")
async def test_everything_moves_under_the_first_key_and_the_old_one_can_go(store: PostgresStore, run: Command) -> None:
    await filled(store, 4)
    assert "PAYAGG_ENCRYPTION_KEYS is required" in one_line(run("reseal"))
    kinds = {"gateway credentials": 2, "replaced signing secrets": 1, "webhook secrets": 4}
    kinds["previous webhook secrets"] = 2
    assert succeeded(run("reseal", "--dry-run", **keys(NEW, OLD))).splitlines() == [
        *(f"{kind}: {number} under k1" for kind, number in kinds.items()),
        "9 are not under k2, the first key.",
    ]
    assert await opened(store, AesVault((OLD,))) == 9  # a dry run changes nothing
    assert succeeded(run("reseal", **keys(NEW, OLD))).splitlines() == [
        *(f"{kind}: {number} sealed anew; {number} under k2" for kind, number in kinds.items()),
        "Everything is under k2, the first key.",
    ]
    assert await opened(store, AesVault((NEW,))) == 9
    trail = run("audit", "--action", "secrets.reseal").stdout.splitlines()
    assert len(trail) == 4
    assert "secrets.reseal k2" in trail[0]
    assert "Everything is under k2" in run("reseal", "--dry-run", **keys(NEW)).stdout
    assert f"ok      {OPENS}" in succeeded(run("doctor", **keys(NEW)))


async def test_doctor_names_what_no_key_opens_though_one_has_its_name(store: PostgresStore, run: Command) -> None:
    await filled(store, 1)
    for others in (keys(NEW), keys((OLD[0], NEW[1]))):
        told = run("doctor", **others)
        assert told.returncode == 1
        found = told.stdout.partition(f"BROKEN  {OPENS}\n")[2].splitlines()
        assert [line.strip() for line in found[:3]] == [
            "gatewayCredentials of gw_acme",
            "gatewayCredentials of gw_bold",
            "replacedSecrets of gw_acme",
        ]
