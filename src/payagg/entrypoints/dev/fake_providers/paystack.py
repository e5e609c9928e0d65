"""A fake Paystack: initialize, verify, its own pay page, signed events. Shapes after the vendor's description."""

import hashlib
import hmac
import re
from datetime import datetime
from html import escape
from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar import Litestar, Request, Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect

from payagg.entrypoints.dev.fake_providers.book import OPENED_AT, Book, FakeCharge, FakeReturn, Outgoing
from payagg.entrypoints.dev.fake_providers.steering import application, json, naira, page

REFERENCE = re.compile(r"[A-Za-z0-9.=-]{1,100}")
REFUSED_KEY = (401, b'{"status":false,"message":"Invalid key"}')
DECLINES = {"decline": "Declined", "insufficient": "Insufficient Funds"}


class FakePaystack:
    """The provider's side of a journey. `header` is where the deployment looks for the signature."""

    def __init__(self, base_url: str = "", header: str = "x-provider_a-signature", book: Book | None = None) -> None:
        self.base_url = base_url  # filled in by `serve_fakes` when the port is known
        self.header = header
        self.broken: list[Any] = []  # at the end of each page of a list: what nobody can read
        self.page_max = 100  # items of a list's page, however many are asked for
        self.min_amount = 1  # kobo; smaller charges are refused, as providers do with amounts they find too small
        self.book = book or Book()

    # --- what payers and the provider's operators do -----------------------------------------------------------------

    def pay(self, reference: str, *, fees: int = 0) -> None:
        """The payer pays; `fees` are put on top, as where the payer bears them. Paying twice is refused."""
        charge = self.book.charges[reference]
        if charge.status != "success":
            charge.status, charge.fees, charge.paid = "success", fees, charge.paid + 1
            self.book.emit(self.event(charge))

    def decline(self, reference: str, reason: str = "Declined") -> None:
        """The card is declined. Paystack sends no event for that; only verify shows it."""
        charge = self.book.charges[reference]
        charge.status, charge.reason = "failed", reason

    def abandon(self, reference: str) -> None:
        self.book.charges[reference].status = "abandoned"

    def refund(self, reference: str, amount: int | None = None, *, silently: bool = False) -> None:
        """A refund of `amount` kobo, all of it by default; only a full one makes the transaction `reversed`.
        `silently`: without its event."""
        charge = self.book.charges[reference]
        part = charge.amount if amount is None else amount
        if part == charge.amount:
            charge.status = "reversed"
        view = self.book.view_of(charge)
        self.book.returns.append(FakeReturn(self.book.ids(), charge, part, "processed", False, self.book.now()))
        data = {
            "status": "processed",
            "transaction_reference": view.reference,
            "refund_reference": None,
            "amount": str(self.book.alter.get("amount", part)),  # a string in this event, a number in others
            "currency": view.currency,
            "domain": view.mode,
        }
        if not silently:
            self.book.emit(self._sign("refund.processed", data, charge))

    def dispute(self, reference: str, *, silently: bool = False) -> None:
        """The payer disputes the charge at the bank. `silently`: without its event."""
        charge = self.book.charges[reference]
        opened = FakeReturn(self.book.ids(), charge, charge.amount, "awaiting-merchant-feedback", True, self.book.now())
        self.book.returns.append(opened)
        if not silently:
            self.book.emit(self._sign("charge.dispute.create", self.return_row(opened), charge))

    # --- what it tells -----------------------------------------------------------------------------------------------

    def transaction(self, charge: FakeCharge) -> dict[str, Any]:
        """The `data` of verify and of charge events."""
        view = self.book.view_of(charge)
        paid = view.status == "success"
        return {
            "id": view.id,
            "domain": view.mode,
            "status": view.status,
            "reference": view.reference,
            "receipt_number": None,
            "amount": view.amount + view.fees,
            "message": None,
            "gateway_response": "Successful" if paid else view.reason or "The transaction was not completed",
            "paid_at": _instant(OPENED_AT) if paid else None,
            "created_at": _instant(view.created_at),
            "channel": "card",
            "currency": view.currency,
            "ip_address": "127.0.0.1",
            "metadata": "",
            "log": None,
            "fees": view.fees or None,
            "fees_split": None,
            "authorization": {},
            "customer": {"id": 1, "email": view.email, "customer_code": "CUS_fake", "metadata": None},
            "plan": None,
            "split": {},
            "order_id": None,
            "requested_amount": view.amount,
            "pos_transaction_data": None,
            "source": None,
            "subaccount": {},
        }

    def return_row(self, one: FakeReturn) -> dict[str, Any]:
        """A refund or dispute as its list has it. A refund names its transaction by number alone."""
        facts = {
            "id": one.id,
            "status": one.status,
            "currency": one.charge.currency,
            "domain": one.charge.mode,
            "createdAt": _instant(one.created_at),
        }
        if not one.is_dispute:
            about = {"transaction": one.charge.id, "dispute": one.of_dispute}
            return facts | about | {"amount": one.amount, "deducted_amount": one.amount}
        transaction = self.transaction(one.charge)
        return facts | {"refund_amount": one.amount, "resolution": None, "transaction": transaction}

    def signature(self, body: bytes, key: str) -> str:
        return hmac.new(key.encode(), body, hashlib.sha512).hexdigest()

    def event(self, charge: FakeCharge, name: str = "charge.success") -> Outgoing:
        """A charge event as sent, about the charge's present state."""
        return self._sign(name, self.transaction(charge), charge)

    def _sign(self, event: str, data: dict[str, Any], charge: FakeCharge) -> Outgoing:
        body = msgspec.json.encode({"event": event, "data": data})
        headers = {"Content-Type": "application/json", self.header: self.signature(body, charge.key)}
        return Outgoing(charge.mode, body, headers)


def fake_paystack(fake: FakePaystack) -> Litestar:
    """The ASGI application over `fake`."""
    book = fake.book

    @post("/transaction/initialize", status_code=200)
    async def initialize(request: Request[Any, Any, Any]) -> Response[bytes]:
        key = _key(request)
        if key is None:
            return _refusal(401, "Invalid key")
        try:
            wish = msgspec.json.decode(await request.body(), type=dict[str, Any])
        except msgspec.MsgspecError:
            return _refusal(400, "Invalid JSON", "invalid_params")
        reference, email = wish.get("reference") or f"fake{book.ids()}", wish.get("email")
        book.calls.append(("initialize", str(reference)))
        if not isinstance(email, str) or "@" not in email:
            return _refusal(400, "Invalid Email Address Passed", "missing_params")
        amount = int(wish["amount"]) if re.fullmatch(r"[1-9][0-9]{0,15}", str(wish.get("amount"))) else 0
        if amount < fake.min_amount:
            return _refusal(400, "Invalid Amount Sent", "invalid_amount")
        if not isinstance(reference, str) or not REFERENCE.fullmatch(reference):
            return _refusal(400, "Invalid characters in transaction reference", "invalid_params")
        known = book.charges.get(reference)
        if known is not None:
            known.opened += 1
            return _refusal(400, "Duplicate Transaction Reference", "duplicate_reference")
        metadata = wish.get("metadata")
        book.charges[reference] = FakeCharge(
            reference=reference,
            amount=amount,
            currency=wish.get("currency") or "NGN",
            mode=_mode(key),
            id=book.ids(),
            status="abandoned",
            key=key,
            created_at=book.now(),
            email=email,
            callback_url=wish.get("callback_url") or "",
            cancel_url=metadata.get("cancel_action", "") if isinstance(metadata, dict) else "",
        )
        code = f"ac{book.charges[reference].id}"
        data = {"authorization_url": f"{fake.base_url}/pay/{code}", "access_code": code, "reference": reference}
        return json({"status": True, "message": "Authorization URL created", "data": data})

    @get("/transaction/verify/{reference:str}")
    async def verify(request: Request[Any, Any, Any], reference: FromPath[str]) -> Response[bytes]:
        key = _key(request)
        if key is None:
            return _refusal(401, "Invalid key")
        book.calls.append(("verify", reference))
        charge = book.charges.get(reference)
        if charge is None or charge.key != key:
            return _refusal(404, "Transaction reference not found.", "transaction_not_found")
        return json({"status": True, "message": "Verification successful", "data": fake.transaction(charge)})

    @get(["/transaction", "/refund", "/dispute"])
    async def list_items(request: Request[Any, Any, Any]) -> Response[bytes]:
        key, kind = _key(request), request.url.path.strip("/")
        if key is None:
            return _refusal(401, "Invalid key")
        book.calls.append((f"list {kind}", ""))
        wanted = request.query_params
        mode, days = _mode(key), {"since": wanted["from"], "until": wanted["to"]}
        if kind == "transaction":
            items = [fake.transaction(charge) for charge in book.list_charges(mode, **days)]
        else:
            items = [fake.return_row(one) for one in book.list_returns(mode, is_dispute=kind == "dispute", **days)]
        page, size = int(wanted["page"]), min(int(wanted["perPage"]), fake.page_max)
        meta = {"total": len(items), "skipped": (page - 1) * size, "perPage": size, "page": page}
        shown = items[(page - 1) * size : page * size]
        return json({"status": True, "message": "Retrieved", "data": [*shown, *fake.broken], "meta": meta})

    @get("/transaction/{number:int}")
    async def fetch_transaction(request: Request[Any, Any, Any], number: FromPath[int]) -> Response[bytes]:
        key = _key(request)
        book.calls.append(("fetch", str(number)))
        found = next((one for one in book.charges.values() if one.id == number and one.key == key), None)
        if found is None:
            return _refusal(404, "Transaction not found", "transaction_not_found")
        return json({"status": True, "message": "Transaction retrieved", "data": fake.transaction(found)})

    @get("/pay/{code:str}")
    async def pay_page(code: FromPath[str]) -> Response[bytes]:
        charge = _by_code(book, code)
        if charge is None:
            return json({"status": False, "message": "no such transaction"}, 404)
        buttons = "" if charge.status == "success" else _BUTTONS
        back = escape(charge.cancel_url or charge.callback_url)
        content = (
            f"<h1>Paystack (fake)</h1><p class=amount>{naira(charge.amount)}</p>"
            f"<p>{escape(charge.reference)}, {escape(charge.mode)} mode. No money moves here.</p>"
            f'<form method="post" action="/pay/{escape(code)}">{buttons}</form>'
            f'<p><a id="back" href="{back}">Back to the shop</a></p>'
        )
        return page("Pay (fake Paystack)", content)

    @post("/pay/{code:str}", status_code=200)
    async def act(request: Request[Any, Any, Any], code: FromPath[str]) -> Response[Any]:
        charge = _by_code(book, code)
        if charge is None:
            return json({"status": False, "message": "no such transaction"}, 404)
        action = (await request.form()).get("action")
        if action == "pay":
            fake.pay(charge.reference)
        elif action in DECLINES:
            fake.decline(charge.reference, DECLINES[action])
        else:
            fake.abandon(charge.reference)
            return Redirect(charge.cancel_url or charge.callback_url, status_code=303)
        query = urlencode({"trxref": charge.reference, "reference": charge.reference})
        joint = "&" if "?" in charge.callback_url else "?"
        return Redirect(f"{charge.callback_url}{joint}{query}", status_code=303)

    return application([initialize, verify, list_items, fetch_transaction, pay_page, act])


_BUTTONS = "".join(
    f'<button name="action" value="{value}" id="{value}">{words}</button>'
    for value, words in (
        ("pay", "Pay"),
        ("decline", "Card is declined"),
        ("insufficient", "Not enough money"),
        ("abandon", "Give up"),
    )
)


def _refusal(status: int, message: str, code: str | None = None) -> Response[bytes]:
    body: dict[str, Any] = {"status": False, "message": message}
    if code is not None:
        body |= {"type": "validation_error", "code": code, "meta": {"nextStep": "Check the values you sent."}}
    return json(body, status)


def _key(request: Request[Any, Any, Any]) -> str | None:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key if scheme == "Bearer" and re.fullmatch(r"sk_(test|live)_\w+", key) else None


def _mode(key: str) -> str:
    return "live" if key.startswith("sk_live_") else "test"


def _instant(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _by_code(book: Book, code: str) -> FakeCharge | None:
    return next((charge for charge in book.charges.values() if f"ac{charge.id}" == code), None)
