"""One payment's history, read once for the operators' printed timeline and the API's."""

from collections.abc import Sequence
from dataclasses import dataclass

from payagg.application.gateways.credentials import GatewayCredentials
from payagg.application.ports.store import Transaction
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import Attempt
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Transition
from payagg.domain.values import Environment
from payagg.domain.webhook import Delivery, Event


@dataclass(frozen=True)
class PaymentHistory:
    """Transitions and attempts of an old payment may be in the archive; `archived` names the part."""

    transitions: list[Transition]
    attempts: list[Attempt]
    archived: tuple[ArchivedPayment, ArchivePart] | None
    events: list[Event]
    deliveries: list[Delivery]


async def history_of(tx: Transaction, reference: str) -> PaymentHistory:
    transitions, attempts = await tx.payments.transitions(reference), await tx.attempts.of_payment(reference)
    return PaymentHistory(
        transitions, attempts, await tx.archived.find(reference), *await tx.webhook_events.of_payment(reference)
    )


async def gateways_of(tx: Transaction, attempts: Sequence[Attempt]) -> list[Gateway]:
    """The gateways of the attempts, deleted ones included."""
    made_through = {attempt.gateway_id for attempt in attempts if attempt.gateway_id is not None}
    found = [await tx.gateways.get_any(gateway_id) for gateway_id in sorted(made_through)]
    return [gateway for gateway in found if gateway is not None]


def accounts_of(
    gateways: Sequence[Gateway], sealed: GatewayCredentials, environment: Environment
) -> dict[str | None, str | None]:
    """The fingerprints of the provider accounts on file, by gateway id, to compare the charges' with."""
    return {gateway.id: sealed.accounts(gateway).get(environment) for gateway in gateways}
