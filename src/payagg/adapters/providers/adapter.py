"""Shared by the adapters of real providers: credentials by environment, signed events, calls with their key."""

import hmac
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from payagg.adapters.providers.body_redaction import reduce_body
from payagg.adapters.providers.transport import BODY_MAX, ProviderAnswer, Transport
from payagg.domain.attempt import Charge, HandOff
from payagg.domain.errors import invalid
from payagg.domain.report import FaultKind, ProviderFault, ProviderReport
from payagg.domain.values import Environment

PREFIX = {Environment.SANDBOX: "sandbox", Environment.LIVE: "live"}
_HEADER_SAFE = re.compile(r"[\x21-\x7e]+")


def value(credentials: Mapping[str, str], environment: Environment, name: str) -> str:
    """The credential `sandbox<name>` or `live<name>`, stripped; empty when absent."""
    return credentials.get(PREFIX[environment] + name, "").strip()


class Keys(NamedTuple):
    """Credentials: `<env><name>` for each of `names`; optional `<env>BaseUrl` and `<env>Enabled`, with `sandbox` or
    `live` for `<env>`."""

    names: tuple[str, ...]
    account: str  # the one that opens the account
    signing: str  # the one that events are signed with
    foreign: Mapping[Environment, tuple[str, ...]]  # marks of keys that are the other environment's


class Events(NamedTuple):
    is_signed: Callable[[bytes, str, str], bool]  # body, signature, secret
    read: Callable[[bytes], ProviderReport | None]
    kept: frozenset[str]  # the names that `read` uses


class ProviderAdapter(ABC):
    keys: ClassVar[Keys]
    events: ClassVar[Events]
    base_url: ClassVar[str]
    starts_alone: ClassVar[bool]

    def __init__(self, slug: str, transport: Transport) -> None:
        self.slug = slug
        self._transport = transport

    @property
    def credential_names(self) -> tuple[str, ...]:
        return tuple(prefix + name for prefix in PREFIX.values() for name in (*self.keys.names, "BaseUrl", "Enabled"))

    def check_credentials(self, credentials: Mapping[str, str]) -> None:
        """Raises VALIDATION_ERROR on `credentials.<name>` for a key that carries the other environment's mark or cannot
        stand in a header, a base address that may not be called, or a switch that is no boolean; and where both
        environments sign with one secret: whoever has that of the sandbox could then write events of real money."""
        for environment, prefix in PREFIX.items():
            for name in self.keys.names:
                text = credentials.get(prefix + name)
                if text is None:
                    continue
                if not _HEADER_SAFE.fullmatch(text.strip()):
                    raise invalid(f"credentials.{prefix}{name}", "Must be printable characters without spaces.")
                if any(mark in text for mark in self.keys.foreign[environment]):
                    words = f"This key is not of the {environment.value} environment."
                    raise invalid(f"credentials.{prefix}{name}", words)
            base_url = credentials.get(f"{prefix}BaseUrl")
            if base_url is not None and not self._transport.is_allowed(base_url.strip()):
                raise invalid(f"credentials.{prefix}BaseUrl", "Must be an https URL of a public host, without a query.")
            switch = credentials.get(f"{prefix}Enabled")
            if switch is not None and switch.strip().lower() not in ("true", "false"):
                raise invalid(f"credentials.{prefix}Enabled", 'Must be "true" or "false".')
        sandbox, live = (self.signing_secret(credentials, environment) for environment in PREFIX)
        for name, secret in live.items():
            if secret in sandbox.values():
                raise invalid(f"credentials.{name}", "Must not be the signing secret of the SANDBOX environment.")

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return all(value(credentials, environment, name) for name in self.keys.names)

    @abstractmethod
    async def start_charge(self, charge: Charge) -> HandOff: ...

    @abstractmethod
    async def fetch_charge(self, charge: Charge) -> ProviderReport: ...

    def is_switched_on(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return value(credentials, environment, "Enabled").lower() != "false"

    def account(self, credentials: Mapping[str, str], environment: Environment) -> str | None:
        """The key cannot be derived from it, and no two accounts share it."""
        key, address = value(credentials, environment, self.keys.account), self._address(credentials, environment)
        return hmac.new(key.encode(), address.encode(), "sha256").hexdigest()[:32]

    def is_authentic(
        self, body: bytes, headers: Mapping[str, str], credentials: Mapping[str, str], environment: Environment
    ) -> bool:
        signature = headers.get(f"x-{self.slug}-signature", "")
        return self.events.is_signed(body, signature, self._secret(credentials, environment))

    def signing_secret(self, credentials: Mapping[str, str], environment: Environment) -> Mapping[str, str]:
        secret = self._secret(credentials, environment)
        return {PREFIX[environment] + self.keys.signing: secret} if secret else {}

    def read_event(self, body: bytes) -> ProviderReport | None:
        return self.events.read(body)

    def redact_event(self, body: bytes) -> bytes:
        return reduce_body(body, self.events.kept)

    async def send(
        self,
        credentials: Mapping[str, str],
        environment: Environment,
        method: str,
        path: str,
        content: bytes | None = None,
        body_max: int = BODY_MAX,
    ) -> ProviderAnswer:
        """One call with the environment's key; raises ProviderFault, for an address that may not be called as well."""
        address = self._address(credentials, environment)
        if not self._transport.is_allowed(address):
            raise ProviderFault(FaultKind.BAD_CREDENTIALS, "the base URL may not be called", is_sent=False)
        headers = self.headers(value(credentials, environment, self.keys.account))
        return await self._transport.exchange(method, address.rstrip("/") + path, headers, content, body_max)

    def headers(self, key: str) -> dict[str, str]:
        """Of each call: what shows the account's key."""
        return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def _address(self, credentials: Mapping[str, str], environment: Environment) -> str:
        return value(credentials, environment, "BaseUrl") or self.base_url

    def _secret(self, credentials: Mapping[str, str], environment: Environment) -> str:
        return value(credentials, environment, self.keys.signing)
