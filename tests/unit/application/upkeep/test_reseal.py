"""What lies sealed moves under the first key: all of it, safely repeated, and never over what somebody just changed."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from payagg_testing.builders import AN_ADMIN, NOW, a_business, a_gateway, an_endpoint
from payagg_testing.clocks import ManualClock
from payagg_testing.memory import MemoryStore

from payagg.adapters.security import AesVault
from payagg.adapters.system import SystemEntropy
from payagg.application.ports.upkeep import SealedKind
from payagg.application.upkeep import reseal
from payagg.application.upkeep.reseal import Reseal

OLD, NEW, GONE = ("k1", b"1" * 32), ("k2", b"2" * 32), ("k0", b"0" * 32)
BEFORE, BOTH = AesVault((OLD,)), AesVault((NEW, OLD))
LATER = NOW + timedelta(days=1)


def sealed(kind: SealedKind, owner: str, vault: AesVault = BEFORE) -> bytes:
    return vault.seal(f"{kind.value} of {owner}".encode(), kind.context(owner))


async def a_store(endpoints: int = 3) -> MemoryStore:
    store, (credentials, replaced, secret, previous) = MemoryStore(), SealedKind
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        facts: dict[str, Any] = {"replaced_secrets": sealed(replaced, "gw_acme"), "replaced_secrets_until": LATER}
        await tx.gateways.add(a_gateway("acme", credentials=sealed(credentials, "gw_acme"), **facts))
        await tx.gateways.add(a_gateway("bold", credentials=sealed(credentials, "gw_bold", BOTH)))
        await tx.gateways.add(a_gateway("calm", credentials=None))
        for id in (f"whe_{number}" for number in range(endpoints)):
            facts = {"previous_secret": sealed(previous, id), "previous_secret_expires_at": LATER}
            await tx.endpoints.add(an_endpoint(id, secret=sealed(secret, id), **facts))
    return store


def a_reseal(store: MemoryStore, vault: AesVault = BOTH) -> Reseal:
    return Reseal(store, ManualClock(), SystemEntropy("PAY"), vault)


async def opened(store: MemoryStore, vault: AesVault) -> int:
    """How many things open under `vault`, each being what it was."""
    number = 0
    for kind in SealedKind:
        for one in await store.transaction.upkeep.sealed_blobs(kind, "", 1000):
            assert vault.open(one.blob, kind.context(one.owner_id)) == f"{kind.value} of {one.owner_id}".encode()
            number += 1
    return number


async def test_everything_that_is_sealed_moves_under_the_first_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reseal, "BATCH", 2)
    store = await a_store()
    before = [dict(counts) for counts in (await a_reseal(store).count_by_key()).values()]
    assert before == [{"k1": 1, "k2": 1}, {"k1": 1}, {"k1": 3}, {"k1": 3}]
    done = await a_reseal(store).run(by=AN_ADMIN)
    assert list(done.moved.values()) == [1, 1, 3, 3]
    assert await opened(store, AesVault((NEW,))) == 9
    after = [dict(counts) for counts in (await a_reseal(store).count_by_key()).values()]
    assert after == [{"k2": number} for number in (2, 1, 3, 3)]
    trail = [(one.action, one.object_id, one.subject) for one in store.state.audit.values()]
    assert trail == [("secrets.reseal", "k2", AN_ADMIN.subject)] * 6
    assert sum(one.changes["resealed"]["after"] for one in store.state.audit.values()) == 8

    # Again there is nothing to do, and nothing to tell.
    assert sum((await a_reseal(store).run(by=AN_ADMIN)).moved.values()) == 0
    assert len(store.state.audit) == 6


@pytest.mark.rule("access.10")
async def test_what_is_changed_meanwhile_is_never_overwritten() -> None:
    store = await a_store(endpoints=1)
    newer = BEFORE.seal(b"newer", "gw_acme")

    class Meddled(AesVault):
        """Between reading a blob and storing it anew somebody sets new credentials."""

        def seal(self, plain: bytes, context: str) -> bytes:
            if context == "gw_acme":
                store.state.gateways[context] = replace(store.state.gateways[context], credentials=newer)
            return super().seal(plain, context)

    done = await a_reseal(store, Meddled((NEW, OLD))).run(by=AN_ADMIN)
    assert done.moved[SealedKind.GATEWAY_CREDENTIALS] == 0
    assert store.state.gateways["gw_acme"].credentials == newer
    assert (await a_reseal(store).run(by=AN_ADMIN)).moved[SealedKind.GATEWAY_CREDENTIALS] == 1
    assert BOTH.open(store.state.gateways["gw_acme"].credentials or b"", "gw_acme") == b"newer"


async def test_what_opens_under_no_key_stays_and_stops_nothing() -> None:
    store = await a_store(endpoints=1)
    closed = sealed(SealedKind.GATEWAY_CREDENTIALS, "gw_aaa", AesVault((GONE,)))
    await store.transaction.gateways.add(a_gateway("aaa", credentials=closed))
    done = await a_reseal(store).run(by=AN_ADMIN)
    assert done.closed == {SealedKind.GATEWAY_CREDENTIALS: 1} | dict.fromkeys(list(SealedKind)[1:], 0)
    assert done.moved[SealedKind.GATEWAY_CREDENTIALS] == 1
    assert store.state.gateways["gw_aaa"].credentials == closed
    assert (await a_reseal(store).count_by_key())[SealedKind.GATEWAY_CREDENTIALS] == {"k0": 1, "k2": 2}


async def test_a_batch_that_is_undone_leaves_neither_change_nor_entry() -> None:
    store = await a_store(endpoints=1)

    class DiesOfAnEndpoint(AesVault):
        def seal(self, plain: bytes, context: str) -> bytes:
            if context.startswith("webhook-secret:"):
                raise ZeroDivisionError
            return super().seal(plain, context)

    with pytest.raises(ZeroDivisionError):
        await a_reseal(store, DiesOfAnEndpoint((NEW, OLD))).run(by=AN_ADMIN)
    assert len(store.state.audit) == 2
    assert await opened(store, BOTH) == 5
    await a_reseal(store).run(by=AN_ADMIN)
    assert await opened(store, AesVault((NEW,))) == 5
