"""The part of the page that depends on the payment's state: choice, waiting or a result."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from markupsafe import Markup

from payagg.application.schemas.checkout import CheckoutGateway, CheckoutPage
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import Status
from payagg.domain.simulator import TEST_CARDS
from payagg.entrypoints.http.checkout_page import words
from payagg.entrypoints.http.checkout_page.markup import fill

SHORT = 60  # characters: a longer description is no heading
NOTHING = Markup("")
# Without scripts only this reload checks the payment again.
CHECK_AGAIN = Markup('<noscript><meta http-equiv="refresh" content="15"></noscript>\n')
CARDS = fill(
    "cards",
    cards=Markup("").join(
        fill(
            "card",
            number=number,
            shown=" ".join(number[start : start + 4] for start in range(0, len(number), 4)),
            words=words.CARD_WORDS[scenario],
        )
        for number, scenario in TEST_CARDS.items()
    ),
)


class Drawing(NamedTuple):
    title: str
    content: Markup
    head: Markup = NOTHING


def state(page: CheckoutPage, address: str, root: str) -> Drawing:
    """`address` is the page's own, for a payer who must open it elsewhere; `root` is the path before the API's."""
    match page.payment.status:
        case Status.INITIATED:
            return Drawing("Pay", _choose(page, address, root))
        case Status.PENDING:
            waiting = fill("waiting", address=address, way_home=_way_home(page, "Go back to", " quiet"))
            return Drawing("Waiting", waiting, CHECK_AGAIN)
        case _:
            return _result(page)


def _choose(page: CheckoutPage, address: str, root: str) -> Markup:
    payment, chosen = page.payment, first_choice(page.options, page.payment.gateway)
    return fill(
        "choose",
        until=words.hour(payment.expires_at),
        address=address,
        quiet=NOTHING if chosen is None else Markup(" hidden"),
        problem=words.NO_OPTION if chosen is None else "",
        options=NOTHING.join([option(one, one is chosen, root) for one in page.options]),
        cards=CARDS if any(option.slug == SANDBOX_SLUG and option.available for option in page.options) else NOTHING,
        label="Check again" if chosen is None else _label(chosen) or f"Pay {words.naira(payment.amount)}",
        way_home=_way_home(page, "Go back to", " quiet"),
    )


def first_choice(options: Sequence[CheckoutGateway], preferred: str | None = None) -> CheckoutGateway | None:
    """What the page has chosen when it opens, of what is available: the preferred, the default or the first."""
    usable = [option for option in options if option.available]
    return (
        next((option for option in usable if option.slug == preferred), None)
        or next((option for option in usable if option.is_default), None)
        or next(iter(usable), None)
    )


@lru_cache(maxsize=1024)  # payments show the same few
def option(option: CheckoutGateway, is_chosen: bool, root: str) -> Markup:
    """The heading is what the payer does, with the provider beside it; a long description is below the name."""
    does = (option.description or "").rstrip(".")
    what, by = (does, option.name) if 0 < len(does) <= SHORT else (option.name, does)
    reason = words.UNAVAILABLE[option.unavailable_reason] if option.unavailable_reason else ""
    return fill(
        "option",
        slug=option.slug,
        name=option.name,
        label=_label(option),
        marks=Markup(" checked") if is_chosen else NOTHING if option.available else Markup(" disabled"),
        what=what,
        words=_line("hint", by) + _line("hint reason", reason),
        logo=_logo(option, root),
    )


def _label(option: CheckoutGateway) -> str:
    """The button's text; empty when the payer pays on this page, as that depends on the amount."""
    return "" if option.slug == SANDBOX_SLUG else f"Continue to {option.name}"


def _line(kind: str, text: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format(kind, text) if text else NOTHING


def _logo(option: CheckoutGateway, root: str) -> Markup:
    if option.logo_url is None:
        return Markup('<span class="logo" aria-hidden="true">{}</span>').format(option.name[0].upper())
    return Markup('<img class="logo" src="{}{}" alt="" width="40" height="40">').format(root, option.logo_url)


def _result(page: CheckoutPage) -> Drawing:
    tone, sign, title, text, after = words.result(page)
    paid = page.payment.status is Status.SUCCESS
    receipt = actions = NOTHING
    if paid and page.settled_at is not None:
        method = fill("method", method=page.method) if page.method else NOTHING  # simulated without a page
        receipt = fill("receipt", date=words.date(page.settled_at), method=method)
        actions = fill("receipt_actions")
    way_home = _way_home(page, "Return to", "") + actions
    filled = fill(
        "result", tone=tone, sign=sign, title=title, text=text, next=after, receipt=receipt, way_home=way_home
    )
    return Drawing(title, filled)


def _way_home(page: CheckoutPage, before: str, kind: str) -> Markup:
    href, merchant = page.redirect_url, page.payment.business_name
    return fill("way_home", kind=kind, href=href, words=before, merchant=merchant) if href else NOTHING
