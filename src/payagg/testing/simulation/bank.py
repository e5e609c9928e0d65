"""The providers: what they do when called, what their payers do, and the events they send. One keeps a page of its own,
the other is opened by the payer's browser with nothing but what we gave it."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TypeVar

from payagg.application.provider_events import ProviderEventRoute
from payagg.domain.attempt import Charge, HandOff, HandOffKind, payment_reference
from payagg.domain.errors import Refusal
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment
from payagg.testing.simulation.ledger import BankCharge, Told
from payagg.testing.simulation.process import Life
from payagg.testing.simulation.world import Lost, SimulatedWorld
from payagg.testing.state_machine.scripted import ACCOUNT, ScriptedProvider

R = TypeVar("R")
PAGE, SDK = "alpha", "beta"
# The first acknowledges and is sent again for hours, the second is sent twice.
TRIES = {PAGE: (0.0, 60.0, 600.0, 3600.0, 7200.0), SDK: (0.0, 30.0)}
FAULTS = (FaultKind.SERVER_ERROR, FaultKind.MALFORMED, FaultKind.RATE_LIMITED, FaultKind.UNREACHABLE)


class Bank:
    """Both providers' side of a history."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world, self.ledger = world, world.ledger
        self._numbers = count(1)
        self._forms = {slug: ScriptedProvider(slug, Counter()) for slug in (PAGE, SDK)}
        self.launched: dict[str, Charge] = {}  # what payers' browsers were given to open the second provider with

    # --- what we call ------------------------------------------------------------------------------------------------

    def start(self, slug: str, charge: Charge) -> HandOff:
        """Begins a charge; raises ProviderFault."""
        self.world.tell(slug, f"is asked to begin {charge.reference}")
        fault = self._fault(slug)
        if fault is not None and fault is not FaultKind.MALFORMED:
            raise ProviderFault(fault)
        self._begin(slug, charge)
        if fault is not None:
            raise ProviderFault(fault)  # done, and the answer cannot be read
        return HandOff(HandOffKind.REDIRECT, f"https://{slug}.example/{charge.reference}")

    def fetch(self, slug: str, charge: Charge) -> ProviderReport:
        fault = self._fault(slug)
        if fault is not None:
            raise ProviderFault(fault)
        known = self.ledger.charges.get(charge.reference)
        if known is None or known.account != charge.credentials[ACCOUNT]:
            outcome, amount = Outcome.UNPAID, charge.amount
        else:
            outcome, amount = self._state(known)
        self.ledger.said[payment_reference(charge.reference)].add(outcome.value)
        self.world.tell(slug, f"says that {charge.reference} is {outcome.value}")
        return _report(charge.reference, outcome, amount, charge.environment)

    def _begin(self, slug: str, charge: Charge) -> None:
        known = self.ledger.charges.get(charge.reference)
        if known is not None:
            self.world.sometimes["a provider finds its reference taken"] += 1
            raise ProviderFault(FaultKind.DUPLICATE)
        payment = payment_reference(charge.reference)
        for earlier in self.ledger.charges_of(payment):
            if earlier.slug == slug and earlier.reference not in self.ledger.asked:
                self.world.fail("INV1", f"{charge.reference} is begun and nobody asked about {earlier.reference}")
        self.ledger.charges[charge.reference] = BankCharge(
            charge.reference, payment, slug, charge.credentials[ACCOUNT], charge.environment, charge.amount
        )

    def _fault(self, slug: str) -> FaultKind | None:
        if slug in self.world.unreachable:
            return FaultKind.UNREACHABLE
        chance = self.world.chance
        return chance.choice(FAULTS) if chance.happens(self.world.weather.provider_error) else None

    @staticmethod
    def _state(charge: BankCharge) -> tuple[Outcome, int]:
        if charge.taken is None:
            return (Outcome.FAILED if charge.is_declined else Outcome.UNPAID), charge.amount
        if charge.returned == charge.taken:
            return Outcome.REVERSED, charge.taken
        return Outcome.SUCCEEDED, charge.taken

    # --- what payers and banks do ------------------------------------------------------------------------------------

    def open(self, url: str) -> str:
        """A payer's browser opens a hand-off; the charge's reference. Where we called nobody it begins here."""
        reference = url.rpartition("#")[2].rpartition("/")[2]
        if reference not in self.ledger.charges:
            self._begin(SDK, self.launched[reference])
        return reference

    def pay(self, reference: str, amount: int) -> None:
        """The payer pays, once: a page that was paid takes nothing more."""
        charge = self.ledger.charges[reference]
        if charge.taken is not None:
            return
        if any(other.taken is not None for other in self.ledger.charges_of(charge.payment)):
            self.world.fail("INV1", f"{charge.payment} is paid twice")
        charge.taken, charge.taken_at = amount, self.world.clock.now()
        self.world.tell(charge.slug, f"takes {amount} kobo for {reference}")
        self._emit(charge, Outcome.SUCCEEDED, amount)

    def decline(self, reference: str) -> None:
        charge = self.ledger.charges[reference]
        charge.is_declined = charge.taken is None
        self.world.tell(charge.slug, f"declines a card for {reference}")

    def give_up(self, reference: str) -> None:
        """The provider ends a charge that was declined, and says so in an event."""
        charge = self.ledger.charges[reference]
        if charge.taken is None and charge.is_declined:
            self._emit(charge, Outcome.FAILED, charge.amount)

    def give_back(self, reference: str, part: bool) -> None:
        charge = self.ledger.charges[reference]
        if charge.taken is None or charge.returned:
            return
        charge.returned = charge.taken // 2 if part else charge.taken
        self.world.tell(charge.slug, f"gives {charge.returned} kobo back for {reference}")
        self._emit(charge, Outcome.REVERSED, charge.returned)

    def dispute(self, reference: str) -> None:
        charge = self.ledger.charges[reference]
        if charge.taken is not None:
            self._emit(charge, Outcome.DISPUTED, charge.taken)

    # --- events ------------------------------------------------------------------------------------------------------

    def _emit(self, charge: BankCharge, outcome: Outcome, amount: int) -> None:
        """Sends an event soon, late, twice or never, and again until it is acknowledged or the provider gives up."""
        world, weather = self.world, self.world.weather
        self.ledger.said[charge.payment].add(outcome.value)
        if world.chance.happens(weather.event_lost):
            world.tell(charge.slug, f"loses its event {outcome.value} of {charge.reference}")
            world.sometimes["a provider's event is lost"] += 1
            return
        form = self._forms[charge.slug]
        body = form.event(_report(charge.reference, outcome, amount, charge.environment), next(self._numbers))
        headers = {form.header: charge.account}
        for _ in range(2 if world.chance.happens(weather.event_twice) else 1):
            delay = world.chance.random() * 7200 if world.chance.happens(weather.event_late) else world.chance.random()
            world.send_out(self._deliver(charge, outcome, body, headers, delay))

    async def _deliver(
        self, charge: BankCharge, outcome: Outcome, body: bytes, headers: dict[str, str], delay: float
    ) -> None:
        world = self.world
        route = ProviderEventRoute(
            "receive", charge.slug, charge.environment, f"/{charge.slug}", refuses_malformed=True
        )
        await world.wait(delay)
        for pause in TRIES[charge.slug]:
            await world.wait(pause)
            try:
                await world.ask(
                    charge.slug,
                    f"event {outcome.value} of {charge.reference}",
                    lambda services: services.provider_events.receive(route, body, headers),
                )
            except (Lost, Refusal):
                continue
            told = Told(charge.reference, outcome.value)
            if told in self.ledger.told:
                world.sometimes["an event is acknowledged twice"] += 1
            self.ledger.told.append(told)
            return


def _report(reference: str, outcome: Outcome, amount: int, environment: Environment) -> ProviderReport:
    word = outcome.value.lower()
    return ProviderReport(reference, outcome, word, frozenset({amount}), environment=environment)


class BankClient(ScriptedProvider):
    """A Provider: one life's way to one of them."""

    def __init__(self, bank: Bank, life: Life, slug: str) -> None:
        super().__init__(slug, Counter(), starts_alone=slug == SDK)
        self._bank, self._life = bank, life

    async def start_charge(self, charge: Charge) -> HandOff:
        if self.starts_alone:
            self._bank.launched[charge.reference] = charge
            return HandOff(HandOffKind.SDK, f"https://shop.example/launch#{charge.reference}")
        return await self._call(f"begin {charge.reference}", partial(self._bank.start, self.slug, charge))

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        self._bank.ledger.asked.add(charge.reference)
        return await self._call(f"look up {charge.reference}", partial(self._bank.fetch, self.slug, charge))

    async def _call(self, what: str, serve: Callable[[], R]) -> R:
        self._life.point("at a call")
        with self._life.calling():
            answer = await self._life.world.call(self._life.name, f"{what} at {self.slug}", serve)
        self._life.point("at a call")
        return answer
