"""Gateways as administrators manage them, and their public logos.

Correctness never waits for a worker: every use case looks at a gateway `as_of(now)`, so a drain ends at its instant.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from msgspec import UNSET

from payagg.application.gateways.credentials import GatewayCredentials
from payagg.application.gateways.readiness import OPEN_ATTEMPTS_MAX
from payagg.application.ports.outside import Images, ObjectStore, Unavailable
from payagg.application.ports.store import Transaction
from payagg.application.schemas.gateways import (
    AdminGatewayDetail,
    AdminGatewayMerchant,
    AdminGatewaySummary,
    CreateGateway,
    EndedOverlap,
    EndedSecret,
    GatewayOverride,
    UpdateCredentials,
    UpdateGateway,
    UploadedLogo,
)
from payagg.application.schemas.payments import Message
from payagg.application.schemas.views import view_of
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.audit import Action, Actor, accounts_changed, changes_of, clock, credentials_changed
from payagg.domain.checks import with_changes
from payagg.domain.errors import ErrorCode, Refusal, invalid, must_exist
from payagg.domain.gateway import Gateway, parse_credentials
from payagg.domain.health import Health
from payagg.domain.values import parse_slug

LOGO_READS = 3  # reads of row and file when a replacement comes between them
# What an audit entry shows of a gateway.
_AUDITED = ("slug", "name", "description", "display_order", "status", "drain_ends_at", "logo_path")
MEDIA_TYPES = {"png": "image/png", "jpg": "image/jpeg"}


@dataclass(frozen=True)
class Logo:
    content: bytes
    media_type: str


@dataclass(frozen=True)
class ReplacedCredentials:
    """`removed`: the names that were removed. `open_attempts`: attempts with status checks due whose account is no
    longer on file, so nobody can answer; counted up to OPEN_ATTEMPTS_MAX."""

    removed: list[str]
    open_attempts: int


@dataclass(frozen=True)
class Gateways(UseCase):
    sealed: GatewayCredentials
    logos: ObjectStore
    images: Images
    reserved_slugs: frozenset[str]
    drain_window: timedelta

    async def list_gateways(self) -> list[AdminGatewaySummary]:
        """Every gateway, disabled and draining ones too, by display order."""
        now = self.clock.now()
        async with self.store.begin() as tx:
            gateways = await tx.gateways.all()
            active, off = await tx.gateway_choices.active_businesses(), await tx.gateway_choices.opt_outs()
        return [AdminGatewaySummary.of(gateway.as_of(now), active - off.get(gateway.id, 0)) for gateway in gateways]

    @retry_on_conflict
    async def create(self, command: CreateGateway, *, by: Actor) -> AdminGatewaySummary:
        """A DISABLED gateway; raises GATEWAY_SLUG_EXISTS for a slug in use or reserved.

        A provider's slug is in use from the start; once its gateway is deleted it may be created again.
        """
        now = self.clock.now()
        gateway = Gateway(
            id=self.entropy.id("gw", now),
            # The deployment may have given a provider a slug with underscores, which no other gateway of ours has.
            slug=command.slug if command.slug in self.sealed.providers else parse_slug(command.slug),
            name=command.name,
            created_at=now,
            updated_at=now,
            description=command.description,
            display_order=command.display_order or 0,
        )
        async with self.store.begin() as tx:
            if command.slug in self.reserved_slugs or not await tx.gateways.add(gateway):
                raise Refusal(ErrorCode.GATEWAY_SLUG_EXISTS, field="slug")
            await self.record_change(tx, by, Action.GATEWAY_CREATE, None, gateway)
            return await _summary(tx, gateway)

    async def detail(self, gateway_id: str) -> AdminGatewayDetail:
        """Raises NOT_FOUND, as every use case here that names a gateway does."""
        async with self.store.begin() as tx:
            gateway = must_exist(await tx.gateways.get(gateway_id)).as_of(self.clock.now())
            summary = await _summary(tx, gateway)
            overrides = [GatewayOverride.of(merchant) for merchant in await tx.gateway_choices.overrides(gateway_id)]
        return view_of(AdminGatewayDetail, summary, overrides=overrides)

    async def update(self, gateway_id: str, command: UpdateGateway, *, by: Actor) -> AdminGatewaySummary:
        """Raises VALIDATION_ERROR when anything but the display order of the built-in gateway would change."""
        fields = {"name": command.name, "description": command.description}
        changes: dict[str, Any] = {name: value for name, value in fields.items() if value is not UNSET}
        if command.display_order is not None:
            changes["display_order"] = command.display_order

        def change(gateway: Gateway, now: datetime) -> Gateway:
            for name in fields:
                if gateway.is_built_in and name in changes:
                    raise invalid(name, "Only the display order of the built-in gateway may change.")
            return replace(gateway, **changes, updated_at=now) if changes else gateway

        return (await self._change(gateway_id, by, Action.GATEWAY_UPDATE, change))[1]

    async def delete(self, gateway_id: str, *, by: Actor) -> Message:
        """A soft delete: the gateway leaves lists, charges and logos. Its sealed secrets settle its payments until
        CredentialRetirement wipes them. Raises GATEWAY_BUILT_IN or GATEWAY_IN_USE."""

        def delete(gateway: Gateway, now: datetime) -> Gateway:
            return with_changes(gateway.delete(now), logo_path=None)

        before, _ = await self._change(gateway_id, by, Action.GATEWAY_DELETE, delete)
        await self._discard(before.logo_path)
        return Message("The gateway is deleted.")

    async def enable(self, gateway_id: str, *, by: Actor) -> AdminGatewaySummary:
        """ACTIVE for every active business at once, ending a drain; opt-outs stay. Raises GATEWAY_ALREADY_ENABLED."""
        return (await self._change(gateway_id, by, Action.GATEWAY_ENABLE, Gateway.enable))[1]

    async def disable(self, gateway_id: str, *, by: Actor) -> AdminGatewaySummary:
        """DRAINING for the drain window; raises GATEWAY_BUILT_IN or GATEWAY_NOT_ACTIVE."""
        disable = partial(Gateway.disable, drain=self.drain_window)
        return (await self._change(gateway_id, by, Action.GATEWAY_DISABLE, disable))[1]

    async def merchants(
        self, gateway_id: str, search: str | None, page: int, per_page: int
    ) -> tuple[list[AdminGatewayMerchant], int]:
        """A page of active businesses by name, configured or not, and their number."""
        async with self.store.begin() as tx:
            gateway = must_exist(await tx.gateways.get(gateway_id))
            found, total = await tx.gateway_choices.merchants(gateway_id, search, (page - 1) * per_page, per_page)
        return [AdminGatewayMerchant.of(merchant, gateway) for merchant in found], total

    @retry_on_conflict
    async def set_credentials(self, gateway_id: str, command: UpdateCredentials, *, by: Actor) -> ReplacedCredentials:
        """Replaces all credentials, or with `keep_others` the named ones, where an empty value removes one. Sealed for
        this gateway alone. Raises VALIDATION_ERROR on `keepOthers` where the others do not open, and what the bound
        provider's check and `ensure_apart` raise.

        A signing secret that was changed or removed proves events for OVERLAP.
        """
        async with self.store.begin() as tx:
            sealed, gateway = self.sealed, await self._lock(tx, gateway_id)
            before, credentials = sealed.current(gateway), parse_credentials(command.credentials)
            if command.keep_others:
                if not sealed.are_open(gateway):
                    said = "The others do not open: bring their encryption key back, or send all of them."
                    raise invalid("keepOthers", said)
                merged = {**before, **credentials}
                credentials = parse_credentials({name: value for name, value in merged.items() if value})
            provider = sealed.providers.get(gateway.slug)
            if provider is not None:
                provider.check_credentials(credentials)
            now = self.clock.now()
            sealed.ensure_apart(gateway, credentials, await tx.gateways.everything(), now)
            rotated = sealed.rotate(gateway, credentials, now)
            await tx.gateways.save(rotated)
            accounts = sealed.accounts(gateway), sealed.accounts(rotated)
            for environment, account in accounts[1].items():
                if account != accounts[0].get(environment):
                    # That the one before was refused says nothing of this one.
                    await tx.health.save(Health(gateway.slug, environment))
            changes = {**credentials_changed(before, credentials), **accounts_changed(*accounts)}
            await self.record(tx, by, Action.GATEWAY_SET_CREDENTIALS, gateway_id, changes)
            still = list(accounts[1].values()) or [""]
            left = await tx.attempts.count_open(gateway_id, OPEN_ATTEMPTS_MAX, still)
            return ReplacedCredentials(sorted(set(before) - set(credentials)), left)

    @retry_on_conflict
    async def end_overlap(self, gateway_id: str, *, by: Actor) -> EndedOverlap:
        """From now on only the signing secrets on file prove events; the replaced ones that proved events until now."""
        async with self.store.begin() as tx:
            gateway = await self._lock(tx, gateway_id)
            now = self.clock.now()
            ended = with_changes(gateway, replaced_secrets=None, replaced_secrets_until=None, updated_at=now)
            await tx.gateways.save(ended)
            changes = changes_of(gateway, ended, "replaced_secrets_until")
            await self.record(tx, by, Action.GATEWAY_END_OVERLAP, gateway_id, changes)
            replaced = self.sealed.proving_secrets(gateway, now)
            return EndedOverlap(
                ended_secrets=[
                    EndedSecret(environment=one.environment, valid_until=one.valid_until) for one in replaced
                ]
            )

    async def upload_logo(self, gateway_id: str, content: bytes, *, by: Actor) -> UploadedLogo:
        """Stores a PNG or JPEG exactly as sent and removes the previous file; raises VALIDATION_ERROR on `file`.

        The row names the new file only after that file is stored, and the old file is removed only after the row
        changed: a crash in between leaves an unused file, never a broken link.
        """
        kind = await self.images.kind(content)
        async with self.store.begin() as tx:
            must_exist(await tx.gateways.get(gateway_id))
        path = f"{gateway_id}/{self.entropy.hex(16)}.{kind}"
        await self.logos.put(path, content)

        def switch(gateway: Gateway, now: datetime) -> Gateway:
            return with_changes(gateway, logo_path=path, updated_at=now)

        try:
            before, after = await self._change(gateway_id, by, Action.GATEWAY_SET_LOGO, switch)
        except Refusal:
            await self._discard(path)
            raise
        await self._discard(before.logo_path)
        return UploadedLogo(logo_url=after.logo_url or "")

    async def logo(self, gateway_id: str) -> Logo:
        """The logo as sent; raises NOT_FOUND."""
        for _ in range(LOGO_READS):
            async with self.store.begin() as tx:
                path = must_exist(await tx.gateways.get(gateway_id)).logo_path
            if path is None:
                break
            content = await self.logos.get(path)
            if content is not None:
                return Logo(content, MEDIA_TYPES[path.rpartition(".")[2]])
        raise Refusal(ErrorCode.NOT_FOUND)

    @retry_on_conflict
    async def end_drains(self) -> int:
        """Stores drains that have ended, which every reader sees already; how many."""
        now = self.clock.now()
        async with self.store.begin() as tx:
            drained = await tx.gateways.draining(now)
            for gateway in drained:
                await self._end_drain(tx, gateway, gateway.as_of(now))
            return len(drained)

    @retry_on_conflict
    async def _change(
        self, gateway_id: str, by: Actor, action: Action, change: Callable[[Gateway, datetime], Gateway]
    ) -> tuple[Gateway, AdminGatewaySummary]:
        """The gateway before, and the summary after."""
        async with self.store.begin() as tx:
            before = await self._lock(tx, gateway_id)
            after = change(before, self.clock.now())
            if after is not before:
                await tx.gateways.save(after)
                await self.record_change(tx, by, action, before, after)
            return before, await _summary(tx, after)

    async def _discard(self, path: str | None) -> None:
        # The row no longer names the file: one that cannot be removed now is only unused.
        with suppress(Unavailable):
            if path is not None:
                await self.logos.delete(path)

    async def _lock(self, tx: Transaction, gateway_id: str) -> Gateway:
        """The locked gateway. An ended drain is stored first, as the database checks each transition by itself."""
        stored = must_exist(await tx.gateways.lock(gateway_id))
        gateway = stored.as_of(self.clock.now())
        if gateway is not stored:
            await self._end_drain(tx, stored, gateway)
        return gateway

    async def _end_drain(self, tx: Transaction, draining: Gateway, drained: Gateway) -> None:
        await tx.gateways.save(drained)
        await self.record_change(tx, clock("drains"), Action.GATEWAY_END_DRAIN, draining, drained)

    async def record_change(
        self, tx: Transaction, by: Actor, action: Action, before: Gateway | None, after: Gateway
    ) -> None:
        changes = changes_of(before, after, *_AUDITED)
        await self.record(tx, by, action, after.id, changes)


async def _summary(tx: Transaction, gateway: Gateway) -> AdminGatewaySummary:
    off = (await tx.gateway_choices.opt_outs(gateway.id)).get(gateway.id, 0)
    return AdminGatewaySummary.of(gateway, await tx.gateway_choices.active_businesses() - off)
