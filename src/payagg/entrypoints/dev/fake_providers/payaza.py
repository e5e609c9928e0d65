"""A fake Payaza: the checkout script with its popup, the status query with its two envelopes, signed events."""

import base64
import hashlib
import hmac
import re
from decimal import Decimal
from typing import Any

import msgspec
from litestar import Litestar, Request, Response, get, post
from litestar.params import FromPath

from payagg.entrypoints.dev.fake_providers.book import Book, FakeCharge, FakeReturn, Outgoing
from payagg.entrypoints.dev.fake_providers.steering import application, asset, json, page

QUERY = "/live/merchant-collection/transfer_notification_controller/merchant/transaction-query"
OWN_QUERY = QUERY.replace("/merchant/transaction-query", "/transaction-query")
RETURNS = {  # whether it lists disputes
    "/live/refund-chargeback/refund/merchant/api/refund_history": False,
    "/live/refund-chargeback/chargeback/merchant/api/chargeback_requests": True,
}
REFUSED_KEY = (401, b'{"message":"Authentication failed","status":false,"retry_count":0}')
STATUS_WORDS = {"Completed": "Funds Received", "Failed": "Transaction Failed"}
_number = msgspec.json.Encoder(decimal_format="number")


class Launch(msgspec.Struct):
    """The launch parameters, as strict as the vendor's own script is."""

    merchant_key: str
    connection_mode: str
    checkout_amount: Decimal
    email_address: str
    first_name: str
    last_name: str
    transaction_reference: str
    currency_code: str = "NGN"
    phone_number: str = ""


class FakePayaza:
    """The provider's side of a journey. `secrets` are the signing secrets by mode (test, live)."""

    def __init__(
        self,
        base_url: str = "",
        secrets: dict[str, str] | None = None,
        header: str = "x-provider_b-signature",
        book: Book | None = None,
    ) -> None:
        self.base_url = base_url  # filled in by `serve_fakes` when the port is known
        self.secrets = secrets or {}
        self.header = header
        self.book = book or Book()

    def open(self, parameters: bytes) -> str | None:
        """What opening the popup does: an Initialized transaction; None, or why it does not open."""
        try:
            launch = msgspec.json.decode(parameters, type=Launch)
        except msgspec.MsgspecError as error:
            return f"Invalid parameters: {error}"
        mode = launch.connection_mode.lower()
        if mode not in ("test", "live") or f"PK{mode.upper()}" not in launch.merchant_key:
            return "Authentication failed"
        kobo = launch.checkout_amount * 100
        if kobo != kobo.to_integral_value() or kobo <= 0:
            return "Invalid amount"
        reference = launch.transaction_reference
        self.book.calls.append(("open", reference))
        known = self.book.charges.get(reference)
        if known is not None:
            known.opened += 1
            return None if known.status == "Initialized" else "Transaction reference already exists"
        self.book.charges[reference] = FakeCharge(
            reference=reference,
            amount=int(kobo),
            currency=launch.currency_code,
            mode=mode,
            id=self.book.ids(),
            status="Initialized",
            key=launch.merchant_key,
            created_at=self.book.now(),
            email=launch.email_address,
        )
        return None

    def pay(self, reference: str, *, fees: int = 0) -> None:
        """The payer pays; `fees` are put on top. Paying twice is refused."""
        charge = self.book.charges[reference]
        if charge.status != "Completed":
            charge.status, charge.fees, charge.paid = "Completed", fees, charge.paid + 1
            self.book.emit(self.event(charge))

    def decline(self, reference: str, reason: str = "Declined by financial institution") -> None:
        charge = self.book.charges[reference]
        charge.status, charge.reason = "Failed", reason
        self.book.emit(self.event(charge))

    def refund(self, reference: str, amount: int | None = None) -> None:
        """There is no event for it."""
        charge = self.book.charges[reference]
        part = charge.amount if amount is None else amount
        self.book.returns.append(FakeReturn(self.book.ids(), charge, part, "Success", False, self.book.now()))

    def dispute(self, reference: str, status: str = "Pending") -> None:
        """Nor for a chargeback."""
        charge = self.book.charges[reference]
        self.book.returns.append(FakeReturn(self.book.ids(), charge, charge.amount, status, True, self.book.now()))

    def return_row(self, one: FakeReturn) -> dict[str, Any]:
        """A refund or chargeback as its list has it. A refund names its payment by Payaza's own reference alone."""
        of_payment = {"transaction_reference": own_reference(one.charge), "currency": {"code": one.charge.currency}}
        facts = {"id": one.id, "transaction": of_payment}
        if one.is_dispute:
            own = {"transaction_reference": one.charge.reference, "original_amt": str(_naira(one.amount))}
            return facts | own | {"chargeback_status": one.status}
        own = {"transaction_reference": f"RF20250101-{one.id}", "refund_order_id": own_reference(one.charge)}
        return facts | own | {"refund_amount": _naira(one.amount), "mpgs_refund_status": one.status}

    def transaction(self, charge: FakeCharge) -> dict[str, Any]:
        """The `data` of the query. The amount is there whatever the status is."""
        view = self.book.view_of(charge)
        return {
            "transaction_reference": None,
            "merchant_transaction_reference": view.reference,
            "transaction_status": view.status,
            "amount_received": _naira(view.amount + view.fees),
            "transaction_fee": _naira(view.fees),
            "currency": view.currency,
            "transaction_type": "Card",
            "session_id": "",
            "initiated_date": "2025-01-01 09:00:00",
            "current_status_date": "2025-01-01 10:00:00.123456",
            "status_reason": view.reason,
        }

    def event(self, charge: FakeCharge) -> Outgoing:
        """The event as it goes out: flat, without a name or an id, two decimals always."""
        view = self.book.view_of(charge)
        body = _number.encode(
            {
                "transaction_reference": own_reference(view),
                "merchant_reference": view.reference,
                "transaction_status": STATUS_WORDS[view.status],
                "status": view.status,
                "amount_received": _naira(view.amount + view.fees),
                "request_amount": _naira(view.amount),
                "amount_validation": "EXACT",
                "transaction_fee": _naira(view.fees),
                "currency_code": view.currency,
                "channel": "Card",
                "status_reason": view.reason,
            }
        )
        signature = self.signature(body, self.secrets.get(charge.mode, ""))
        return Outgoing(charge.mode, body, {"Content-Type": "application/json", self.header: signature})

    def signature(self, body: bytes, secret: str) -> str:
        return base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha512).digest()).decode()


def fake_payaza(fake: FakePayaza) -> Litestar:
    """The ASGI application over `fake`."""
    book = fake.book

    @get("/js/v1/bundle.js")
    async def bundle() -> Response[bytes]:
        return asset("bundle.js")

    @get("/popup")
    async def popup() -> Response[bytes]:
        content = (
            '<h1>Payaza (fake)</h1><p class="amount" id="amount"></p><p id="words">No money moves here.</p>'
            '<button id="pay">Pay</button><button id="decline">Card is declined</button>'
            '<button id="close">Close</button>'
        )
        return page("Pay (fake Payaza)", content, script="popup.js", ancestors="*")

    @post("/popup/open", status_code=200)
    async def open_popup(request: Request[Any, Any, Any]) -> Response[bytes]:
        trouble = fake.open(await request.body())
        return json({"message": trouble}, 400) if trouble else json({"message": "ok"})

    @post("/popup/{action:str}/{reference:str}", status_code=200)
    async def act_in_popup(action: FromPath[str], reference: FromPath[str]) -> Response[bytes]:
        if reference not in book.charges or action not in ("pay", "decline"):
            return json({"message": "Transaction not found"}, 404)
        (fake.pay if action == "pay" else fake.decline)(reference)
        return json({"message": book.charges[reference].status})

    @get([QUERY, OWN_QUERY])
    async def query(request: Request[Any, Any, Any]) -> Response[bytes]:
        key, wanted = _key(request), request.query_params
        if key is None:
            return Response(REFUSED_KEY[1], status_code=REFUSED_KEY[0], media_type="application/json")
        if request.url.path == QUERY:
            reference = wanted.get("merchant_reference", "")
        else:
            own = {own_reference(charge): charge.reference for charge in book.charges.values()}
            reference = own.get(wanted.get("transaction_reference", ""), "")
        book.calls.append(("query", reference))
        charge = book.charges.get(reference)
        if charge is None or charge.key != key:
            # Another envelope than the good answer's, inside a good HTTP status.
            return json({"response_code": 404, "response_message": "Transaction not found", "response_content": None})
        body = {"message": "Transaction fetched successfully", "success": True, "data": fake.transaction(charge)}
        return Response(_number.encode(body), media_type="application/json")

    @get(list(RETURNS))
    async def list_returns(request: Request[Any, Any, Any]) -> Response[bytes]:
        key, wanted = _key(request), request.query_params
        if key is None:
            return Response(REFUSED_KEY[1], status_code=REFUSED_KEY[0], media_type="application/json")
        is_dispute, number, size = RETURNS[request.url.path], int(wanted["page"]), int(wanted["size"])
        if number < 1 or (not is_dispute and wanted.get("refund_status") not in ("SUCCESS", "Initialized")):
            return json({"status": "failed", "message": "Bad request"}, 400)
        mode = "live" if "PKLIVE" in key else "test"
        days = {"since": f"{wanted['from']}T00:00:00Z", "until": f"{wanted['to']}T23:59:59Z"}
        found = book.list_returns(mode, is_dispute=is_dispute, **days)
        items = [fake.return_row(one) for one in found if is_dispute or one.status.upper() == wanted["refund_status"]]
        shown = items[(number - 1) * size : number * size]
        data = {"content": shown, "total": len(items), "last": number * size >= len(items)}
        body = {"status": "success", "message": "Refund History Success.", "data": data}
        return Response(_number.encode(body), media_type="application/json")

    return application([bundle, popup, open_popup, act_in_popup, query, list_returns])


def own_reference(charge: FakeCharge) -> str:
    return f"P-C-20250101-{charge.id}"


def _naira(kobo: int) -> Decimal:
    return Decimal(kobo).scaleb(-2).quantize(Decimal("0.01"))


def _key(request: Request[Any, Any, Any]) -> str | None:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    try:
        key = base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        return None
    return key if scheme == "Payaza" and re.search(r"PK(TEST|LIVE)", key) else None
