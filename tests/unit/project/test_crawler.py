"""The crawler sees what must not be there, however deep, and leaves alone what the interface lists."""

import json
from typing import Any

from tests.support.answers.crawler import leaks
from tests.support.answers.recorder import Answer

KEYS = "/merchant/businesses/{businessId}/api-keys"
PAYMENT = "/payments/{reference}"


def found(data: Any, method: str = "GET", route: str | None = PAYMENT, status: int = 200) -> list[str]:
    body = json.dumps({"success": True, "data": data}).encode()
    return list(leaks(Answer(method, route, status, "application/json", body, "")))


LEAKS = {
    **dict.fromkeys(("processorResponse", "processorReference", "webhookUrl", "businessId"), "x"),
    **dict.fromkeys(("secretKey", "signingSecret", "secretHash", "credentials", "cardNumber"), "x"),
    "a key": "ssk_live_" + "0" * 48,
    "a signature key": "whsec_" + "A" * 43 + "=",
    "a key of a provider": "sk_test_abc",
    "a SHA-256": "0" * 64,
    "a SHA-512": "f" * 128,
    "a card": "your card 4242 4242-42424242 was declined",
    "metadata": {"card": "4000000000000002"},
    "a traceback": "Traceback (most recent call last)",
    "an error of the database": "psycopg.errors.UniqueViolation",
}


def test_a_leak_is_found_at_any_depth() -> None:
    for leak in LEAKS.items():
        assert len(found(dict([leak]))) == 1, leak
        assert len(found([{"a": [[dict([leak])]]}])) == 1, leak


def test_what_the_interface_lists_is_no_leak_there_and_one_elsewhere() -> None:
    key = {"secretKey": "ssk_sand_" + "0" * 48}
    assert found(key, "POST", KEYS, 201) == []
    assert len(found(key, "POST", KEYS, 200)) == 1
    assert len(found({"name": key["secretKey"]}, "POST", KEYS, 201)) == 1
    assert found({"businessId": "biz_1"}, route="/payments/context") == []
    customer = {"customerEmail": "ada@example.com"}
    assert found(customer) == []
    assert len(found(customer, route="/public/payments/{reference}")) == 1


def test_ordinary_answers_hold_nothing() -> None:
    numbers = {"reference": "PAY-20250131-424242", "amount": 4242424242424242, "customerPhone": "+2348012345678"}
    words = {"secretKeyDisplay": "ssk_live_...0000", "secretLast4": "0000", "hasCredentials": True}
    ids = {"id": "biz_01a1fb3aeeaffa69a7289abce0611d8e", "createdAt": "2025-01-31T12:00:00.123456Z"}
    assert found(numbers | words | ids | {"metadata": {"webhookUrl": "mine"}, "text": "1234567890123456"}) == []
