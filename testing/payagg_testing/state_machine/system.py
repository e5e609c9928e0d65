"""What a payment machine drives and looks at: the interface that every system under it has."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from payagg.domain.payment import Payment, Transition
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import Environment


@dataclass(frozen=True)
class Said:
    """What a provider says of a charge: of the WHOLE amount, of HALF of it, or of one kobo MORE; with the id of a
    refund or a dispute where it is about one, and the state of a dispute."""

    outcome: Outcome
    share: str = "WHOLE"
    id: str | None = None
    state: str | None = None

    def kobo(self, amount: int) -> int:
        """Of a charge over `amount`."""
        return {"WHOLE": amount, "HALF": amount // 2, "MORE": amount + 1}[self.share]

    @property
    def details(self) -> dict[str, str]:
        name = "refundId" if self.outcome is Outcome.REVERSED else "disputeId"
        own = {name: self.id, "state": self.state}
        return {key: value for key, value in own.items() if value is not None}

    def report(self, reference: str, amount: int) -> ProviderReport:
        """About a charge of `amount` kobo under `reference`."""
        word, amounts = self.outcome.value.lower(), frozenset({self.kobo(amount)})
        return ProviderReport(reference, self.outcome, word, amounts, details=self.details)


SILENCE = Said(Outcome.PENDING)


@dataclass(frozen=True)
class Facts:
    """Everything a system says of one payment now; `payment` is as any reader sees it at this instant."""

    payment: Payment
    transitions: tuple[Transition, ...]  # as made durable
    events: tuple[tuple[int, str], ...]  # sequence and type
    delivered: tuple[int, ...]  # sequences with a delivery to the one subscribed endpoint
    hand_offs: tuple[str, ...]
    charges: int  # started at a provider and not refused by it
    last_decline: str | None
    anomalies: frozenset[str] = field(compare=False)


@dataclass(frozen=True)
class GatewayFacts:
    """Everything a system says of its gateways now."""

    listed: tuple[tuple[str, str], ...]  # slug and status, as an administrator sees them, by slug
    offered: tuple[str, ...]  # slugs, as the business sees them, sorted
    with_credentials: tuple[tuple[str, int], ...]  # slug and number of all that were ever created, deleted ones too


class PaymentSystem(Protocol):
    """What is driven: one business with LIVE and SANDBOX payments, and one gateway under each slug, ACTIVE at first.
    Refusals are raised as `Refusal`."""

    def now(self) -> datetime: ...

    def wait(self, time: timedelta) -> None: ...

    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        """The reference of a new payment, or of the open one that holds the key."""

    def initiate_test(self, amount: int, key: str | None) -> str:
        """As `initiate`, from the dashboard's test-payment tool."""

    def set_standing(self, is_active: bool) -> None:
        """Whether the business may take new money."""

    def move_gateway(self, slug: str, move: str) -> None:
        """CREATE (with credentials for an account of its own), or ENABLE, DISABLE, DELETE or ROTATE the newest of the
        slug: the last gives it the credentials of another account."""

    def options(self, reference: str) -> frozenset[tuple[str, bool]]:
        """The slugs that the payer of a payment sees, and whether each can be chosen."""

    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        """The hand-off's URL. `refused`: the provider, should it be called, certainly refuses to start a charge."""

    def report(self, reference: str, number: int, gateway: str, said: Said, environment: Environment) -> str:
        """What a provider's signed report about attempt `number` did: MOVED, UNCHANGED, ANOMALY or MISMATCH.

        It comes from the account that holds that attempt's charge, or from the newest of the gateway's where none does.
        """

    def verify(self, reference: str, said: Said) -> str:
        """The status after asking; `said` is what a provider (not the simulator) will say of a charge of its account;
        of any other, that it knows no such charge."""

    def simulate(self, reference: str, outcome: str) -> None: ...

    def sweep(self) -> None:
        """The worker's part that asks nobody: payments that expired, drains that ended, secrets that have served."""

    def reconcile(self, said: Said) -> None:
        """The worker asks about all that is due, without any spread in time; `said` as for `verify`."""

    def facts(self, reference: str) -> Facts: ...

    def gateway_facts(self) -> GatewayFacts: ...

    def close(self) -> None: ...
