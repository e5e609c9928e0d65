"""What the product calls of Paystack."""

from collections.abc import Mapping

from payagg.adapters.providers import credentials as named
from payagg.adapters.providers.adapter import Events, Keys, ProviderAdapter
from payagg.adapters.providers.provider_a.client import PaystackClient
from payagg.adapters.providers.provider_a.status_map import BASE_URL
from payagg.adapters.providers.provider_a.webhook import READ, is_signed, read_event
from payagg.adapters.providers.transport import Transport
from payagg.domain.attempt import Charge, HandOff
from payagg.domain.report import ProviderReport
from payagg.domain.values import Environment


class Paystack(ProviderAdapter):
    """Credentials: `<env>SecretKey`; optional `<env>WebhookSecret` (default: the secret key), `<env>BaseUrl`,
    `<env>Enabled`, with `sandbox` or `live` for `<env>`."""

    keys = Keys(
        ("SecretKey", "WebhookSecret"),
        account="SecretKey",
        signing="WebhookSecret",
        foreign={Environment.SANDBOX: ("_live_",), Environment.LIVE: ("_test_",)},
    )
    starts_alone = False
    events = Events(is_signed, read_event, READ)
    base_url = BASE_URL

    def __init__(self, slug: str, transport: Transport) -> None:
        super().__init__(slug, transport)
        self._client = PaystackClient(transport)

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return bool(named.value(credentials, environment, "SecretKey"))

    async def start_charge(self, charge: Charge) -> HandOff:
        return await self._client.start(charge)

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        return await self._client.fetch(charge)

    def _secret(self, credentials: Mapping[str, str], environment: Environment) -> str:
        """Paystack itself signs with the API secret key; a webhook secret of its own is for gateways in front of it."""
        return super()._secret(credentials, environment) or named.value(credentials, environment, "SecretKey")
