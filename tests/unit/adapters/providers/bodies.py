"""Bodies as providers send them, made up by us; a test changes what it is about."""

import json
from typing import Any

REFERENCE = "PAY-20250101-AAAAAA"


def paystack(status: str = "success", *, event: str = "charge.success", **data: Any) -> bytes:
    facts = {
        "id": 5_000_000_001,
        "domain": "test",
        "status": status,
        "reference": REFERENCE,
        "amount": 150_000,
        "currency": "NGN",
        "channel": "card",
        "paid_at": "2025-01-01T10:00:00.000Z",
        "metadata": "",
        "fees": 2250,
        "customer": {"email": "p@example.com"},
    }
    return json.dumps({"event": event, "data": facts | data}).encode()


def payaza(**fields: str) -> bytes:
    """Fields are raw JSON, so that a number keeps the very digits it is sent with."""
    facts = {
        "transaction_reference": '"P-C-20250101-AAAAAAAAAA"',
        "merchant_reference": f'"{REFERENCE}"',
        "transaction_status": '"Funds Received"',
        "status": '"Completed"',
        "amount_received": "1500.00",
        "request_amount": "1500",
        "amount_validation": '"EXACT"',
        "transaction_fee": "0.00",
        "currency_code": '"NGN"',
        "channel": '"Card"',
    }
    return ("{" + ",".join(f'"{name}":{raw}' for name, raw in (facts | fields).items() if raw) + "}").encode()
