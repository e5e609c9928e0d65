"""The move of a business to another cell, its keys last: an operator's command that reaches both databases.

Each step is one transaction of one cell, and the next one goes on from what the last one left: stopped anywhere and run
again, the command ends what it began. A payment is in one place at any time: at the cell it leaves, in that cell's
outbox, or at the cell where it arrives.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from payagg.application.ports.outside import Clock, Entropy, Vault
from payagg.application.ports.store import Store
from payagg.application.use_case import UseCase, in_transaction, retry_on_conflict
from payagg.domain.audit import Action, Actor, AuditFilter
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import Gateway
from payagg.domain.values import Environment
from payagg.extensions.cells.domain import BusinessMove, MoveState, counterparts
from payagg.extensions.cells.postgres import ArrivalRows, CellRows, DepartureRows

BATCH = 100  # payments of one transaction: for so many is a payer's page away at a time, a tenth of a second each
AUDIT_BATCH = 500
PAUSE = 0.2
# Longer than a charge may take to start (20 s), a delivery to be sent (45 s), and any transaction of a server's.
PATIENCE = timedelta(minutes=2)
TELL_EVERY = timedelta(seconds=5)
SAMPLES = 100


@dataclass(frozen=True)
class MovedBusiness:
    """What a run of the command did. `closed` is how long no key was accepted, all runs together."""

    payments: int
    closed: timedelta


@dataclass(frozen=True)
class CellMove:
    """From the cell `own` to the cell `other`. `clock` is that of `source`."""

    source: Store
    target: Store
    clock: Clock
    entropy: Entropy
    vault: Vault
    own: str
    other: str
    tell: Callable[[str], None]
    batch: int = BATCH
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def run(self, business_id: str, *, by: Actor) -> MovedBusiness:
        """Does nothing where it is done. Raises NOT_FOUND, MISDIRECTED_REQUEST where the business is in a third cell,
        and VALIDATION_ERROR where the other cell is not fit for it or another move stands in the way; nothing has
        changed then. Raises SERVICE_UNAVAILABLE where something goes on for too long, and Unavailable where a database
        is away: run again, it goes on."""
        before = await in_transaction(self.source, lambda tx: tx.of(CellRows).of_business(business_id))
        if before is not None and before.state is MoveState.LEFT and before.cell == self.other:
            return MovedBusiness(0, timedelta(0))
        gateways = await self.check(business_id)
        move = await self._close(business_id, by)
        if move.state is MoveState.LEAVING:
            self.tell(f"No key of {business_id} is accepted from now on; payers go on. Waiting for what has begun ...")
            await self._outlast_transactions()
            await self._prepare(move, gateways)
        moved = 0
        while True:
            moved += await self._move_payments(business_id, gateways)
            await self._copy_audit(business_id)
            await self._open(business_id)
            if await in_transaction(self.source, lambda tx: tx.of(DepartureRows).leave(business_id)):
                return MovedBusiness(moved, self.clock.now() - move.at)

    async def check(self, business_id: str) -> Mapping[str, str]:
        """For each gateway of this cell, by id, the other's. Raises as `run` does."""
        await self._check_places(business_id)
        async with self.source.begin() as tx:
            schema, own = await tx.of(CellRows).schema(), await tx.gateways.everything()
            in_use = await tx.of(CellRows).gateways_in_use(business_id)
            secrets = await tx.of(CellRows).signing_secrets(business_id, SAMPLES)
            absent = set(Environment) - await tx.of(CellRows).environments(business_id)
        async with self.target.begin() as tx:
            other_schema, others = await tx.of(CellRows).schema(), await tx.gateways.everything()
            samples = await tx.of(CellRows).signing_secrets(None, SAMPLES)
        if schema != other_schema:
            raise _unfit(f"Its schema is {other_schema}, and here it is {schema}: run `payagg migrate` on the older.")
        used = [gateway for gateway in own if gateway.id in in_use]
        here = counterparts(own, others)
        if missing := sorted(gateway.slug for gateway in used if gateway.id not in here):
            raise _unfit(f"It has no gateway {', '.join(missing)}, which the business uses.")
        by_id = {gateway.id: gateway for gateway in others}
        for gateway in used:
            if self._credentials(gateway, absent) != self._credentials(by_id[here[gateway.id]], absent):
                raise _unfit(
                    f"Its gateway {gateway.slug} has other credentials, with which no charge can be asked about."
                )
        samples += [(gateway.id, gateway.credentials) for gateway in others if gateway.credentials is not None]
        if secrets and not samples:
            raise _unfit("Nothing there is sealed yet, so nothing shows that the business's secrets would open.")
        for context, blob in secrets + samples:
            self._unseal(blob, context)
        return here

    async def _check_places(self, business_id: str) -> None:
        async with self.source.begin() as tx:
            move, business = await tx.of(CellRows).of_business(business_id), await tx.businesses.get(business_id)
        async with self.target.begin() as tx:
            there, known = await tx.of(CellRows).of_business(business_id), await tx.businesses.get(business_id)
        if move is not None and move.state is MoveState.LEFT:
            raise Refusal(ErrorCode.MISDIRECTED_REQUEST, f"The business is in the cell {move.cell}.", cell=move.cell)
        if business is None:
            raise Refusal(ErrorCode.NOT_FOUND, "No such business.")
        if move is not None and move.state is MoveState.ARRIVING:
            raise _unfit(f"The business is still on its way from {move.cell}: end that move first.")
        if move is not None and move.cell != self.other:
            raise _unfit(f"The business is on its way to {move.cell}: end that move first.")
        if there is not None and there.state in (MoveState.LEAVING, MoveState.MOVING):
            raise _unfit(f"There the business is on its way to {there.cell}: end that move first.")
        if move is None and known is not None:
            raise _unfit("There is a business of this id already.")

    def _credentials(self, gateway: Gateway, absent: Collection[Environment]) -> Mapping[str, str]:
        """Without those that are of the environments `absent`: a cell for SANDBOX alone may have none for LIVE."""
        if gateway.credentials is None:
            return {}
        credentials: dict[str, str] = json.loads(self._unseal(gateway.credentials, gateway.id))
        foreign = tuple(one.value.lower() for one in absent)
        return {name: text for name, text in credentials.items() if not name.startswith(foreign)}

    def _unseal(self, sealed: bytes, context: str) -> bytes:
        try:
            return self.vault.open(sealed, context)
        except ValueError:
            raise _unfit(
                f"PAYAGG_ENCRYPTION_KEYS does not open what is sealed for {context}: both cells need the same keys."
            ) from None

    @retry_on_conflict
    async def _close(self, business_id: str, by: Actor) -> BusinessMove:
        now = self.clock.now()
        async with self.source.begin() as tx:
            if await tx.of(DepartureRows).close(business_id, self.other, now):
                changes = {"cell": {"before": self.own, "after": self.other}}
                use = UseCase(self.source, self.clock, self.entropy)
                await use.record(tx, by, Action.BUSINESS_MOVE, business_id, changes, business_id=business_id)
            move = await tx.of(CellRows).of_business(business_id)
        if move is None:
            raise Refusal(ErrorCode.NOT_FOUND, "No such business.")
        return move

    async def _outlast_transactions(self) -> None:
        """Waits for whoever may have read a key before they were closed, and adds a payment yet."""
        give_up = self.clock.now() + PATIENCE
        before = await in_transaction(self.source, lambda tx: tx.of(DepartureRows).open_transactions())
        while before:
            if self.clock.now() >= give_up:
                raise _too_long(f"transactions from before it was closed ({', '.join(sorted(before))})")
            await self.sleep(PAUSE)
            async with self.source.begin() as tx:
                before &= await tx.of(DepartureRows).open_transactions()

    @retry_on_conflict
    async def _prepare(self, move: BusinessMove, gateways: Mapping[str, str]) -> None:
        async with self.source.begin() as tx:
            profile = await tx.of(DepartureRows).profile(move.business_id)
        arriving = BusinessMove(move.business_id, self.own, MoveState.ARRIVING, move.at)
        async with self.target.begin() as tx:
            await tx.of(ArrivalRows).prepare(arriving, profile, gateways)
        async with self.source.begin() as tx:
            await tx.of(DepartureRows).start(move.business_id)

    async def _move_payments(self, business_id: str, gateways: Mapping[str, str]) -> int:
        """Until none is here, and none on its way."""
        moved, now = 0, self.clock.now()
        give_up, told = now + PATIENCE, now
        while True:
            done = await self._deliver(business_id, gateways)
            if await self._take(business_id) or done:
                moved, give_up = moved + done, self.clock.now() + PATIENCE
                if self.clock.now() - told >= TELL_EVERY:
                    told = self.clock.now()
                    self.tell(f"{moved} payments have moved ...")
                continue
            async with self.source.begin() as tx:
                if not await tx.of(DepartureRows).has_payments(business_id):
                    return moved
            if self.clock.now() >= give_up:
                raise _too_long("some of its payments, which are being charged or told to the merchant")
            await self.sleep(PAUSE)

    async def _take(self, business_id: str) -> int:
        now = self.clock.now()
        return await in_transaction(self.source, lambda tx: tx.of(DepartureRows).take(business_id, now, self.batch))

    @retry_on_conflict
    async def _deliver(self, business_id: str, gateways: Mapping[str, str]) -> int:
        """A batch of what is on its way; how many."""
        async with self.source.begin() as tx:
            payments = await tx.of(DepartureRows).under_way(business_id, self.batch)
        if payments:
            async with self.target.begin() as tx:
                await tx.of(ArrivalRows).receive(payments.values(), gateways)
            async with self.source.begin() as tx:
                await tx.of(DepartureRows).forget_arrivals(payments)
        return len(payments)

    async def _copy_audit(self, business_id: str) -> None:
        """With the entry of the move itself. The trail is never changed, so this cell keeps its own."""
        after: str | None = None
        while True:
            after = await self._copy_entries(business_id, after)
            if after is None:
                return

    @retry_on_conflict
    async def _copy_entries(self, business_id: str, after: str | None) -> str | None:
        async with self.source.begin() as tx:
            entries = await tx.audit.list_entries(AuditFilter(business_id=business_id), after, AUDIT_BATCH)
        async with self.target.begin() as tx:
            await tx.of(ArrivalRows).receive_audit(entries)
        return entries[-1].id if entries else None

    @retry_on_conflict
    async def _open(self, business_id: str) -> None:
        async with self.source.begin() as tx:
            belongings = await tx.of(DepartureRows).belongings(business_id)
        async with self.target.begin() as tx:
            await tx.of(ArrivalRows).open(business_id, belongings)


def _unfit(message: str) -> Refusal:
    return Refusal(ErrorCode.VALIDATION_ERROR, message)


def _too_long(what: str) -> Refusal:
    return Refusal(ErrorCode.SERVICE_UNAVAILABLE, f"The move waits for {what}. Run it again, and it goes on.")
