"""What every Store promises about revoked tokens."""

from datetime import timedelta

from payagg_testing.builders import NOW

from payagg.application.ports.store import Store
from payagg.domain.revocation import Revocation, RevokedClaim

TICK = timedelta(microseconds=1)


class RevocationContract:
    async def test_a_token_is_revoked_by_its_id_whenever_it_was_issued(self, store: Store) -> None:
        assert not await store.is_revoked("t-1", "ada", NOW)
        await _add(store, Revocation(RevokedClaim.TOKEN, "t-1", NOW))
        assert await store.is_revoked("t-1", "ada", NOW + TICK)
        assert not await store.is_revoked("t-2", "t-1", NOW - TICK)
        assert not await store.is_revoked(None, "ada", NOW - TICK)

    async def test_a_subjects_tokens_are_revoked_up_to_an_instant_that_never_goes_back(self, store: Store) -> None:
        for at in (NOW, NOW - timedelta(days=1)):
            await _add(store, Revocation(RevokedClaim.SUBJECT, "ada", at))
            assert await store.is_revoked(None, "ada", NOW - TICK)
            assert not await store.is_revoked(None, "ada", NOW)
        assert not await store.is_revoked("ada", "bo", NOW - TICK)
        await _add(store, Revocation(RevokedClaim.SUBJECT, "ada", NOW + TICK))
        assert await store.is_revoked(None, "ada", NOW)


async def _add(store: Store, revocation: Revocation) -> None:
    async with store.begin() as tx:
        await tx.revocations.add(revocation)
