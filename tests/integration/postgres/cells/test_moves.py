"""What a move of a business between two cells keeps, between two databases; and what doctor says of a broken one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, cast

import psycopg
import pytest
from payagg_testing.builders import (
    AN_ADMIN,
    DAY,
    MINUTE,
    NOW,
    a_business,
    a_choice,
    a_gateway,
    a_key,
    a_payment,
    an_attempt,
    an_endpoint,
)

from payagg.adapters.postgres.doctor import examine
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.ports.store import Store, Transaction
from payagg.application.reports.explain import timeline
from payagg.domain.attempt import AttemptState
from payagg.domain.audit import AuditFilter
from payagg.domain.business import Role
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import Environment
from payagg.domain.webhook import secret_context
from payagg.extensions.cells.among_cells import AmongCells
from payagg.extensions.cells.client import HttpCells
from payagg.extensions.cells.domain import KEY_DIGITS, CellNames, Cells, MoveState
from payagg.extensions.cells.places import By, Destination
from payagg.extensions.cells.postgres import ArrivalRows, CellRows, DepartureRows
from payagg.extensions.cells.statements import OWNED
from tests.contracts.database import autocommit, put
from tests.integration.postgres.cells.moving import (
    CREDENTIALS,
    REFERENCES,
    SHOP,
    VAULT,
    Removal,
    everything,
    open_cells,
    originals,
    the_gateway,
)
from tests.integration.postgres.test_expiry import END, add, progress, swept
from tests.support.postgres_world import execute
from tests.support.refusals import refusal_in, refused_with

GONE = "PBX"
CELLS = Cells("PAY", {"PAY": "http://a", GONE: "http://b"})


def among(store: Store) -> AmongCells:
    """Of what is asked about here, no other cell is asked."""
    return AmongCells(store, CELLS, "secret", cast(HttpCells, None), VAULT)


@pytest.fixture
async def removal(store: PostgresStore, other_database_url: str) -> AsyncIterator[Removal]:
    """A move of the business that begins with all of it at the first database."""
    other = PostgresStore(other_database_url, pool_size=10, pgbouncer=False)
    await open_cells(store, other)
    yield Removal(store, other)
    await other.close()


class Power:
    """Counts the transactions of two stores, and fails at one of them, before its COMMIT or after."""

    def __init__(self, at: int, *, is_done: bool) -> None:
        self.at, self.is_done, self.count = at, is_done, 0


class FailingStore:
    """A store whose power goes off."""

    def __init__(self, store: Store, power: Power) -> None:
        self._store, self._power = store, power

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Transaction]:
        self._power.count += 1
        fails = self._power.count == self._power.at
        async with self._store.begin() as tx:
            yield tx
            if fails and not self._power.is_done:
                raise PowerCut
        if fails:
            raise PowerCut


class PowerCut(Exception):
    """The command ends here."""


async def test_a_business_moves_with_all_that_is_its_own_and_nothing_stays(removal: Removal) -> None:
    before, names = await everything(removal.source, "gw_here"), await _names(removal.source)
    assert names == CellNames([a_key().secret_hash.hex()[:KEY_DIGITS]], [SHOP])  # key_2 is revoked
    done = await removal.command().run(SHOP, by=AN_ADMIN)
    assert done.payments == len(REFERENCES)
    assert await everything(removal.target, "gw_there") == before
    assert [await _names(place) for place in (removal.source, removal.target)] == [CellNames([], []), names]
    assert await originals(removal.target) == list(REFERENCES)
    assert (await removal.command().run(SHOP, by=AN_ADMIN)).payments == 0
    assert await everything(removal.target, "gw_there") == before
    left = await everything(removal.source, "gw_here")
    assert left.pop("audit") == before["audit"]
    assert left.pop("events") == [([], [])] * len(REFERENCES)
    assert not any(any(rows) if isinstance(rows, list) else rows for rows in left.values())
    assert await originals(removal.source) == [None] * len(REFERENCES)
    for place in (removal.source, removal.target):
        entries = await autocommit(place).audit.list_entries(_moves(), None, 10)
        assert [dict(entry.changes["cell"]) for entry in entries] == [{"before": "PAY", "after": GONE}]


@pytest.mark.parametrize("is_done", [False, True], ids=["before COMMIT", "after COMMIT"])
async def test_cut_off_at_any_transaction_and_run_again_it_loses_and_doubles_nothing(
    removal: Removal, is_done: bool
) -> None:
    """There and back again, with a cut one transaction later each time, until none comes."""
    before = await everything(removal.source, "gw_here")
    cells, at = [(removal.source, "PAY", "gw_here"), (removal.target, GONE, "gw_there")], 0
    while True:
        (source, own, _), (target, to, gateway_id) = cells
        power = Power(at := at + 1, is_done=is_done)
        cut = Removal(FailingStore(source, power), FailingStore(target, power), own, to)  # type: ignore[arg-type]
        try:
            await cut.command().run(SHOP, by=AN_ADMIN)
        except PowerCut:
            await _assert_in_one_place(source, target)
            await Removal(source, target, own, to).command().run(SHOP, by=AN_ADMIN)
        assert await everything(target, gateway_id) == before, at
        assert await originals(target) == list(REFERENCES)
        assert await originals(source) == [None] * len(REFERENCES)
        cells.reverse()
        if power.count < power.at:
            break
    assert at > 30


async def test_what_is_asked_for_is_told_to_wait_and_then_where_it_is(removal: Removal) -> None:
    digest, posts = a_key().secret_hash, among(removal.source)
    command = removal.command()
    places = [Destination(By.KEY, digest.hex()), Destination(By.BUSINESS, SHOP)]
    places.append(Destination(By.REFERENCE, REFERENCES[0]))
    assert [await posts.cell_of(place) for place in places] == ["PAY"] * 3
    asks: list[Callable[[], Awaitable[object]]] = [
        partial(timeline, removal.source, REFERENCES[0], elsewhere=posts),
        partial(posts.ensure_payment_here, REFERENCES[0]),
    ]
    for ask in asks:
        await ask()
    await command._close(SHOP, AN_ADMIN)
    assert await removal.here.of(DepartureRows).take(SHOP, NOW, 10) == len(REFERENCES)
    assert await removal.source.find_key(digest) is None
    for ask in asks:
        with pytest.raises(Unavailable):
            await ask()
    for place in places:
        with pytest.raises(Unavailable):
            await posts.cell_of(place)
    await command.run(SHOP, by=AN_ADMIN)
    assert [await posts.cell_of(place) for place in places] == [GONE] * 3
    for ask in asks:
        moved = await refusal_in(ask())
        assert (moved.code, moved.cell) == (ErrorCode.MISDIRECTED_REQUEST, GONE)
        assert moved.message == f"The cell {GONE} has this now."
    moved = await refusal_in(replace(removal, other="PCX").command().run(SHOP, by=AN_ADMIN))
    assert (moved.code, moved.cell) == (ErrorCode.MISDIRECTED_REQUEST, GONE)
    there = AmongCells(removal.target, replace(CELLS, own=GONE), "secret", cast(HttpCells, None), VAULT)
    assert [await there.cell_of(place) for place in places] == [GONE] * 3
    await there.ensure_event_here(REFERENCES[0])
    with pytest.raises(Refusal):
        await there.ensure_event_here("PAY-20250131-ZZZZZZ")
    never = [Destination(By.KEY, "0" * 64), Destination(By.BUSINESS, "biz_9"), Destination(By.REFERENCE, "OLD-1")]
    assert [await there.cell_of(place) for place in never] == [None] * 3


async def test_nothing_of_a_business_changes_while_it_moves_but_its_payments(removal: Removal) -> None:
    move = await removal.command()._close(SHOP, AN_ADMIN)
    await removal.command()._prepare(move, {"gw_here": "gw_there"})
    for place, gateway_id in ((removal.source, "gw_here"), (removal.target, "gw_there")):
        for change in _changes(gateway_id):
            with pytest.raises(Conflict):
                async with place.begin() as tx:
                    await change(tx)
    assert await removal.here.payments.add(a_payment(reference="PAY-20250131-ZZZZZZ"))


async def test_what_is_being_charged_or_told_is_waited_for(removal: Removal) -> None:
    reference = "PAY-20250131-ZZZZZZ"
    payment = a_payment(reference=reference)
    await put(removal.here, payment, an_attempt(payment, gateway_id="gw_here"))
    leased = await removal.source.queue.claim(NOW, 1, 1, timedelta(seconds=45))
    busy = {reference, *(one.delivery.reference for one in leased)}
    assert len(busy) == 2
    await removal.command()._close(SHOP, AN_ADMIN)
    async with removal.source.begin() as tx:
        assert await tx.of(DepartureRows).take(SHOP, NOW, 10) == len(REFERENCES) - 1
        assert set(await tx.of(DepartureRows).under_way(SHOP, 10)) == {*REFERENCES} - busy
    done = await removal.command().run(SHOP, by=AN_ADMIN)
    assert done.payments == len(REFERENCES) + 1
    assert done.closed >= timedelta(seconds=45)
    assert (await removal.there.attempts.of_payment(reference))[0].state is AttemptState.CLAIMED


async def test_a_payment_of_the_other_cell_goes_on_there_and_is_not_set_back(removal: Removal) -> None:
    command = removal.command()
    move = await command._close(SHOP, AN_ADMIN)
    await command._prepare(move, {"gw_here": "gw_there"})
    async with removal.source.begin() as tx:
        await tx.of(DepartureRows).take(SHOP, NOW, 10)
        packed = (await tx.of(DepartureRows).under_way(SHOP, 10)).values()
    there = removal.there
    assert await there.of(ArrivalRows).receive(packed, {}) == len(REFERENCES)
    payment = await there.payments.get(REFERENCES[0])
    assert payment is not None
    moved, transition = payment.expire()
    assert transition is not None
    await there.payments.save(moved, transition)
    assert await there.of(ArrivalRows).receive(packed, {}) == 0
    assert await removal.target.find_payment(REFERENCES[0]) == moved


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (a_gateway("provider_b", id="gw_there"), "has no gateway provider_a"),
        (the_gateway("gw_there", credentials=None), "has other credentials"),
        (the_gateway("gw_there", credentials=VAULT.seal(b"{}", "gw_there")), "has other credentials"),
        (the_gateway("gw_there", credentials=b"under another key"), "need the same keys"),
    ],
)
async def test_it_is_refused_where_a_gateway_of_the_business_would_not_answer(
    removal: Removal, there: Any, said: str
) -> None:
    await removal.there.gateways.save(replace(there, status=the_gateway("gw_there").status))
    await _assert_refused(removal, said)


async def test_credentials_of_an_environment_in_which_the_business_has_nothing_may_differ(removal: Removal) -> None:
    both = CREDENTIALS.replace(b"}", b', "liveSecretKey": "sk_live_1"}')
    here, key = removal.here, a_key("key_9", Environment.LIVE)
    await here.gateways.save(the_gateway("gw_here", credentials=VAULT.seal(both, "gw_here")))
    await here.api_keys.add(key)
    await _assert_refused(removal, "has other credentials")
    await here.api_keys.save(key.revoke(NOW))
    await removal.command().run(SHOP, by=AN_ADMIN)


async def test_it_is_refused_while_another_move_is_under_way_or_the_id_is_taken(removal: Removal) -> None:
    await removal.there.businesses.add(a_business())
    await _assert_refused(removal, "There is a business of this id already.")
    await removal.command()._close(SHOP, AN_ADMIN)
    await _assert_refused(removal, "on its way to PBX", to="PCX", is_open=False)
    assert await refused_with(removal.command().run("biz_9", by=AN_ADMIN)) == (ErrorCode.NOT_FOUND, None)


def _moves() -> AuditFilter:
    return AuditFilter(business_id=SHOP, action="business.move")


async def _names(store: Store) -> CellNames:
    return await autocommit(store).of(CellRows).names()


async def _assert_in_one_place(source: Store, target: Store) -> None:
    """Each payment is at one of the two cells, or in the outbox of the first; its key opens at none of them, or both
    say so."""
    before, after = autocommit(source), autocommit(target)
    move = await before.of(CellRows).of_business(SHOP)
    packed = await before.of(DepartureRows).under_way(SHOP, 10)
    here = {reference for reference in REFERENCES if await before.payments.get(reference) is not None}
    there = {reference for reference in REFERENCES if await after.payments.get(reference) is not None}
    for reference in REFERENCES:
        assert (reference in here) + (reference in there or reference in packed) == 1, reference
    digest = a_key().secret_hash
    holders = [await store.find_key(digest) for store in (source, target)]
    assert sum(holder is not None for holder in holders) == (
        1 if move is None or move.state is MoveState.LEFT else holders[1] is not None
    )
    if holders[1] is not None:
        assert there == set(REFERENCES)


async def _assert_refused(removal: Removal, said: str, to: str = GONE, *, is_open: bool = True) -> None:
    """And nothing has changed."""
    refused = await refusal_in(replace(removal, other=to).command().run(SHOP, by=AN_ADMIN))
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert said in refused.message
    assert (await removal.source.find_key(a_key().secret_hash) is not None) is is_open


def _changes(gateway_id: str) -> list[Any]:
    sealed = VAULT.seal(b"whsec", secret_context("whe_9"))
    return [
        lambda tx: tx.businesses.save(a_business(name="Other")),
        lambda tx: tx.members.add(SHOP, "cy", Role.ADMIN),
        lambda tx: tx.api_keys.add(a_key("key_9", Environment.LIVE)),
        lambda tx: tx.gateway_choices.save(a_choice(the_gateway(gateway_id), is_enabled=False)),
        lambda tx: tx.endpoints.add(an_endpoint("whe_9", secret=sealed)),
        lambda tx: tx.endpoints.save(an_endpoint("whe_1", secret=sealed, description="New")),
        lambda tx: tx.endpoints.remove("whe_1", NOW),
    ]


TWICE = "a payment, a key and a business are here, or in another cell, or on their way there"
STANDS = "no move to another cell has been under way for more than an hour"


def breaches(url: str, rule: str) -> list[str]:
    return next(finding.breaches for finding in examine(url).rules if finding.rule == rule)


async def test_doctor_names_what_is_in_two_places(removal: Removal, store: PostgresStore, database_url: str) -> None:
    await removal.command().run(SHOP, by=AN_ADMIN)
    assert breaches(database_url, TWICE) == []
    async with store.begin() as tx:
        await tx.payments.add(a_payment(reference=REFERENCES[0]))
    assert breaches(database_url, TWICE) == [REFERENCES[0]]


async def test_doctor_names_a_move_that_stands_still(removal: Removal, store: PostgresStore, database_url: str) -> None:
    now = await store.now()
    async with store.begin() as tx:
        await tx.of(DepartureRows).close(SHOP, "PBX", now)
        assert await tx.of(DepartureRows).take(SHOP, now - timedelta(hours=2), 1) == 1
        [packed] = await tx.of(DepartureRows).under_way(SHOP, 10)
    assert breaches(database_url, STANDS) == [packed]
    execute(database_url, "UPDATE moved_businesses SET at = at - interval '2 hours'")
    assert set(breaches(database_url, STANDS)) == {packed, SHOP}


async def test_it_waits_for_a_transaction_that_began_before_the_keys_were_closed(
    store: PostgresStore, database_url: str
) -> None:
    with psycopg.connect(database_url) as slow:
        slow.execute("SELECT 1")
        async with store.begin() as tx:
            seen = await tx.of(DepartureRows).open_transactions()
        assert any(one.startswith(f"{slow.info.backend_pid} ") for one in seen)
        slow.commit()
        async with store.begin() as tx:
            assert not seen & await tx.of(DepartureRows).open_transactions()


async def test_a_payment_that_somebody_holds_is_left_for_later(
    removal: Removal, store: PostgresStore, database_url: str
) -> None:
    await removal.command()._close(SHOP, AN_ADMIN)
    with psycopg.connect(database_url) as holder:
        holder.execute("SELECT FROM payments WHERE reference = %s FOR NO KEY UPDATE", [REFERENCES[0]])
        holder.execute("SELECT FROM deliveries WHERE reference = %s FOR UPDATE", [REFERENCES[1]])
        async with store.begin() as tx:
            assert await tx.of(DepartureRows).take(SHOP, NOW, 10) == len(REFERENCES) - 2
            assert await tx.of(DepartureRows).has_payments(SHOP)
    async with store.begin() as tx:
        assert await tx.of(DepartureRows).take(SHOP, NOW, 10) == 2


async def test_a_payment_that_comes_from_another_cell_past_its_window_is_met(
    store: PostgresStore, database_url: str
) -> None:
    late, later = await add(store, 1), await add(store, 2, END + MINUTE)
    parts = ", ".join(f"'{table}', '[]'::jsonb" for table in ("archived", "idempotency_keys", *OWNED))
    packed = f"SELECT jsonb_build_object('payment', to_jsonb(p), {parts})::text FROM payments p WHERE reference = %s"
    [(rows,)] = execute(database_url, packed, values=[late.reference])
    execute(database_url, "DELETE FROM payments WHERE reference = %s", values=[late.reference])
    assert [await swept(store, END + DAY) for _ in range(2)] == [[later.reference], []]
    assert progress(database_url) == later.expires_at
    async with store.begin() as tx:
        assert await tx.of(ArrivalRows).receive([rows], {}) == 1
    assert await swept(store, END + DAY) == [late.reference]
