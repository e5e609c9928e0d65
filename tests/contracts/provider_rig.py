"""What the provider contract needs to know of one adapter and of the fake it talks to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from payagg_testing.builders import REFERENCE, a_payment

from payagg.application.ports import Provider
from payagg.domain.attempt import Charge, HandOff
from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import Book

AMOUNT = 150_050


@dataclass(frozen=True)
class Rig:
    """One adapter and the fake it talks to. `impatient` is the same adapter with a deadline short enough to wait for.

    `open` is what the payer's browser does with a hand-off before paying; `event` gives the body the provider would
    send about a charge now; `sign` the headers that prove a body.
    """

    provider: Provider
    impatient: Provider
    book: Book
    credentials: Mapping[str, str] = field(repr=False)
    header: str
    open: Callable[[HandOff], None]
    pay: Callable[[str, int], None]  # reference, fee on top
    decline: Callable[[str], None]
    event: Callable[[str], bytes]
    sign: Callable[[bytes, Environment], str]
    calls_to_start: bool  # whether starting a charge is a network call
    tells_environment: bool  # whether bodies say test or live
    fails_by_event: bool  # whether a decline sends an event

    def charge(self, environment: Environment = Environment.SANDBOX, reference: str = REFERENCE) -> Charge:
        return Charge(
            reference=reference,
            amount=AMOUNT,
            currency="NGN",
            environment=environment,
            credentials=self.credentials,
            checkout_url=f"https://pay.example/checkout/{REFERENCE}",
            customer_email="ada@example.com",
            customer_name="Ada Obi",
        )

    async def begun(self, environment: Environment = Environment.SANDBOX) -> Charge:
        """A charge whose payer has reached the provider."""
        charge = self.charge(environment)
        self.open(await self.provider.start_charge(charge))
        return charge


def the_payment(environment: Environment = Environment.SANDBOX) -> Payment:
    return a_payment(amount=AMOUNT, environment=environment)
