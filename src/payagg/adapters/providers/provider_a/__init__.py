"""The Paystack protocol: a server call starts a charge and returns the page where the payer pays. Money is kobo."""

from collections.abc import Mapping

from payagg.adapters.providers import credentials as named
from payagg.adapters.providers.provider_a.client import PaystackClient
from payagg.adapters.providers.provider_a.webhook import READ, is_signed, read_event
from payagg.adapters.providers.reduction import reduced
from payagg.adapters.providers.transport import Transport
from payagg.domain.attempt import Charge, HandOff
from payagg.domain.report import ProviderReport
from payagg.domain.values import Environment

KEYS = ("SecretKey", "WebhookSecret")
FOREIGN = {Environment.SANDBOX: ("_live_",), Environment.LIVE: ("_test_",)}


class Paystack:
    """Credentials: `<env>SecretKey`; optional `<env>WebhookSecret` (default: the secret key), `<env>BaseUrl`,
    `<env>Enabled`, with `sandbox` or `live` for `<env>`."""

    def __init__(self, slug: str, transport: Transport) -> None:
        self._slug = slug
        self._transport = transport
        self._client = PaystackClient(transport)

    @property
    def slug(self) -> str:
        return self._slug

    @property
    def starts_alone(self) -> bool:
        return False

    @property
    def credential_names(self) -> tuple[str, ...]:
        return named.names(KEYS)

    def check_credentials(self, credentials: Mapping[str, str]) -> None:
        named.check(credentials, self._transport, KEYS, FOREIGN)
        named.ensure_apart(*(self.signing_secret(credentials, environment) for environment in Environment))

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return bool(named.value(credentials, environment, "SecretKey"))

    def is_switched_on(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return named.is_switched_on(credentials, environment)

    async def start_charge(self, charge: Charge) -> HandOff:
        return await self._client.start(charge)

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        return await self._client.fetch(charge)

    def is_authentic(
        self, body: bytes, headers: Mapping[str, str], credentials: Mapping[str, str], environment: Environment
    ) -> bool:
        return is_signed(body, headers.get(f"x-{self._slug}-signature", ""), _secret(credentials, environment))

    def signing_secret(self, credentials: Mapping[str, str], environment: Environment) -> Mapping[str, str]:
        return named.alone(environment, "WebhookSecret", _secret(credentials, environment))

    def read_event(self, body: bytes) -> ProviderReport | None:
        return read_event(body)

    def reduced_event(self, body: bytes) -> bytes:
        return reduced(body, READ)


def _secret(credentials: Mapping[str, str], environment: Environment) -> str:
    """Paystack itself signs with the API secret key; a webhook secret of its own is for gateways in front of it."""
    own = named.value(credentials, environment, "WebhookSecret")
    return own or named.value(credentials, environment, "SecretKey")
