"""What every Store promises about console sessions."""

from datetime import datetime

from payagg_testing.builders import HOUR, NOW

from payagg.domain.audit import ActorRealm
from payagg.domain.checks import with_changes
from payagg.domain.console_session import ConsoleSession
from tests.contracts.database import Database, put

MERCHANT, ADMIN = ActorRealm.MERCHANT, ActorRealm.ADMIN


class ConsoleSessionContract:
    async def test_the_sessions_of_a_user_are_found_and_listed_the_latest_first(self, db: Database) -> None:
        one, two = a_session(1), a_session(2, started_at=NOW + HOUR)
        others = [a_session(3, subject="bo"), a_session(4, realm=ADMIN)]
        await put(db, one, two, *others)
        assert await db.find_console_session(one.session) == one
        assert await db.find_console_session(bytes(32)) is None
        assert await db.console_sessions.of(MERCHANT, "ada") == [two, one]
        assert await db.console_sessions.of(ADMIN, "ada") == [others[1]]
        assert await db.console_sessions.of(ADMIN, "bo") == []

    async def test_a_session_is_seen_at_its_latest_request_and_never_again_once_ended(self, db: Database) -> None:
        one = a_session(1)
        seen = with_changes(one, seen_at=NOW + HOUR, address=None)
        await db.console_sessions.add(one)
        for change in (seen, with_changes(one, seen_at=NOW + HOUR / 2, address="192.0.2.9")):
            await db.console_sessions.save(change)
        assert await db.find_console_session(one.session) == seen
        await db.console_sessions.end(MERCHANT, "ada", one.session)
        await db.console_sessions.save(with_changes(one, seen_at=NOW + 2 * HOUR))
        assert await db.find_console_session(one.session) is None

    async def test_a_user_ends_no_session_but_their_own(self, db: Database) -> None:
        kept, _, bo, admin = own = a_session(1), a_session(2), a_session(3, subject="bo"), a_session(4, realm=ADMIN)
        await put(db, *own)
        for another in (bo, admin):
            await db.console_sessions.end(MERCHANT, "ada", another.session)
        await db.console_sessions.end_others(MERCHANT, "ada", kept.session)
        found = [await db.find_console_session(one.session) for one in own]
        assert found == [kept, None, bo, admin]
        await db.console_sessions.end(MERCHANT, "bo", bo.session)
        assert await db.find_console_session(bo.session) is None

    async def test_sessions_that_have_ended_by_themselves_are_forgotten(self, db: Database) -> None:
        over, alive = a_session(1), a_session(2, ends_at=NOW + 2 * HOUR)
        await put(db, over, alive)
        await db.console_sessions.forget(NOW + HOUR)
        assert [await db.find_console_session(one.session) for one in (over, alive)] == [None, alive]


def a_session(
    number: int,
    *,
    realm: ActorRealm = MERCHANT,
    subject: str = "ada",
    started_at: datetime = NOW,
    ends_at: datetime = NOW + HOUR,
) -> ConsoleSession:
    return ConsoleSession(bytes([number]) * 32, realm, subject, "192.0.2.1", started_at, NOW, ends_at)
