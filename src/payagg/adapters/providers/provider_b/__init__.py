"""The Payaza protocol: no server call starts a charge; launch parameters go to the browser SDK. Money is naira."""

from collections.abc import Mapping

from payagg.adapters.providers import credentials as named
from payagg.adapters.providers.provider_b.client import PayazaClient
from payagg.adapters.providers.provider_b.launch import launch_url
from payagg.adapters.providers.provider_b.webhook import READ, is_signed, read_event
from payagg.adapters.providers.reduction import reduced
from payagg.adapters.providers.transport import Transport
from payagg.domain.attempt import Charge, HandOff, HandOffKind
from payagg.domain.report import ProviderReport
from payagg.domain.values import Environment

KEYS = ("PublicKey", "SigningSecret")
FOREIGN = {Environment.SANDBOX: ("PKLIVE", "SKLIVE"), Environment.LIVE: ("PKTEST", "SKTEST")}


class Payaza:
    """Credentials: `<env>PublicKey`, `<env>SigningSecret`; optional `<env>BaseUrl`, `<env>Enabled`, with `sandbox`
    or `live` for `<env>`. The secret only signs; the public key goes to the browser and queries."""

    def __init__(self, slug: str, transport: Transport) -> None:
        self._slug = slug
        self._transport = transport
        self._client = PayazaClient(transport)

    @property
    def slug(self) -> str:
        return self._slug

    @property
    def starts_alone(self) -> bool:
        return True

    @property
    def credential_names(self) -> tuple[str, ...]:
        return named.names(KEYS)

    def check_credentials(self, credentials: Mapping[str, str]) -> None:
        named.check(credentials, self._transport, KEYS, FOREIGN)
        named.ensure_apart(*(self.signing_secret(credentials, environment) for environment in Environment))

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return all(named.value(credentials, environment, name) for name in KEYS)

    def is_switched_on(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return named.is_switched_on(credentials, environment)

    async def start_charge(self, charge: Charge) -> HandOff:
        return HandOff(HandOffKind.SDK, launch_url(charge))

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        return await self._client.fetch(charge)

    def is_authentic(
        self, body: bytes, headers: Mapping[str, str], credentials: Mapping[str, str], environment: Environment
    ) -> bool:
        secret = named.value(credentials, environment, "SigningSecret")
        return is_signed(body, headers.get(f"x-{self._slug}-signature", ""), secret)

    def signing_secret(self, credentials: Mapping[str, str], environment: Environment) -> Mapping[str, str]:
        return named.alone(environment, "SigningSecret", named.value(credentials, environment, "SigningSecret"))

    def read_event(self, body: bytes) -> ProviderReport | None:
        return read_event(body)

    def reduced_event(self, body: bytes) -> bytes:
        return reduced(body, READ)
