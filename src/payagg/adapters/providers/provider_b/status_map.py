"""Payaza's words as data, and which of its naira figures prove a payment in full."""

import msgspec

from payagg.adapters.providers.amounts import kobo_of
from payagg.domain.report import Outcome

BASE_URL = "https://api.payaza.africa/live"  # `/live` is part of the address for test keys as well
UNIT = 100  # kobo in the naira Payaza speaks
# Any other word leaves the payment in flight.
OUTCOMES = {"Completed": Outcome.SUCCEEDED, "Failed": Outcome.FAILED}
ABSENT = msgspec.Raw(b"")


def received(amount: msgspec.Raw, fee: msgspec.Raw) -> frozenset[int]:
    """The kobo figures a received amount proves: itself, and itself less a fee that was put on top."""
    paid = kobo_of(amount, UNIT)
    if paid is None:
        return frozenset()
    on_top = kobo_of(fee, UNIT) or 0
    return frozenset({paid, paid - on_top}) if on_top < paid else frozenset({paid})
