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
class BankCharge:
    """One charge at a provider, under the reference that it was begun with."""

    reference: str
    payment: str  # the payment's reference
    slug: str
    account: str
    environment: Environment
    amount: int
    taken: int | None = None  # kobo that the payer paid
    taken_at: datetime | None = None
    returned: int = 0  # kobo
    is_disputed: bool = False
    is_declined: bool = False


@dataclass(frozen=True)
class Told:
    """A fact about money that a provider's signed event told, and that we acknowledged."""

    reference: str  # the charge's
    outcome: str


@dataclass
class Ledger:
    orders: dict[int, Order] = field(default_factory=dict)  # by amount
    keys: dict[tuple[str, Environment, str], str] = field(default_factory=dict)  # the reference it was answered with
    charges: dict[str, BankCharge] = field(default_factory=dict)  # by the charge's reference
    asked: set[str] = field(default_factory=set)  # charges that we tried to look up, by their references
    shown: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # hand-offs, by payment
    said: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by a provider, of a payment
    cards: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # test cards, by payment
    simulated: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # wished for, by payment
    finals: dict[str, str] = field(default_factory=dict)  # the final status somebody was told, by payment
    told: list[Told] = field(default_factory=list)
    accepted: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # address: event ids
    heard: defaultdict[tuple[str, str], dict[int, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )  # address, payment: event id by sequence

    def charges_of(self, payment: str) -> list[BankCharge]:
        return [charge for charge in self.charges.values() if charge.payment == payment]
