"""A gateway's sealed data: its credentials, and signing secrets replaced within OVERLAP; and their end."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import msgspec
import structlog

from payagg.application.ports.outside import Vault
from payagg.application.ports.providers import Provider
from payagg.application.ports.store import Transaction
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.audit import Action, changes_of, clock
from payagg.domain.checks import with_changes
from payagg.domain.errors import invalid
from payagg.domain.gateway import (
    PROVES_FOR,
    Gateway,
    ReplacedSecret,
    UnavailableReason,
    after_rotation,
    replaced_context,
)
from payagg.domain.health import Health
from payagg.domain.values import Environment

_log = structlog.get_logger("payagg.gateway_credentials")
_CURRENT: Final = msgspec.json.Decoder(dict[str, str])
_REPLACED: Final = msgspec.json.Decoder(tuple[ReplacedSecret, ...])


@dataclass(frozen=True)
class GatewayCredentials:
    """Opens and seals both blobs. A blob that does not open counts as empty and is logged: a gateway sealed under a
    lost key must not stop payments through the others."""

    vault: Vault
    providers: Mapping[str, Provider]

    def current(self, gateway: Gateway) -> Mapping[str, str]:
        """The credentials on file; empty when there are none."""
        opened = self._unseal(gateway, gateway.credentials, gateway.id)
        return _CURRENT.decode(opened) if opened is not None else {}

    def are_open(self, gateway: Gateway) -> bool:
        """Whether nothing of it is sealed under a key that is missing. It may come back, so what counts as empty must
        not be written over with what is left."""
        sealed = ((gateway.credentials, gateway.id), (gateway.replaced_secrets, replaced_context(gateway.id)))
        return all(blob is None or self._unseal(gateway, blob, context) is not None for blob, context in sealed)

    def unready(self, gateway: Gateway, environment: Environment) -> UnavailableReason | None:
        """Why the gateway's configuration excludes it in this environment; the built-in has no processor."""
        provider = self.providers.get(gateway.slug)
        if provider is None:
            return UnavailableReason.NOT_CONFIGURED
        credentials = self.current(gateway)
        if not provider.is_switched_on(credentials, environment):
            return UnavailableReason.DISABLED
        if not provider.is_configured(credentials, environment):
            return UnavailableReason.NOT_CONFIGURED
        return None

    def reasons(
        self, gateway: Gateway, health: Iterable[Health], now: datetime
    ) -> dict[Environment, UnavailableReason | None]:
        """As `unready`, by environment, and whether the provider is paused there."""
        paused = {one.environment for one in health if one.gateway == gateway.slug and one.is_open(now)}
        unhealthy = dict.fromkeys(paused, UnavailableReason.UNHEALTHY)
        return {one: self.unready(gateway, one) or unhealthy.get(one) for one in Environment}

    def proving_secrets(self, gateway: Gateway, now: datetime) -> tuple[ReplacedSecret, ...]:
        """Replaced signing secrets that still prove events at `now`, newest first."""
        opened = self._unseal(gateway, gateway.replaced_secrets, replaced_context(gateway.id))
        kept = _REPLACED.decode(opened) if opened is not None else ()
        return tuple(one for one in kept if now < one.valid_until)

    def signing(self, gateway: Gateway, environment: Environment, now: datetime) -> list[Mapping[str, str]]:
        """The signing secrets that prove an event of `environment` at `now`, the one on file first; each as
        credentials that hold it alone."""
        own = self.providers[gateway.slug].signing_secret(self.current(gateway), environment)
        replaced = [one.credentials for one in self.proving_secrets(gateway, now) if one.environment is environment]
        return [own, *replaced] if own else replaced

    def ensure_apart(
        self, gateway: Gateway, credentials: Mapping[str, str], stored: Iterable[Gateway], now: datetime
    ) -> None:
        """Raises VALIDATION_ERROR for a SANDBOX signing secret that proves LIVE events of a gateway in `stored`,
        deleted or not: whoever has it could write events of real money."""
        own = self._secrets(gateway, credentials).get(Environment.SANDBOX, {})
        alike = [one for one in stored if own and one.slug == gateway.slug]
        live = {
            secret for one in alike for kept in self.signing(one, Environment.LIVE, now) for secret in kept.values()
        }
        for name, secret in own.items():
            if secret in live:
                raise invalid(f"credentials.{name}", "This secret still proves LIVE events.")

    def rotate(self, gateway: Gateway, credentials: Mapping[str, str], now: datetime) -> Gateway:
        """The gateway with `credentials` in place of all stored ones. Signing secrets that changed or were removed stay
        among the replaced ones for OVERLAP."""
        before = self._secrets(gateway, self.current(gateway))
        kept = after_rotation(self.proving_secrets(gateway, now), before, self._secrets(gateway, credentials), now)
        sealed = self.vault.seal(json.dumps(dict(credentials)).encode(), gateway.id)
        return with_changes(self._keeping(gateway, kept), credentials=sealed, updated_at=now)

    def retire(self, gateway: Gateway, now: datetime) -> Gateway:
        """A deleted gateway without its credentials: it can no longer charge or check, and its signing secrets prove
        events until PROVES_FOR after its deletion."""
        until = gateway.updated_at + PROVES_FOR
        own = self._secrets(gateway, self.current(gateway)).items()
        kept = [ReplacedSecret(environment, secret, until) for environment, secret in own if secret]
        older = [replace(one, valid_until=until) for one in self.proving_secrets(gateway, now)]
        return with_changes(self._keeping(gateway, [*kept, *older] if now < until else []), credentials=None)

    def accounts(self, gateway: Gateway) -> dict[Environment, str]:
        """The fingerprint of the provider account in each environment that has one."""
        provider, current = self.providers.get(gateway.slug), self.current(gateway)
        if provider is None:
            return {}
        configured = [one for one in Environment if provider.is_configured(current, one)]
        return {one: found for one in configured if (found := provider.account(current, one)) is not None}

    def _keeping(self, gateway: Gateway, kept: Sequence[ReplacedSecret]) -> Gateway:
        return with_changes(
            gateway,
            replaced_secrets=self.vault.seal(msgspec.json.encode(kept), replaced_context(gateway.id)) if kept else None,
            replaced_secrets_until=max((one.valid_until for one in kept), default=None),
        )

    def _secrets(self, gateway: Gateway, credentials: Mapping[str, str]) -> dict[Environment, Mapping[str, str]]:
        provider = self.providers.get(gateway.slug)
        if provider is None:
            return {}
        return {environment: provider.signing_secret(credentials, environment) for environment in Environment}

    def _unseal(self, gateway: Gateway, sealed: bytes | None, context: str) -> bytes | None:
        if sealed is None:
            return None
        try:
            return self.vault.open(sealed, context)
        except ValueError as error:
            _log.error("credentials do not open", gateway=gateway.slug, reason=str(error))
            return None


@dataclass(frozen=True)
class CredentialRetirement(UseCase):
    """Secrets kept for settlement alone: those of deleted gateways, and replaced signing secrets."""

    sealed: GatewayCredentials

    @retry_on_conflict
    async def wipe(self) -> int:
        """Wipes secrets past their end; the number of gateways changed. For the worker."""
        now = self.clock.now()
        wiped = 0
        async with self.store.begin() as tx:
            for gateway in await tx.gateways.to_wipe(now):
                is_open = await tx.attempts.count_open(gateway.id, 1) > 0
                changed = gateway.without_secrets(now, is_open)
                if gateway.has_credentials and not changed.has_credentials:
                    if now < gateway.updated_at + PROVES_FOR and not self.sealed.are_open(gateway):
                        continue
                    changed = self.sealed.retire(gateway, now)
                if changed is not gateway:
                    await self._wipe(tx, gateway, changed, now, has_open_attempts=is_open)
                    wiped += 1
        return wiped

    async def _wipe(
        self, tx: Transaction, before: Gateway, after: Gateway, now: datetime, *, has_open_attempts: bool
    ) -> None:
        """The one place where the clock ends secrets."""
        await tx.gateways.save(after)
        changes = changes_of(before, after, "has_credentials", "replaced_secrets_until")
        await self.record(tx, clock("settling"), Action.GATEWAY_WIPE_SECRETS, after.id, changes)
        _log.info(
            "gateway secrets wiped",
            gateway_id=after.id,
            slug=after.slug,
            what="credentials" if before.has_credentials and not after.has_credentials else "replaced signing secrets",
            has_open_attempts=has_open_attempts,
        )
