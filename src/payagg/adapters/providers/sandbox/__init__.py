"""The simulator: a provider whose processor is the test card the payer typed."""

from collections.abc import Mapping

from payagg.adapters.providers.body_redaction import NOTHING
from payagg.domain.attempt import Charge, HandOff, HandOffKind
from payagg.domain.gateway import SANDBOX_SLUG, simulator_allowed
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.simulator import outcome_of, time_since_hand_off
from payagg.domain.values import Environment


class Simulator:
    """Answers at once from the attempt's scenario. It has no network, no credentials and no events."""

    slug = SANDBOX_SLUG

    @property
    def starts_alone(self) -> bool:
        return True

    @property
    def credential_names(self) -> tuple[str, ...]:
        return ()

    def check_credentials(self, credentials: Mapping[str, str]) -> None:
        """There are none to check."""

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return simulator_allowed(environment)

    def is_switched_on(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return simulator_allowed(environment)

    def account(self, credentials: Mapping[str, str], environment: Environment) -> str | None:
        return None  # it has none

    async def start_charge(self, charge: Charge) -> HandOff:
        return HandOff(HandOffKind.SIMULATOR, charge.checkout_url)

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        if charge.handed_off_at is None:
            outcome, reason = Outcome.UNPAID, None  # nobody was sent here, so no card can have paid
        else:
            outcome, reason = outcome_of(charge.scenario or "", time_since_hand_off(charge.handed_off_at, charge.now))
        return ProviderReport(
            provider_reference=charge.reference,
            outcome=outcome,
            word=charge.scenario or "",
            amounts=frozenset({charge.amount}),
            currency=charge.currency,
            environment=charge.environment,
            reason=reason,
        )

    def is_authentic(
        self, body: bytes, headers: Mapping[str, str], credentials: Mapping[str, str], environment: Environment
    ) -> bool:
        return False

    def signing_secret(self, credentials: Mapping[str, str], environment: Environment) -> Mapping[str, str]:
        return {}

    def read_event(self, body: bytes) -> ProviderReport | None:
        raise ProviderFault(FaultKind.MALFORMED, "the simulator sends no events")

    def redact_event(self, body: bytes) -> bytes:
        return NOTHING
