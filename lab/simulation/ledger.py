"""What really happened, written down by those to whom it happened: clients, providers, merchants and their banks.

Nothing here is read from the product's store."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from payagg.domain.values import Environment


@dataclass
class Order:
    """What a merchant's server asked for; no two orders of a history have the same amount."""

    business_id: str
    environment: Environment
    amount: int
    key: str | None
    reference: str | None = None  # once it was acknowledged
    expires_at: datetime | None = None


@dataclass
class LaterFact:
    """What became of money that a payer paid: a refund, or a state of a dispute."""

    id: str | None
    state: str | None  # of a dispute
    kobo: int
    at: datetime
    is_told: bool = False  # its event was acknowledged

    @property
    def returned(self) -> int:
        return self.kobo if self.state in (None, "lost", "accepted") else 0


@dataclass
class SimulatedCharge:
    """One charge at a provider, under the reference that it was begun with."""

    reference: str
    payment: str  # the payment's reference
    slug: str
    account: str
    environment: Environment
    amount: int
    taken: int | None = None  # kobo that the payer paid
    taken_at: datetime | None = None
    later: list[LaterFact] = field(default_factory=list)
    transactions: dict[str, bool] = field(default_factory=dict)  # paid, and whether the event of each was acknowledged
    is_odd: bool = False  # look-ups bring a word that nobody knows
    even_at: datetime | None = None  # when they brought known ones again
    is_declined: bool = False
    is_mailed: bool = False  # its payer may pay though we sent nobody there

    @property
    def returned(self) -> int:
        """Kobo."""
        return sum(fact.returned for fact in self.later)


@dataclass(frozen=True)
class AcknowledgedEvent:
    """A fact about money that a provider's signed event told, and that we acknowledged."""

    reference: str  # the charge's
    outcome: str


@dataclass
class Ledger:
    orders: dict[int, Order] = field(default_factory=dict)  # by amount
    keys: dict[tuple[str, Environment, str], str] = field(default_factory=dict)  # the reference it was answered with
    charges: dict[str, SimulatedCharge] = field(default_factory=dict)  # by the charge's reference
    asked: set[str] = field(default_factory=set)  # charges that we tried to look up, by their references
    shown: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # hand-offs, by payment
    said: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by a provider, of a payment
    cards: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # test cards, by payment
    simulated: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # wished for, by payment
    finals: dict[str, str] = field(default_factory=dict)  # the final status somebody was told, by payment
    told: list[AcknowledgedEvent] = field(default_factory=list)
    moved_away: set[str] = field(default_factory=set)  # accounts that no gateway is pointed at any more
    back_at: dict[str, datetime] = field(default_factory=dict)  # when a gateway was pointed at the account again
    accepted: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # address: event ids
    heard: defaultdict[tuple[str, str], dict[int, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )  # address, payment: event id by sequence

    def charges_of(self, payment: str) -> list[SimulatedCharge]:
        return [charge for charge in self.charges.values() if charge.payment == payment]
