"""The providers: what they do when called, what their payers do, and the events they send. One keeps a page of its own,
the other is opened by the payer's browser with nothing but what we gave it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TypeVar

from lab.simulation.ledger import AcknowledgedEvent, LaterFact, SimulatedCharge
from lab.simulation.process import Life
from lab.simulation.world import Lost, SimulatedWorld
from payagg.application.ports.providers import ProviderEventRoute
from payagg.domain.attempt import Charge, ChargeFacts, HandOff, HandOffKind, payment_reference
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.report import NO_CHARGE, FaultKind, Outcome, ProviderFault, ProviderReport
from tests.support.state_machine.scripted import ACCOUNT, ScriptedProvider

R = TypeVar("R")
PAGE, SDK = "alpha", "beta"
# The first acknowledges and is sent again for hours, the second is sent twice.
TRIES = {PAGE: (0.0, 60.0, 600.0, 3600.0, 7200.0), SDK: (0.0, 30.0)}
ODD = "under_review"  # a word that no adapter knows
FAULTS = (FaultKind.SERVER_ERROR, FaultKind.MALFORMED, FaultKind.RATE_LIMITED, FaultKind.UNREACHABLE)


class Bank:
    """Both providers' side of a history."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world, self.ledger = world, world.ledger
        self._numbers = count(1)
        self._forms = {slug: ScriptedProvider(slug, Counter()) for slug in (PAGE, SDK)}
        self.launched: dict[str, Charge] = {}  # what payers' browsers were given to open the second provider with

    def start(self, slug: str, charge: Charge) -> HandOff:
        """Begins a charge; raises ProviderFault."""
        self.world.tell(slug, f"is asked to begin {charge.reference}")
        fault = self._fault(slug)
        if fault is not None and fault is not FaultKind.MALFORMED:
            raise ProviderFault(fault)
        self._begin(slug, charge)
        if not self.world.is_peace and self.world.chance.happens(0.15):
            self.world.send_out(self._be_paid_early(charge))
            fault = self.world.chance.choice((fault, FaultKind.MALFORMED))
        if fault is not None:
            raise ProviderFault(fault)  # done, and the answer cannot be read
        return HandOff(HandOffKind.REDIRECT, f"https://{slug}.example/{charge.reference}")

    async def _be_paid_early(self, charge: Charge) -> None:
        """The provider's own mail brings a payer to its page, perhaps before its answer has brought us the address."""
        self.ledger.charges[charge.reference].is_mailed = True
        await self.world.wait(self.world.chance.choice((0.0, 1.0, 20.0, 300.0, 1800.0)))
        self.pay(charge.reference, charge.amount)

    def fetch(self, slug: str, charge: Charge) -> ProviderReport:
        fault = self._fault(slug)
        if fault is not None:
            raise ProviderFault(fault)
        known, account = self.ledger.charges.get(charge.reference), charge.credentials[ACCOUNT]
        if known is None or known.account != account:
            return self._unknown(slug, charge, is_other=known is not None)
        outcome, amount = self._state(known)
        report = _report(known, outcome, amount)
        if known.is_odd:
            report = replace(report, outcome=Outcome.PENDING, word=ODD, is_known_status=False)
        self.ledger.said[known.payment].add(report.outcome.value)
        self.world.tell(slug, f"says that {charge.reference} is {report.word}")
        return report

    def _unknown(self, slug: str, charge: Charge, *, is_other: bool) -> ProviderReport:
        """No such charge, says an account: proof that nothing was paid only where it is the one that the payer would
        have paid to, and nobody called it before."""
        launched = self.launched.get(charge.reference)
        is_proof = launched is not None and launched.credentials[ACCOUNT] == charge.credentials[ACCOUNT]
        self.ledger.said[payment_reference(charge.reference)].add("UNPAID" if is_proof else NO_CHARGE)
        self.world.tell(slug, f"knows no charge {charge.reference}")
        if is_other:
            self.world.sometimes["another account is asked about a charge"] += 1
        return ProviderReport(charge.reference, Outcome.UNPAID, NO_CHARGE, environment=charge.environment)

    def _begin(self, slug: str, charge: Charge) -> None:
        if charge.reference in self.ledger.charges:
            raise ProviderFault(FaultKind.DUPLICATE)
        payment = payment_reference(charge.reference)
        for earlier in self.ledger.charges_of(payment):
            if earlier.slug == slug and earlier.reference not in self.ledger.asked:
                self.world.fail("INV1", f"{charge.reference} is begun and nobody asked about {earlier.reference}")
        self.ledger.charges[charge.reference] = SimulatedCharge(
            charge.reference, payment, slug, charge.credentials[ACCOUNT], charge.environment, charge.amount
        )

    def _fault(self, slug: str) -> FaultKind | None:
        if slug in self.world.unreachable:
            return FaultKind.UNREACHABLE
        chance = self.world.chance
        return chance.choice(FAULTS) if chance.happens(self.world.faults.provider_error) else None

    @staticmethod
    def _state(charge: SimulatedCharge) -> tuple[Outcome, int]:
        if charge.taken is None:
            return (Outcome.FAILED if charge.is_declined else Outcome.UNPAID), charge.amount
        if charge.returned == charge.taken:
            return Outcome.REVERSED, charge.taken
        return Outcome.SUCCEEDED, charge.taken

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
        paid = [other for other in self.ledger.charges_of(charge.payment) if other.taken is not None]
        if any(each.is_mailed for each in (charge, *paid)):
            self.world.sometimes["a payment is paid by two charges"] += bool(paid)
        elif paid:
            self.world.fail("INV1", f"{charge.payment} is paid twice")
        charge.taken, charge.taken_at = amount, self.world.clock.now()
        self.world.tell(charge.slug, f"takes {amount} kobo for {reference}")
        self._take(charge, amount)

    def pay_again(self, reference: str) -> None:
        """The provider takes the money of one reference a second time, under another id."""
        charge = self.ledger.charges[reference]
        if charge.taken is not None:
            self.world.sometimes["a reference is paid twice"] += 1
            self._take(charge, charge.taken)

    def _take(self, charge: SimulatedCharge, amount: int) -> None:
        id = f"{charge.reference}#{len(charge.transactions) + 1}"
        charge.transactions[id] = False
        report = replace(_report(charge, Outcome.SUCCEEDED, amount), facts=ChargeFacts(provider_id=id))
        self._emit(charge, report, lambda: charge.transactions.update({id: True}))

    def decline(self, reference: str) -> None:
        charge = self.ledger.charges[reference]
        charge.is_declined = charge.taken is None
        if {each.slug for each in self.ledger.charges.values() if each.is_declined} == {PAGE, SDK}:
            self.world.sometimes["both providers decline a card"] += 1
        self.world.tell(charge.slug, f"declines a card for {reference}")

    def give_up(self, reference: str) -> None:
        """The provider ends a charge that was declined, and says so in an event."""
        charge = self.ledger.charges[reference]
        if charge.taken is None and charge.is_declined:
            self._emit(charge, _report(charge, Outcome.FAILED, charge.amount))

    def give_back(self, reference: str, parts: int, *, named: bool) -> None:
        """All of it where `parts` is 1, else one of so many equal parts."""
        charge = self.ledger.charges[reference]
        kobo = charge.taken // parts if charge.taken is not None else 0
        if charge.taken is None or charge.returned + kobo > charge.taken:
            return
        id = f"refund {next(self._numbers)}" if named else None
        self.world.tell(charge.slug, f"gives {kobo} kobo back for {reference}")
        self._later(charge, Outcome.REVERSED, LaterFact(id, None, kobo, self.world.clock.now()))

    def dispute(self, reference: str, state: str, *, part: bool) -> None:
        """`opened`, or the end of what was opened: `won`, `lost`, `accepted`; the last two give the money back, and for
        the last there is the event of a refund, too. A part is of another amount than any other refund."""
        charge = self.ledger.charges[reference]
        kobo = charge.taken // 3 if part and charge.taken is not None else charge.taken
        if charge.taken is None or kobo is None or charge.returned + kobo > charge.taken:
            return
        if [fact.state for fact in charge.later if fact.state] != ([] if state == "opened" else ["opened"]):
            return  # one for each charge, and one end of it
        fact = LaterFact(f"dispute of {reference}", state, kobo, self.world.clock.now())
        self.world.tell(charge.slug, f"has a dispute {state} about {kobo} kobo of {reference}")
        self.world.sometimes[f"a dispute is {state}"] += 1
        self._later(charge, Outcome.REVERSED if fact.returned == charge.taken else Outcome.DISPUTED, fact)
        if state == "accepted":
            own = {"refundId": f"refund for the dispute of {reference}"}
            self._emit(charge, replace(_report(charge, Outcome.REVERSED, kobo), details=own))

    def _later(self, charge: SimulatedCharge, outcome: Outcome, fact: LaterFact) -> None:
        charge.later.append(fact)
        name = "refundId" if fact.state is None else "disputeId"
        own = {name: fact.id, "state": fact.state}
        details = {key: value for key, value in own.items() if value is not None}
        report = replace(_report(charge, outcome, fact.kobo), details=details)
        self._emit(charge, report, lambda: setattr(fact, "is_told", True))

    def turn_odd(self, reference: str) -> None:
        """From now on the provider uses a word for the charge that nobody knows."""
        charge = self.ledger.charges[reference]
        charge.is_odd = True
        report = replace(_report(charge, Outcome.PENDING, charge.amount), word=ODD, is_known_status=False)
        self._emit(charge, report)

    def turn_even(self, reference: str) -> None:
        charge = self.ledger.charges[reference]
        charge.is_odd, charge.even_at = False, self.world.clock.now()

    def _emit(self, charge: SimulatedCharge, report: ProviderReport, told: Callable[[], object] = lambda: None) -> None:
        """Sends an event soon, late, twice or never, and again until it is acknowledged or the provider gives up;
        `told` is called once it is acknowledged."""
        world, faults, outcome = self.world, self.world.faults, report.outcome
        self.ledger.said[charge.payment].add(outcome.value)
        if world.chance.happens(faults.event_lost):
            world.tell(charge.slug, f"loses its event {outcome.value} of {charge.reference}")
            world.sometimes["a provider's event is lost"] += 1
            return
        form = self._forms[charge.slug]
        body = form.event(report, next(self._numbers))
        headers = {form.header: charge.account}
        for _ in range(2 if world.chance.happens(faults.event_twice) else 1):
            delay = world.chance.random() * 7200 if world.chance.happens(faults.event_late) else world.chance.random()
            world.send_out(self._deliver(charge, outcome, body, headers, delay, told))

    async def _deliver(
        self,
        charge: SimulatedCharge,
        outcome: Outcome,
        body: bytes,
        headers: dict[str, str],
        delay: float,
        acknowledged: Callable[[], object],
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
            except Lost:
                continue
            except Refusal as refusal:
                if refusal.code is ErrorCode.INVALID_WEBHOOK_SIGNATURE and charge.account not in self.ledger.moved_away:
                    world.fail("INV8", f"an event of {charge.reference} is refused, though its account signed it")
                continue
            gateways = [g for g in world.store.state.gateways.values() if g.slug == charge.slug]
            if all(gateway.status.value == "DELETED" for gateway in gateways):
                world.sometimes["an event of a deleted gateway is proved"] += 1
                is_wiped = not any(gateway.has_credentials for gateway in gateways)
                world.sometimes["an event is proved whose gateway's credentials are wiped"] += is_wiped
            told = AcknowledgedEvent(charge.reference, outcome.value)
            if told in self.ledger.told:
                world.sometimes["an event is acknowledged twice"] += 1
            if outcome is not Outcome.PENDING:
                self.ledger.told.append(told)
            acknowledged()
            attempts = world.store.state.attempts.values()
            if any(a.provider_reference == charge.reference and a.hand_off is None for a in attempts):
                world.sometimes["an event comes before its charge's hand-off is kept"] += 1
            return


def _report(charge: SimulatedCharge, outcome: Outcome, amount: int) -> ProviderReport:
    """With the id of the first transaction, which is what a look-up by the reference finds."""
    facts = ChargeFacts(provider_id=next(iter(charge.transactions), None))
    word, own = outcome.value.lower(), charge.environment
    return ProviderReport(charge.reference, outcome, word, frozenset({amount}), environment=own, facts=facts)


class SimulatorClient(ScriptedProvider):
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
