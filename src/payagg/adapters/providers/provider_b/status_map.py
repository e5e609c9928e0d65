"""Payaza's statuses as data, and which of its naira figures prove a payment in full."""

import msgspec

from payagg.adapters.providers.values import identity, kobo_of, word
from payagg.domain.attempt import ChargeFacts
from payagg.domain.report import Outcome

BASE_URL = "https://api.payaza.africa/live"  # `/live` is part of the address for test keys as well
UNIT = 100  # kobo in the naira Payaza speaks
# Any other status leaves the payment in flight. `Initialized` only means that the popup was opened, and stays when the
# payer leaves it; no account number outlives the checkout window.
OUTCOMES = {"Completed": Outcome.SUCCEEDED, "Failed": Outcome.FAILED, "Initialized": Outcome.UNPAID}
# Statuses of a payment in progress or given up; a status in neither table is unknown.
IN_FLIGHT = frozenset({"Pending", "Processing", "Cancelled"})
ABSENT = msgspec.Raw(b"")


def is_known(status: object) -> bool:
    return isinstance(status, str) and (status in OUTCOMES or status in IN_FLIGHT)


def facts_of(
    provider_id: object, amount: msgspec.Raw, fee: msgspec.Raw, channel: object, outcome: Outcome
) -> ChargeFacts:
    """What it says beside the status; an amount stands there before anything was paid, and counts only then. Its dates
    have no zone and are left alone."""
    is_paid = outcome is Outcome.SUCCEEDED
    return ChargeFacts(
        provider_id=identity(provider_id),
        channel=word(channel) or None,
        fee=kobo_of(fee, UNIT) if is_paid else None,
        received=kobo_of(amount, UNIT) if is_paid else None,
    )


def amounts_received(amount: msgspec.Raw, fee: msgspec.Raw) -> frozenset[int]:
    """The kobo figures a received amount proves: itself, and itself less a fee that was put on top."""
    paid = kobo_of(amount, UNIT)
    if paid is None:
        return frozenset()
    on_top = kobo_of(fee, UNIT) or 0
    return frozenset({paid, paid - on_top}) if on_top < paid else frozenset({paid})
