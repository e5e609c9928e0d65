"""The archive: what is written reads back, leaves the database whole or not at all, and is never lost or doubled."""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import date
from typing import Any

import msgspec
import obstore
import pytest
from payagg_testing.builders import AN_ADMIN, DAY, NOW, a_report, an_event
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore

from payagg.adapters.logos import ObjectLogos
from payagg.application.payments.settlement import Settlement
from payagg.application.ports.payments import ArchiveDamaged
from payagg.application.reports.explain import timeline
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import ChargeFacts
from payagg.domain.payment import Payment, Trigger
from payagg.domain.report import Outcome, ReportEffect
from payagg.entrypoints.settings import SettingsError, read_settings
from payagg.extensions.archive.postgres import ArchiveRows
from payagg.extensions.archive.reader import ArchiveReader, archive_place
from payagg.extensions.archive.tables import MANIFEST, TABLES, read_rows
from payagg.extensions.archive.writer import Archive, ArchivedDay, ArchiveTaken
from tests.contracts.archive import ENDED, ArchiveContract, named, with_history
from tests.support.refusals import refused_with

pytest.importorskip("pyarrow")
TODAY = date(2025, 2, 3)
FIRST = "PAY-20250131"


class Crash(Exception):
    pass


class MeddledObjects(ObjectLogos):
    """Files in memory, into which something comes with each file that is put."""

    meddle: Callable[[str, bytes], Awaitable[bytes]] | None = None
    before_delete: Callable[[], Awaitable[None]] | None = None

    async def delete(self, path: str) -> None:
        if self.before_delete:
            await self.before_delete()
        await super().delete(path)

    async def put(self, path: str, content: bytes) -> None:
        await super().put(path, await self.meddle(path, content) if self.meddle else content)


class ArchiveWorld:
    """A store with some payments of 31 January 2025, two days later; files in memory."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.clock = ManualClock(NOW + 3 * DAY)
        self.entropy = SeededEntropy()
        self.objects = MeddledObjects("memory:///")
        self.reader = ArchiveReader(self.objects)
        self.settlement = Settlement(self.store, self.clock, self.entropy)

    async def payments(self, *numbers: int, **fields: Any) -> list[Payment]:
        return [await with_history(self.store, named(f"{number:06d}"), *ENDED, **fields) for number in numbers]

    async def archive(
        self, *, remove: bool = True, part_max: int = 9, dies_at: str = "", before: date = TODAY
    ) -> list[ArchivedDay]:
        def reached(step: str) -> None:
            if step == dies_at:
                raise Crash

        use = Archive(self.store, self.clock, self.entropy, self.reader, reached, part_max)
        return [day async for day in use.run(before, remove=remove, by=AN_ADMIN)]

    def history(self) -> dict[str, Any]:
        """What the database still holds of histories."""
        state = self.store.state
        return {"transitions": state.transitions, "attempts": state.attempts, "calls": state.calls}

    async def rows(self, table: str) -> list[tuple[Any, ...]]:
        """Every row of a table in all parts that were written."""
        found: list[tuple[Any, ...]] = []
        for part in self.store.state.archive_parts.values():
            found += read_rows((await self.reader.contents(part))[table], TABLES[table])
        return found

    async def told(self, number: int) -> list[str]:
        return await timeline(self.store, named(f"{number:06d}"), self.reader)


@pytest.fixture
def world() -> ArchiveWorld:
    return ArchiveWorld()


async def test_a_day_is_written_read_back_and_removed_and_who_did_it_is_recorded(world: ArchiveWorld) -> None:
    await world.payments(1, 2, 3)
    own = await _histories(world)
    [day] = await world.archive()
    assert (day.day, day.written, day.removed, day.left, day.waiting) == (FIRST, 3, 3, 0, 0)
    assert {table: await world.rows(table) for table in TABLES} == own
    assert not any(world.history().values())
    assert len(world.store.state.payments) == 3
    [part] = world.store.state.archive_parts.values()
    assert part.removed_at == world.clock.now()
    assert [(one.action, one.object_id, one.subject, one.changes) for one in world.store.state.audit.values()] == [
        ("archive.begin_remove", part.folder, AN_ADMIN.subject, {"payments": {"before": 3, "after": None}}),
        ("archive.remove", part.folder, AN_ADMIN.subject, {"payments": {"before": 3, "after": 0}}),
    ]
    assert await world.archive() == [], "nothing is left to be archived"


async def test_a_part_without_provider_calls_is_read(world: ArchiveWorld) -> None:
    await world.payments(1)
    world.store.state.calls.clear()
    before = await world.told(1)
    await world.archive()
    assert set(before) < set(await world.told(1)), "and where it is archived"


async def test_without_remove_the_database_keeps_all_and_nothing_is_written_twice(world: ArchiveWorld) -> None:
    await world.payments(1, 2)
    before = {name: dict(rows) for name, rows in world.history().items()}
    await world.archive(remove=False)
    assert world.history() == before
    [again] = await world.archive(remove=False)
    assert (again.written, again.waiting) == (0, 2)
    [removed] = await world.archive()
    assert (removed.written, removed.removed) == (0, 2)
    assert len(await world.rows("payments")) == 2


async def test_each_day_and_prefix_is_archived_for_itself_and_no_day_that_lasts(world: ArchiveWorld) -> None:
    for reference in ("PAY-20250201-000001", "ABC-20250131-000001", "PAY-20250131-00000Z"):
        await with_history(world.store, reference, *ENDED)
    await with_history(world.store, "ABC-20250203-000001", *ENDED, now=NOW + 3 * DAY)
    assert [day.day for day in await world.archive()] == ["ABC-20250131", "PAY-20250131", "PAY-20250201"]
    assert {reference for reference, _ in world.store.state.transitions} == {"ABC-20250203-000001"}
    assert (await refused_with(world.archive(before=TODAY + DAY)))[1] == "before"


@pytest.mark.rule("access.9", "personal-data.3")
@pytest.mark.parametrize("part_max", [2, 9], ids=["in parts", "behind the last payment"])
@pytest.mark.parametrize("label", ["A1", "A2", "A3", "A4"])
async def test_a_crash_at_any_step_loses_and_doubles_nothing(world: ArchiveWorld, label: str, part_max: int) -> None:
    await world.payments(*range(1, 6))
    own = await _histories(world)
    with pytest.raises(Crash):
        await world.archive(part_max=part_max, dies_at=label)
    begun = [entry.action for entry in world.store.state.audit.values()]
    assert begun == (["archive.begin_remove"] if label in ("A3", "A4") else [])
    await world.archive(part_max=part_max)
    assert {table: await world.rows(table) for table in TABLES} == own
    assert not any(world.history().values())
    parts = world.store.state.archive_parts.values()
    written = {part.folder for part in parts}
    assert len(written) == -(-5 // part_max)
    assert await _folders(world) == written, "of a part that was given up no file is left"
    assert all(part.removed_at for part in parts)
    ends = [entry.object_id for entry in world.store.state.audit.values() if entry.action == "archive.remove"]
    assert sorted(ends) == sorted(written)


async def test_a_part_that_does_not_read_back_is_not_recorded(world: ArchiveWorld) -> None:
    await world.payments(1)

    async def forget(path: str, content: bytes) -> bytes:
        return content[:-1] if path.endswith("attempts.parquet") else content

    world.objects.meddle = forget
    with pytest.raises(ArchiveDamaged, match="SHA-256 differs"):
        await world.archive()
    assert all(world.history().values())
    assert world.store.state.archive_parts == {}
    assert await _folders(world) == set()


async def test_of_two_commands_at_once_one_stops_and_nothing_is_doubled(world: ArchiveWorld) -> None:
    await world.payments(1, 2)

    async def interrupt(path: str, content: bytes) -> bytes:
        if path.endswith(MANIFEST):
            world.objects.meddle = None
            await world.archive()
        return content

    world.objects.meddle = interrupt
    with pytest.raises((ArchiveTaken, ArchiveDamaged)):
        await world.archive()
    assert len(await world.rows("payments")) == 2
    [part] = world.store.state.archive_parts.values()
    assert await _folders(world) == {part.folder}


@pytest.mark.rule("personal-data.3")
async def test_a_part_that_another_command_finishes_meanwhile_is_not_given_up(world: ArchiveWorld) -> None:
    await world.payments(1, 2)
    begun = asyncio.Event()
    others: list[asyncio.Task[list[ArchivedDay]]] = []

    async def begin_another(path: str, content: bytes) -> bytes:
        if path.endswith(MANIFEST):
            world.objects.meddle = None
            others.append(asyncio.create_task(world.archive()))
            await begun.wait()
        return content

    async def let_the_first_go_on() -> None:
        if not begun.is_set():
            begun.set()
            await asyncio.wait({first}, timeout=0.5)  # its end; or it waits for this one

    world.objects.meddle, world.objects.before_delete = begin_another, let_the_first_go_on
    first = asyncio.create_task(world.archive())
    with pytest.raises(ArchiveTaken):
        await first
    await asyncio.gather(*others)
    assert [len(await world.rows(table)) for table in TABLES] == [2, 4, 2, 2]
    assert not any(world.history().values())


@pytest.mark.rule("personal-data.3")
async def test_a_part_that_was_finished_since_it_was_listed_keeps_its_files(world: ArchiveWorld) -> None:
    await world.payments(1, 2)
    with pytest.raises(Crash):
        await world.archive(dies_at="A1")
    [unfinished] = world.store.state.archive_parts.values()
    await world.archive()
    [part] = world.store.state.archive_parts.values()
    use = Archive(world.store, world.clock, world.entropy, world.reader)
    with pytest.raises(ArchiveTaken):
        await use._give_up(replace(part, last_reference=None))
    with pytest.raises(ArchiveTaken):
        await use._give_up(unfinished)
    assert len(await world.rows("payments")) == 2


@pytest.mark.rule("personal-data.3")
async def test_a_damaged_file_is_found_before_anything_is_removed() -> None:
    for table in (*TABLES, None):
        world = ArchiveWorld()
        await world.payments(1, 2)
        await world.archive(remove=False)
        [part] = world.store.state.archive_parts.values()
        path = f"{part.folder}/{table}.parquet" if table else f"{part.folder}/{MANIFEST}"
        content = await world.objects.get(path)
        assert content is not None
        middle = len(content) // 2
        await world.objects.put(path, content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        before = {name: dict(rows) for name, rows in world.history().items()}
        with pytest.raises(ArchiveDamaged, match=re.escape(path)):
            await world.archive()
        assert world.history() == before
        await world.objects.delete(path)
        with pytest.raises(ArchiveDamaged, match="is missing"):
            await world.archive()
        assert world.history() == before


async def test_a_manifest_that_tells_less_than_was_written_is_refused(world: ArchiveWorld) -> None:
    await world.payments(1)
    await world.archive(remove=False)
    [part] = world.store.state.archive_parts.values()
    manifest = await world.reader.manifest(part)
    for objects in ({}, manifest.objects | {"calls": manifest.objects["payments"]}):
        encoded = msgspec.json.encode(msgspec.structs.replace(manifest, objects=objects))
        await world.objects.put(f"{part.folder}/{MANIFEST}", encoded)
        world.store.state.archive_parts[part.number] = replace(part, manifest=hashlib.sha256(encoded).digest())
        with pytest.raises(ArchiveDamaged, match="is not whole"):
            await world.archive()
    assert all(world.history().values())


async def test_a_payment_that_changed_since_it_was_written_stays_and_is_written_anew(world: ArchiveWorld) -> None:
    await world.payments(1, 2, 3)
    await world.archive(remove=False)
    [call] = [one for one in world.store.state.calls.values() if one.reference == named("000002")]
    world.store.state.calls["pcl_late"] = replace(call, id="pcl_late", at=NOW + DAY)
    await world.store.transaction.webhook_events.emit(an_event(reference=named("000003")), [])
    [day] = await world.archive()
    # What changed is written again at once, what is kept by its event waits for the event's end.
    assert (day.removed, day.left, day.written) == (2, 2, 1)
    world.store.state.events.clear()
    [day] = await world.archive()
    assert (day.removed, day.left) == (1, 0)
    assert not any(world.history().values())
    assert sum("provider    fetch" in line for line in await world.told(2)) == 2, "each call is told once"


async def test_an_archived_payment_is_explained_as_before(world: ArchiveWorld) -> None:
    await world.payments(1, 2)
    before = await world.told(1)
    await world.archive()
    after = await world.told(1)
    assert [line for line in after if "archive " not in line] == before
    assert len(after) == len(before) + 1
    world.objects = MeddledObjects("memory:///")
    world.reader = ArchiveReader(world.objects)
    [line] = [line for line in await world.told(1) if "cannot be read" in line]
    assert "is missing" in line
    assert "no archive is at hand" in "".join(await timeline(world.store, named("000001")))


@pytest.mark.rule("personal-data.4")
@pytest.mark.parametrize("is_archived", [False, True])
@pytest.mark.parametrize(
    ("outcome", "transaction", "effect", "kinds"),
    [
        (Outcome.SUCCEEDED, "P-C 1", ReportEffect.UNCHANGED, []),
        (Outcome.SUCCEEDED, "P-C 2", ReportEffect.ANOMALY, [AnomalyKind.SECOND_CHARGE]),
        (Outcome.REVERSED, "P-C 1", ReportEffect.ANOMALY, [AnomalyKind.LATE_REVERSAL]),
        (Outcome.REVERSED, "P-C 2", ReportEffect.ANOMALY, [AnomalyKind.SECOND_CHARGE, AnomalyKind.LATE_REVERSAL]),
        (Outcome.FAILED, None, ReportEffect.ANOMALY, [AnomalyKind.LATE_FAILURE]),
        (Outcome.DISPUTED, None, ReportEffect.ANOMALY, [AnomalyKind.DISPUTE]),
    ],
)
async def test_a_late_report_about_an_archived_payment_is_judged_as_before(
    world: ArchiveWorld,
    outcome: Outcome,
    transaction: str | None,
    effect: ReportEffect,
    kinds: list[AnomalyKind],
    is_archived: bool,
) -> None:
    payment = await _paid(world)
    if is_archived:
        await world.archive()
    assert bool(world.store.state.archived) is is_archived
    assert await _told(world, payment, outcome, transaction) is effect
    assert [one.kind for one in world.store.state.anomalies.values()] == kinds


@pytest.mark.rule("personal-data.4")
@pytest.mark.parametrize("is_archived", [False, True])
async def test_money_that_comes_twice_after_an_archived_failure_is_two_facts(
    world: ArchiveWorld, is_archived: bool
) -> None:
    payment = await _paid(world, Outcome.FAILED)
    if is_archived:
        await world.archive()
    for transaction in ("P-C 1", "P-C 1", "P-C 2", "P-C 2"):
        await _told(world, payment, Outcome.SUCCEEDED, transaction)
    told = [one.kind for one in world.store.state.anomalies.values()]
    assert told == [AnomalyKind.LATE_SUCCESS, AnomalyKind.SECOND_CHARGE]


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({}, "/state/archive"),
        ({"PAYAGG_LOGO_STORE": "s3://shop/logos/"}, "s3://shop/logos/archive"),
        ({"PAYAGG_LOGO_STORE": "s3://shop?region=eu"}, "s3://shop/archive?region=eu"),
        ({"PAYAGG_LOGO_STORE": "/srv/logos"}, "/srv/logos/archive"),
        ({"PAYAGG_LOGO_STORE": "s3://shop", "PAYAGG_ARCHIVE_STORE": "s3://vault"}, "s3://vault"),
    ],
)
def test_the_archive_lies_beside_the_logos_where_nothing_else_is_set(settings: dict[str, str], place: str) -> None:
    assert archive_place(read_settings({"PAYAGG_STATE_DIR": "/state"} | settings)) == place


def test_an_archive_in_no_store_is_refused_before_anything_is_written() -> None:
    with pytest.raises(SettingsError, match=r"PAYAGG_ARCHIVE_STORE must be a folder"):
        read_settings({"PAYAGG_ARCHIVE_STORE": "s3:/vault"})


async def _paid(world: ArchiveWorld, outcome: Outcome = Outcome.SUCCEEDED) -> Payment:
    """A payment that a provider's report ended."""
    payment = await with_history(world.store, named("000001"), Trigger.PROCESS)
    await _told(world, payment, outcome, "P-C 1")
    world.store.state.events.clear()  # their thirty days
    for key, attempt in world.store.state.attempts.items():
        world.store.state.attempts[key] = replace(attempt, next_ask_at=None)  # the half year of checks is over
    return payment


async def _told(
    world: ArchiveWorld, payment: Payment, outcome: Outcome, transaction: str | None = None
) -> ReportEffect:
    """What becomes of a report of the charge; `transaction` is the provider's id of it."""
    facts = ChargeFacts(provider_id=transaction)
    report = a_report(outcome, provider_reference=payment.reference, facts=facts)
    return (await world.settlement.report(report, "provider_a", payment.environment, "event")).effect


async def _histories(world: ArchiveWorld) -> dict[str, Any]:
    return await world.store.transaction.of(ArchiveRows).histories(sorted(world.store.state.payments))


async def _folders(world: ArchiveWorld) -> set[str]:
    assert world.objects._opened is not None
    listed = [one for batch in obstore.list(world.objects._opened) for one in batch]
    return {str(one["path"]).rpartition("/")[0] for one in listed}


class TestArchiveInMemory(ArchiveContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
