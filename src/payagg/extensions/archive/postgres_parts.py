"""Parts of the archive, each a folder of files."""

from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select, update

from payagg.adapters.postgres.repositories.payments import PART
from payagg.adapters.postgres.repositories.rows import PostgresRepository, in_text, parameters
from payagg.adapters.postgres.schema.reports import archive_parts
from payagg.adapters.postgres.statement import Statement, must_find
from payagg.application.ports.outside import Conflict
from payagg.domain.archived import ArchivePart

BEGIN_PART = Statement(
    insert(archive_parts)
    .values(parameters("day", "folder", "started_at") | {"payments": in_text(0)})
    .returning(archive_parts.c.number)
)
_FINISHED = (
    update(archive_parts)
    .where(archive_parts.c.number == bindparam("number"), archive_parts.c.manifest.is_(None))
    .values(parameters("payments", "last_reference", "manifest"))
    .returning(archive_parts.c.number)
    .cte("finished")
)
FINISH_PART = Statement(must_find(_FINISHED))
GIVE_UP_PART = Statement(
    delete(archive_parts)
    .where(archive_parts.c.number == bindparam("number"), archive_parts.c.manifest.is_(None))
    .returning(archive_parts.c.number)
)
PARTS = Statement(
    select(*PART.columns)
    .where(archive_parts.c.day == bindparam("day"), archive_parts.c.removed_at.is_(None))
    .order_by(archive_parts.c.number)
)
UNFINISHED_DAYS = Statement("SELECT DISTINCT day FROM archive_parts WHERE removed_at IS NULL ORDER BY day", reads=True)
CLOSE_PART = Statement(
    update(archive_parts).where(archive_parts.c.number == bindparam("number")).values(removed_at=bindparam("now"))
)


class PostgresArchiveParts(PostgresRepository):
    async def begin(self, day: str, folder: str, now: datetime) -> ArchivePart:
        number = await self._connection.value(BEGIN_PART, day=day, folder=folder, started_at=now)
        assert number is not None
        return ArchivePart(number, day, folder, now)

    async def finish(self, part: ArchivePart) -> None:
        own = {name: getattr(part, name) for name in ("number", "payments", "last_reference", "manifest")}
        self._connection.send(FINISH_PART, or_else=Conflict("the part was given up"), **own)

    async def give_up(self, number: int) -> bool:
        return await self._connection.value(GIVE_UP_PART, number=number) is not None

    async def of_day(self, day: str) -> list[ArchivePart]:
        return PART.all(await self._connection.rows(PARTS, day=day))

    async def unfinished_days(self) -> list[str]:
        return [day for (day,) in await self._connection.rows(UNFINISHED_DAYS)]

    async def close(self, number: int, now: datetime) -> None:
        self._connection.send(CLOSE_PART, number=number, now=now)
