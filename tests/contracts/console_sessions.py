"""What every Store promises about console sessions."""

from datetime import datetime

from payagg_testing.builders import HOUR, NOW

from payagg.domain.audit import ActorRealm
from payagg.domain.checks import with_changes
from payagg.extensions.console.domain import ConsoleSession
from payagg.extensions.console.postgres import SessionRows
from tests.contracts.database import Database, OnDatabase

MERCHANT, ADMIN = ActorRealm.MERCHANT, ActorRealm.ADMIN


class ConsoleSessionContract(OnDatabase):
    async def test_the_sessions_of_a_user_are_found_and_listed_the_latest_first(self, db: Database) -> None:
        one, two = a_session(1), a_session(2, started_at=NOW + HOUR)
        others = [a_session(3, subject="bo"), a_session(4, realm=ADMIN)]
        await add(db, one, two, *others)
        assert await db.of(SessionRows).find(one.session) == one
        assert await db.of(SessionRows).find(bytes(32)) is None
        assert await db.of(SessionRows).of(MERCHANT, "ada") == [two, one]
        assert await db.of(SessionRows).of(ADMIN, "ada") == [others[1]]
        assert await db.of(SessionRows).of(ADMIN, "bo") == []

    async def test_a_session_is_seen_at_its_latest_request_and_never_again_once_ended(self, db: Database) -> None:
        one = a_session(1)
        seen = with_changes(one, seen_at=NOW + HOUR, address=None)
        await db.of(SessionRows).add(one)
        for change in (seen, with_changes(one, seen_at=NOW + HOUR / 2, address="192.0.2.9")):
            await db.of(SessionRows).touch(change)
        assert await db.of(SessionRows).find(one.session) == seen
        await db.of(SessionRows).end(MERCHANT, "ada", one.session)
        await db.of(SessionRows).touch(with_changes(one, seen_at=NOW + 2 * HOUR))
        assert await db.of(SessionRows).find(one.session) is None

    async def test_a_user_ends_no_session_but_their_own(self, db: Database) -> None:
        kept, _, bo, admin = own = a_session(1), a_session(2), a_session(3, subject="bo"), a_session(4, realm=ADMIN)
        await add(db, *own)
        for another in (bo, admin):
            await db.of(SessionRows).end(MERCHANT, "ada", another.session)
        await db.of(SessionRows).end_others(MERCHANT, "ada", kept.session)
        found = [await db.of(SessionRows).find(one.session) for one in own]
        assert found == [kept, None, bo, admin]
        await db.of(SessionRows).end(MERCHANT, "bo", bo.session)
        assert await db.of(SessionRows).find(bo.session) is None

    async def test_sessions_that_have_ended_by_themselves_are_forgotten(self, db: Database) -> None:
        over, alive = a_session(1), a_session(2, ends_at=NOW + 2 * HOUR)
        await add(db, over, alive)
        await db.of(SessionRows).forget(NOW + HOUR)
        assert [await db.of(SessionRows).find(one.session) for one in (over, alive)] == [None, alive]


async def add(db: Database, *sessions: ConsoleSession) -> None:
    for one in sessions:
        await db.of(SessionRows).add(one)


def a_session(
    number: int,
    *,
    realm: ActorRealm = MERCHANT,
    subject: str = "ada",
    started_at: datetime = NOW,
    ends_at: datetime = NOW + HOUR,
) -> ConsoleSession:
    return ConsoleSession(bytes([number]) * 32, realm, subject, "192.0.2.1", started_at, NOW, ends_at)
