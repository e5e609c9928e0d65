"""The page's texts: amounts, dates and the payment's state, in plain English and without blame."""

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from payagg.application.schemas.checkout import CheckoutPage, PayerReason
from payagg.domain.gateway import UnavailableReason
from payagg.domain.payment import Status
from payagg.domain.simulator import SLOW

LAGOS = timezone(timedelta(hours=1), "Lagos")  # Nigeria has one time zone and no summer time

CARD_WORDS = {
    "success": "Succeeds",
    "declined": "Declined",
    "insufficient_funds": "Not enough funds",
    "reversed": "Reversed",
    "slow_success": f"Succeeds in {SLOW.seconds} s",
    "no_answer": "Never answers",
}
UNAVAILABLE = {
    UnavailableReason.NOT_CONFIGURED: "Not available for this payment",
    UnavailableReason.UNHEALTHY: "Not available right now. Try again in a few minutes",
    UnavailableReason.DISABLED: "Not available right now",
}
NO_OPTION = "No payment option is available right now. Nothing has been charged. Please try again in a few minutes."


class Result(NamedTuple):
    """A final state: `tone` chooses the colour, `sign` the drawing; `text` and `next` may name amount and merchant."""

    tone: str
    sign: str
    title: str
    text: str
    next: str


GOOD, BAD = "M14 25l7 7 14-15", "M17 17l14 14M31 17L17 31"
WARN, BACK = "M24 13v14M24 34v.5", "M19 15l-6 6 6 6M13 21h14a7 7 0 0 1 0 14h-6"
AGAIN = "To try again, go back to {merchant} and start a new payment."
SUCCESS = Result("good", GOOD, "Payment successful", "You paid {amount} to {merchant}.", "")
REVERSED = Result(
    "back",
    BACK,
    "Payment reversed",
    "The payment of {amount} to {merchant} was reversed.",
    "Your bank may need a few working days to show the money again. Questions? Ask {merchant} and give the reference.",
)
PAID_LATE = Result(
    "warn",
    WARN,
    "Your money came late",
    "{amount} arrived after this payment had ended.",
    "Do not pay again: ask {merchant} and give the reference.",
)
FAILURES = {
    PayerReason.EXPIRED: Result(
        "warn", WARN, "This payment link has expired", "The payment was not made in time.", AGAIN
    ),
    PayerReason.DECLINED: Result(
        "bad", BAD, "Payment declined", "The card was declined and the payment was not made.", AGAIN
    ),
    PayerReason.INSUFFICIENT_FUNDS: Result(
        "bad", BAD, "Not enough funds", "There was not enough money for this payment, so it was not made.", AGAIN
    ),
    PayerReason.EXPIRED_CARD: Result(
        "bad", BAD, "This card has expired", "The payment was not made. Use another card.", AGAIN
    ),
    PayerReason.CANCELLED: Result(
        "warn", WARN, "Payment cancelled", "The payment was cancelled before it was made.", AGAIN
    ),
    PayerReason.TIMED_OUT: Result("bad", BAD, "The bank did not answer in time", "The payment was not made.", AGAIN),
    None: Result("bad", BAD, "Payment not completed", "The payment did not go through.", AGAIN),
}


def result(page: CheckoutPage) -> Result:
    """The text of a final payment, with amount and merchant filled in; plain text."""
    payment = page.payment
    found = {Status.SUCCESS: SUCCESS, Status.REVERSED: REVERSED}.get(payment.status)
    found = found or (PAID_LATE if page.is_paid_late else FAILURES[payment.failure_reason])
    known = {"amount": naira(payment.amount), "merchant": payment.business_name}
    return found._replace(text=found.text.format_map(known), next=found.next.format_map(known))


def naira(kobo: int) -> str:
    """₦1,500.00 from integer kobo."""
    return f"₦{kobo // 100:,}.{kobo % 100:02d}"


def date(at: datetime) -> str:
    """22 November 2026, 11:52 (Lagos time)."""
    local = at.astimezone(LAGOS)
    return f"{local.day} {local:%B %Y, %H:%M} (Lagos time)"


def hour(at: datetime) -> str:
    """11:52, Lagos time."""
    return f"{at.astimezone(LAGOS):%H:%M}"
