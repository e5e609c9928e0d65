"""Whether a provider accepts the credentials on file: one look-up there of a reference that does not exist."""

from datetime import timedelta

from payagg.application.accounts.audit import record
from payagg.application.counters import count
from payagg.application.gateways.payment_options import PaymentOptions
from payagg.application.must_exist import must_exist
from payagg.application.ports.outside import Entropy
from payagg.application.schemas.gateways import CredentialsTest
from payagg.domain.attempt import Charge
from payagg.domain.audit import Action, Actor
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.rate_limit import RateLimit
from payagg.domain.report import ProviderFault
from payagg.domain.values import CURRENCY, MIN_AMOUNT, Environment

TESTS = RateLimit(10)  # of one gateway in one environment


async def run_test(
    options: PaymentOptions, entropy: Entropy, gateway_id: str, environment: Environment, *, by: Actor
) -> CredentialsTest:
    """Charges nobody and says nothing about the provider's health. Raises NOT_FOUND, RATE_LIMITED or
    GATEWAY_ENVIRONMENT_NOT_CONFIGURED."""
    store, now = options.store, options.clock.now()
    async with store.begin() as tx:
        gateway = must_exist(await tx.gateways.get(gateway_id))
    provider, credentials = options.providers.get(gateway.slug), options.credentials(gateway)
    if provider is None or not provider.is_configured(credentials, environment):
        raise Refusal(ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED)
    until = await store.count_hit(f"credentials-test:{gateway_id}:{environment.value}", now, TESTS)
    if until is not None:
        raise Refusal(ErrorCode.RATE_LIMITED, retry_after=max(1, -(-(until - now) // timedelta(seconds=1))))
    async with store.begin() as tx:
        changes = {"environment": {"before": None, "after": environment.value}}
        await record(tx, entropy, now, by, Action.GATEWAY_TEST_CREDENTIALS, gateway_id, changes)
    unpaid = Charge(entropy.reference(now), MIN_AMOUNT, CURRENCY, environment, credentials, checkout_url="", now=now)
    fault = None
    try:
        await provider.fetch_charge(unpaid)
    except ProviderFault as raised:
        fault = raised.kind
    count("provider_calls", gateway.slug, "test_credentials", fault.value if fault else "ACCEPTED")
    return CredentialsTest(environment=environment, is_accepted=fault is None, fault=fault)
