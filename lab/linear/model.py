"""One order of a merchant, that is an idempotency key and its payment, written from the interface and the decisions.

Every call is one step of `after`. What never changes while a payment lives, its reference, amount and hand-off, needs
no order: all answers must agree on it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from lab.kit.buyer import Purchase
from lab.linear.check import Operation, longest_order

A, SIMULATOR = "provider_a", "sandbox"
INITIATED, PENDING, SUCCESS, FAILED, REVERSED = "INITIATED", "PENDING", "SUCCESS", "FAILED", "REVERSED"
FINAL = (SUCCESS, FAILED, REVERSED)
# Test cards, and what a payment with each becomes once it is verified.
CARDS = {"4242424242424242": SUCCESS, "4000000000000002": FAILED, "4000000000000259": REVERSED, "4000000000000119": ""}
MERCHANT, PAYER, STRANGER = "read", "public", "stranger"


class Told(NamedTuple):
    """An answer: a refusal's code, or 200 or 201 with what is shown. `sent_to` is the hand-off's address."""

    code: str
    status: str = ""
    gateway: str = ""
    reference: str = ""
    amount: int = 0
    sent_to: str = ""


class PaymentState(NamedTuple):
    """`status` is empty before there is a payment; `outcome` is that of the simulator's card."""

    status: str = ""
    gateway: str = ""
    outcome: str = ""


def after(state: PaymentState, call: Operation) -> Iterator[PaymentState]:
    """A Model: `call.told` holds a Told."""
    for code, reached in _steps(state, call):
        if call.told is None or _fits(call, code, reached):
            yield reached


def _fits(call: Operation, code: str, reached: PaymentState) -> bool:
    told: Told = call.told
    if told.code != code:
        return False
    return not told.status or (
        told.status == reached.status and (told.gateway == reached.gateway or call.call in ("initiate", "verify"))
    )


def _steps(state: PaymentState, call: Operation) -> Iterator[tuple[str, PaymentState]]:
    """What the call may be told, and the state then."""
    is_final = state.status in FINAL
    match call.call:
        case "initiate" if not state.status:
            yield "201", state._replace(status=INITIATED)
        case "initiate":
            yield "DUPLICATE_PAYMENT" if is_final else "200", state
        case "stranger":
            yield "PAYMENT_NOT_FOUND", state
        case _ if not state.status:
            yield "PAYMENT_NOT_FOUND", state
        case "process" if is_final:
            yield "PAYMENT_ALREADY_PROCESSED", state
        case "process" if state.status == PENDING:
            yield "200", state
        case "process":
            slug, outcome = call.asked
            yield "200", PaymentState(PENDING, slug, outcome)
            yield "GATEWAY_NOT_AVAILABLE", state
        case "simulate" if is_final:
            yield "PAYMENT_ALREADY_FINAL", state
        case "simulate":
            yield "200", state._replace(status=call.asked)
        case "report":  # of the provider or the simulator: by its event, or because somebody asks
            yield "", state._replace(status=call.asked) if state.status == PENDING else state
        case "verify" if state.status == PENDING and state.outcome:
            yield "200", state._replace(status=state.outcome)
            if call.asked:
                yield "200", state
        case _:
            yield "200", state


@dataclass
class Order:
    """`amount` in kobo is this order's alone, so that another's payment is recognised by it."""

    key: str
    amount: int
    history: list[Operation] = field(default_factory=list)
    reference: str = ""
    sent_to: str = ""
    is_paid: bool = False

    @property
    def purchase(self) -> Purchase:
        """As the judge of what is stored wants it."""
        slug = A if "/pay/" in self.sent_to else SIMULATOR
        return Purchase(self.key, self.amount, self.reference, slug, self.sent_to, self.is_paid)

    def wrong(self) -> list[str]:
        """Why no order of the calls explains the history."""
        told = [call.told for call in self.history if call.told is not None]
        for name, own in (("reference", None), ("sent_to", None), ("amount", self.amount)):
            facts = {getattr(one, name) for one in told} - {"", 0}
            if len(facts | ({own} if own else set())) > 1:
                return [f"{self.key} has as its {name} {' and '.join(map(str, sorted(facts)))}"]
        history = [_joined(call, self.history) for call in self.history]
        is_explained, order = longest_order(history, PaymentState(), after)
        return [] if is_explained else [f"{self.key}, {self.reference}:", *_lines(history, order)]


def _joined(call: Operation, history: Sequence[Operation]) -> Operation:
    """A verify beside another one may have joined its check, begun before the hand-off, and then tells what is stored."""
    is_beside = call.call == "verify" and any(
        one.call == "verify" and one is not call and one.began < call.ended and call.began < one.ended
        for one in history
    )
    return replace(call, asked="beside another") if is_beside else call


def _lines(history: Sequence[Operation], order: Sequence[Operation]) -> list[str]:
    def line(call: Operation) -> str:
        told: Any = " ".join(str(word) for word in call.told or ("no answer",) if word)
        return f"{call.began:.4f} to {call.ended:.4f} {call.call} {call.asked or ''}: {told}"

    rest = [call for call in history if call not in order and call.is_known]
    return [*map(line, order), "and then none of", *map(line, sorted(rest, key=lambda one: one.ended)[:5])]
