"""What every Store promises about revoked tokens."""

from datetime import timedelta

from payagg_testing.builders import NOW, TICK

from payagg.domain.revocation import Revocation, RevokedClaim
from tests.contracts.database import Database


class RevocationContract:
    async def test_a_token_is_revoked_by_its_id_whenever_it_was_issued(self, db: Database) -> None:
        assert not await db.is_revoked("t-1", "ada", NOW)
        await db.revocations.add(Revocation(RevokedClaim.TOKEN, "t-1", NOW))
        assert await db.is_revoked("t-1", "ada", NOW + TICK)
        assert not await db.is_revoked("t-2", "t-1", NOW - TICK)
        assert not await db.is_revoked(None, "ada", NOW - TICK)

    async def test_a_subjects_tokens_are_revoked_up_to_an_instant_that_never_goes_back(self, db: Database) -> None:
        for at in (NOW, NOW - timedelta(days=1)):
            await db.revocations.add(Revocation(RevokedClaim.SUBJECT, "ada", at))
            assert await db.is_revoked(None, "ada", NOW - TICK)
            assert not await db.is_revoked(None, "ada", NOW)
        assert not await db.is_revoked("ada", "bo", NOW - TICK)
        await db.revocations.add(Revocation(RevokedClaim.SUBJECT, "ada", NOW + TICK))
        assert await db.is_revoked(None, "ada", NOW)

    async def test_revocations_of_single_tokens_end_and_those_of_a_subject_stay(self, db: Database) -> None:
        for number in range(3):
            await db.revocations.add(Revocation(RevokedClaim.TOKEN, f"t-{number}", NOW + number * TICK))
        await db.revocations.add(Revocation(RevokedClaim.SUBJECT, "ada", NOW))
        assert [await db.revocations.forget(NOW + 2 * TICK, 1) for _ in range(3)] == [1, 1, 0]
        assert [await db.is_revoked(f"t-{number}", "bo", NOW) for number in range(3)] == [False, False, True]
        assert await db.is_revoked(None, "ada", NOW - TICK)
