"""What every Store promises about revoked tokens."""

from datetime import datetime, timedelta

from payagg_testing.builders import NOW, TICK

from payagg.domain.revocation import Revocation, RevokedClaim
from tests.contracts.database import Database


async def is_revoked(db: Database, token_id: str | None, subject: str, issued_at: datetime) -> bool:
    """By both ways to ask."""
    found = await db.find_member("biz_none", token_id, subject, issued_at)
    assert (found.role, found.business) == (None, None)
    assert found.is_revoked is await db.is_revoked(token_id, subject, issued_at)
    return found.is_revoked


class RevocationContract:
    async def test_a_token_is_revoked_by_its_id_whenever_it_was_issued(self, db: Database) -> None:
        assert not await is_revoked(db, "t-1", "ada", NOW)
        await db.members.revoke(Revocation(RevokedClaim.TOKEN, "t-1", NOW))
        assert await is_revoked(db, "t-1", "ada", NOW + TICK)
        assert not await is_revoked(db, "t-2", "t-1", NOW - TICK)
        assert not await is_revoked(db, None, "ada", NOW - TICK)

    async def test_a_subjects_tokens_are_revoked_up_to_an_instant_that_never_goes_back(self, db: Database) -> None:
        for at in (NOW, NOW - timedelta(days=1)):
            await db.members.revoke(Revocation(RevokedClaim.SUBJECT, "ada", at))
            assert await is_revoked(db, None, "ada", NOW - TICK)
            assert not await is_revoked(db, None, "ada", NOW)
        assert not await is_revoked(db, "ada", "bo", NOW - TICK)
        await db.members.revoke(Revocation(RevokedClaim.SUBJECT, "ada", NOW + TICK))
        assert await is_revoked(db, None, "ada", NOW)
