"""What the adapters of real providers share: credentials named by environment, one of which signs the events."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from payagg.adapters.providers import credentials as named
from payagg.adapters.providers.reduction import reduced
from payagg.adapters.providers.transport import Transport
from payagg.domain.report import ProviderReport
from payagg.domain.values import Environment


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
    kept: Any


class ProviderAdapter:
    keys: ClassVar[Keys]
    events: ClassVar[Events]
    base_url: ClassVar[str]

    def __init__(self, slug: str, transport: Transport) -> None:
        self._slug = slug
        self._transport = transport

    @property
    def slug(self) -> str:
        return self._slug

    @property
    def credential_names(self) -> tuple[str, ...]:
        return named.names(self.keys.names)

    def check_credentials(self, credentials: Mapping[str, str]) -> None:
        named.check(credentials, self._transport, self.keys.names, self.keys.foreign)
        named.ensure_apart(*(self.signing_secret(credentials, environment) for environment in Environment))

    def is_switched_on(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return named.is_switched_on(credentials, environment)

    def account(self, credentials: Mapping[str, str], environment: Environment) -> str | None:
        return named.account(credentials, environment, self.keys.account, self.base_url)

    def is_authentic(
        self, body: bytes, headers: Mapping[str, str], credentials: Mapping[str, str], environment: Environment
    ) -> bool:
        signature = headers.get(f"x-{self._slug}-signature", "")
        return self.events.is_signed(body, signature, self._secret(credentials, environment))

    def signing_secret(self, credentials: Mapping[str, str], environment: Environment) -> Mapping[str, str]:
        return named.alone(environment, self.keys.signing, self._secret(credentials, environment))

    def read_event(self, body: bytes) -> ProviderReport | None:
        return self.events.read(body)

    def reduced_event(self, body: bytes) -> bytes:
        return reduced(body, self.events.kept)

    def _secret(self, credentials: Mapping[str, str], environment: Environment) -> str:
        return named.value(credentials, environment, self.keys.signing)
