"""Ten false answers, each of which a good history must be refused with."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from lab.linear.check import Operation
from lab.linear.model import FAILED, FINAL, INITIATED, MERCHANT, PENDING, REVERSED, STRANGER, SUCCESS, Order, Told

SOON = 1e-6  # seconds
Wants = Callable[[Told], bool]


def _is_final(told: Told) -> bool:
    return told.status in FINAL


def _is_shown(told: Told) -> bool:
    return bool(told.amount)


def _other(told: Told) -> str:
    return FAILED if told.status != FAILED else REVERSED


# The call and answer that a fault follows at once, and the false one.
FAULTS: dict[str, tuple[str, Wants, Callable[[Told], tuple[str, Told]]]] = {
    "a stale read after an acknowledged write":
        ("process", lambda told: told.status == PENDING, lambda told: (MERCHANT, told._replace(status=INITIATED, gateway=""))),
    "a lost update":
        ("simulate", _is_final, lambda told: ("simulate", told._replace(status=_other(told)))),
    "a resurrected status": ("", _is_final, lambda told: (MERCHANT, told._replace(status=PENDING))),
    "a final status that changes": (MERCHANT, _is_final, lambda told: (MERCHANT, told._replace(status=_other(told)))),
    "a verify that goes back": ("verify", _is_final, lambda told: ("verify", told._replace(status=PENDING))),
    "a key reused for a second payment":
        ("initiate", _is_shown, lambda told: ("initiate", Told("200", INITIATED, "", f"{told.reference[:-6]}AAAAAA", told.amount))),
    "a key forgotten": ("initiate", _is_shown, lambda told: ("initiate", told._replace(code="201", status=INITIATED))),
    "a read of another's payment": (MERCHANT, _is_shown, lambda told: (STRANGER, told)),
    "an acknowledged payment that vanishes": ("initiate", _is_shown, lambda _: (MERCHANT, Told("PAYMENT_NOT_FOUND"))),
    "a double hand-off":
        ("process", lambda told: bool(told.sent_to), lambda told: ("process", told._replace(sent_to=f"{told.sent_to}2"))),
}  # fmt: skip
ASKED = {"simulate": SUCCESS, "process": ("provider_a", "")}


def planted(fault: str, order: Order) -> Order | None:
    """The order with the false answer in its history; None where it has nothing that the fault follows."""
    call, wants, false = FAULTS[fault]
    for before in order.history:
        if before.told is not None and call in ("", before.call) and wants(before.told):
            name, told = false(before.told)
            asked = told.status if name == "simulate" else ASKED.get(name)
            at = before.ended + SOON
            return replace(order, history=[*order.history, Operation(name, at, at + SOON, asked, told)])
    return None


def caught(orders: Sequence[Order]) -> list[str]:
    """The faults with which a history of these is refused."""
    broken = {fault: next(filter(None, (planted(fault, one) for one in orders)), None) for fault in FAULTS}
    return [fault for fault, order in broken.items() if order is not None and order.wrong()]
