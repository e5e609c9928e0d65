"""What the product calls of Payaza."""

from collections.abc import Mapping

from payagg.adapters.providers import credentials as named
from payagg.adapters.providers.adapter import Events, Keys, ProviderAdapter
from payagg.adapters.providers.provider_b.client import PayazaClient
from payagg.adapters.providers.provider_b.launch import launch_url
from payagg.adapters.providers.provider_b.status_map import BASE_URL
from payagg.adapters.providers.provider_b.webhook import READ, is_signed, read_event
from payagg.adapters.providers.transport import Transport
from payagg.domain.attempt import Charge, HandOff, HandOffKind
from payagg.domain.report import ProviderReport
from payagg.domain.values import Environment


class Payaza(ProviderAdapter):
    """Credentials: `<env>PublicKey`, `<env>SigningSecret`; optional `<env>BaseUrl`, `<env>Enabled`, with `sandbox`
    or `live` for `<env>`. The secret only signs; the public key goes to the browser and queries."""

    keys = Keys(
        ("PublicKey", "SigningSecret"),
        account="PublicKey",
        signing="SigningSecret",
        foreign={Environment.SANDBOX: ("PKLIVE", "SKLIVE"), Environment.LIVE: ("PKTEST", "SKTEST")},
    )
    starts_alone = True
    events = Events(is_signed, read_event, READ)
    base_url = BASE_URL

    def __init__(self, slug: str, transport: Transport) -> None:
        super().__init__(slug, transport)
        self._client = PayazaClient(transport)

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return all(named.value(credentials, environment, name) for name in self.keys.names)

    async def start_charge(self, charge: Charge) -> HandOff:
        return HandOff(HandOffKind.SDK, launch_url(charge))

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        return await self._client.fetch(charge)
