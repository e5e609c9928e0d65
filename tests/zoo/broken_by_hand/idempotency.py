"""Services written by hand with one thing wrong each: idempotency."""

from typing import Any

from tests.zoo.by_hand import FINAL, Handmade
from tests.zoo.hand_http import Reply, Row


class SharesKeysAcrossBusinesses(Handmade):
    """Idempotency keys are unique for all businesses together."""

    machine = "idempotency"

    def slot(self, business: str, environment: str, key: str | None) -> Any:
        return environment, key


class SharesKeysAcrossEnvironments(Handmade):
    """Idempotency keys are unique for both environments together."""

    machine = "idempotency"

    def slot(self, business: str, environment: str, key: str | None) -> Any:
        return business, key


class ForgetsKeysOfFinalPayments(Handmade):
    """The key of a completed payment starts another one."""

    machine = "idempotency"

    def replay(self, original: Row) -> Reply:
        if original["status"] not in FINAL:
            return super().replay(original)
        fresh = self.body | {"idempotencyKey": None}
        self.body = fresh
        return self.begin(original["business"], original["environment"], original["isTest"])


class ReplaysAsCreated(Handmade):
    """A replay is answered with 201."""

    machine = "idempotency"

    def replay(self, original: Row) -> Reply:
        return 201, super().replay(original)[1]


class KeysIncludeTheAmount(Handmade):
    """The key counts only with the same amount, so that a corrected cart is paid twice."""

    machine = "idempotency"

    def slot(self, business: str, environment: str, key: str | None) -> Any:
        return business, environment, key, self.body["amount"]


class CutsKeysShort(Handmade):
    """Idempotency keys are stored in a column that is too short."""

    machine = "idempotency"

    def slot(self, business: str, environment: str, key: str | None) -> Any:
        return business, environment, key and key[:15]
