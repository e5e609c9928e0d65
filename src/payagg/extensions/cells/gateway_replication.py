"""Gateways of the home cell, as every other cell has them: set once, told with a version, applied where they differ.

Sealed credentials travel sealed, bound to the gateway's id, which is the same in every cell; the keys that open them
never travel.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
import structlog

from payagg.application.ports.outside import ObjectStore, Vault
from payagg.application.ports.store import Transaction
from payagg.application.upkeep.sweeps import Sweep
from payagg.application.use_case import UseCase, in_transaction, retry_on_conflict
from payagg.domain.audit import Action, changes_of, clock
from payagg.domain.checks import with_changes
from payagg.domain.gateway import GATEWAY, Gateway, GatewayStatus
from payagg.domain.rate_limit import EPOCH
from payagg.entrypoints.bootstrap import Services
from payagg.extensions.cells.among_cells import among_cells
from payagg.extensions.cells.client import HttpCells

VERSION_DIGITS = 12
_AUDITED = ("slug", "name", "description", "display_order", "status", "drain_ends_at", "logo_path")
_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_log = structlog.get_logger("payagg.gateway_replication")


@dataclass(frozen=True)
class GatewayReplication(UseCase):
    """Both sides: `gateways_to_send` at the home cell, `pull` at every other."""

    vault: Vault
    logos: ObjectStore
    others: HttpCells

    async def gateways_to_send(self) -> list[Gateway]:
        """Every gateway, deleted ones without their secrets: those are settled by each cell for itself."""
        now = self.clock.now()
        return [_as_told(gateway, now) for gateway in await self._everything()]

    async def version(self) -> str:
        """Twelve hex digits that two cells share when they have the same gateways now."""
        own, now = await self._everything(), self.clock.now()
        told = [_comparable(gateway, now) for gateway in sorted(own, key=lambda gateway: gateway.id)]
        return hashlib.sha256(_encode(told)).hexdigest()[:VERSION_DIGITS]

    async def pull(self) -> int:
        """Asks the home cell and applies what differs; how many gateways changed. Raises Unavailable when it cannot be
        asked. For the worker."""
        theirs = await self.others.home_gateways()
        now = self.clock.now()
        own = {gateway.id: gateway for gateway in await self._everything()}
        changed = 0
        # Deleted ones first: their slugs are free again.
        for gateway in sorted(theirs, key=lambda gateway: gateway.status is not GatewayStatus.DELETED):
            mine = own.get(gateway.id)
            if mine is not None and _comparable(mine, now) == _comparable(gateway, now):
                continue
            if self._opens(gateway):
                await self._fetch_logo(gateway, mine)
                changed += await self._apply(gateway)
        return changed

    async def _everything(self) -> list[Gateway]:
        return await in_transaction(self.store, lambda tx: tx.gateways.everything())

    def _opens(self, gateway: Gateway) -> bool:
        """Whether this cell can use what is sealed. Where not, it keeps the gateway as it had it."""
        if gateway.credentials is None:
            return True
        try:
            self.vault.open(gateway.credentials, gateway.id)
        except ValueError as error:
            _log.error("credentials of the home cell do not open here", gateway=gateway.slug, reason=str(error))
            return False
        return True

    async def _fetch_logo(self, gateway: Gateway, mine: Gateway | None) -> None:
        """The file is there before the row names it. Cells that share a store have it already."""
        path = gateway.logo_path
        if path is None or (mine is not None and mine.logo_path == path) or await self.logos.get(path) is not None:
            return
        await self.logos.put(path, await self.others.home_logo(gateway.id))

    @retry_on_conflict
    async def _apply(self, gateway: Gateway) -> bool:
        """Whether there was something to apply: a gateway that ended here stays ended."""
        now = self.clock.now()
        async with self.store.begin() as tx:
            before = await tx.gateways.lock(gateway.id)
            mine = before or await self._add(tx, gateway)
            if mine is None:
                return False
            for step in _steps(mine, gateway, now):
                await tx.gateways.save(step)
                mine = step
            changes = changes_of(before, mine, *_AUDITED)
            action = Action.GATEWAY_CREATE if before is None else Action.GATEWAY_UPDATE
            if before is not None and before.credentials != mine.credentials and mine.has_credentials:
                await self.record(tx, clock("home cell"), Action.GATEWAY_SET_CREDENTIALS, gateway.id)
            await self.record(tx, clock("home cell"), action, gateway.id, changes)
        _log.info("gateway of the home cell applied", gateway=gateway.slug, status=gateway.status.value)
        return True

    async def _add(self, tx: Transaction, gateway: Gateway) -> Gateway | None:
        """The gateway as it begins here; None where it has ended, or where another one has its slug."""
        if gateway.status is GatewayStatus.DELETED or await tx.gateways.get_any(gateway.id) is not None:
            return None
        status = gateway.status if gateway.is_built_in else GATEWAY.initial
        begun = with_changes(gateway, status=status, drain_started_at=None, drain_ends_at=None)
        if await tx.gateways.add(begun):
            return begun
        _log.error("another gateway has the slug of one of the home cell's", gateway=gateway.slug)
        return None


def replication_over(core: Services, others: HttpCells) -> GatewayReplication:
    return GatewayReplication(core.store, core.clock, core.entropy, core.vault, core.logos, others)


def sweeps(core: Services) -> list[Sweep]:
    """None at the home cell, and where there is one installation."""
    among = among_cells(core)
    if among is None or among.cells.is_home:
        return []
    copies = replication_over(core, among.others)
    return [Sweep("gateways of the home cell", 10.0, copies.pull, until_dry=False)]


def _as_told(gateway: Gateway, now: datetime) -> Gateway:
    """As it stands at `now`, without secrets that have ended."""
    if gateway.status is GatewayStatus.DELETED:
        return with_changes(gateway, credentials=None, replaced_secrets=None, replaced_secrets_until=None)
    return gateway.as_of(now).without_secrets(now, has_open_attempts=True)


def _comparable(gateway: Gateway, now: datetime) -> Gateway:
    """What must be the same in every cell: not when it was written there."""
    told = _as_told(gateway, now)
    if told.status is GatewayStatus.DELETED:
        return with_changes(
            told, name="", description=None, logo_path=None, display_order=0, created_at=EPOCH, updated_at=EPOCH
        )
    return with_changes(told, created_at=EPOCH, updated_at=EPOCH)


def _steps(mine: Gateway, theirs: Gateway, now: datetime) -> list[Gateway]:
    """What to save, one after the other, so that each move is one of the machine's; the last is `theirs`."""
    steps = [
        with_changes(
            mine,
            status=status,
            drain_started_at=now if status is GatewayStatus.DRAINING else None,
            drain_ends_at=now if status is GatewayStatus.DRAINING else None,
        )
        for status in _way(mine.status, theirs.status)[:-1]
    ]
    if theirs.status is GatewayStatus.DELETED:
        # What is sealed stays for settling this cell's own payments; CredentialRetirement wipes it.
        ended = with_changes(mine, status=theirs.status, drain_started_at=None, drain_ends_at=None, logo_path=None)
        return [*steps, with_changes(ended, updated_at=now)]
    return [*steps, theirs]


def _way(start: GatewayStatus, end: GatewayStatus) -> list[GatewayStatus]:
    """The fewest states from `start` to `end`, without `start`; `end` alone where they are the same."""
    ways = [[start]]
    for way in ways:
        if way[-1] is end:
            return way[1:] or [end]
        ways += [[*way, to] for (state, _), to in GATEWAY.moves.items() if state is way[-1] and to not in way]
    raise ValueError(f"no way from {start.value} to {end.value}")
