"""Idempotency keys: unique per business and environment, under replay, under race and after the end."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from payagg_testing.conformance.base import ConformanceMachine, needs
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.target import ConformanceTarget

TOGETHER = 4
KEYS = st.sampled_from(["order-1", "order-2"])
AMOUNTS = st.sampled_from([5_000, 7_500])
MERCHANTS = st.integers(0, 1)
SERVERS = st.tuples(MERCHANTS, st.sampled_from(["SANDBOX", "SANDBOX", "LIVE"]))
INITIATE = "/payments/initiate"


@dataclass
class Original:
    """The payment that holds a key."""

    answer: dict[str, Any]
    is_final: bool = False


class IdempotencyConformance(ConformanceMachine):
    title = "idempotency"

    @classmethod
    def check_needs(cls, target: ConformanceTarget) -> None:
        needs(any("SANDBOX" in merchant.keys for merchant in target.merchants), "a sandbox key")

    def __init__(self) -> None:
        super().__init__()
        self.originals: dict[tuple[int, str, str], Original] = {}

    def secret(self, merchant: int, environment: str) -> str | None:
        held = self.merchants[merchant].keys.get(environment)
        if environment == "LIVE" and held is not None and not self.target.takes_live(self.merchants[merchant]):
            return None
        return held

    @rule(server=SERVERS, key=KEYS, amount=AMOUNTS)
    def initiate(self, server: tuple[int, str], key: str, amount: int) -> None:
        """Another amount under the same key is no other payment."""
        merchant, environment = server[0] % len(self.merchants), server[1]
        secret = self.secret(merchant, environment)
        if secret is not None:
            who = f"the server of business {merchant + 1} ({environment})"
            self._initiate(who, INITIATE, secret, (merchant, environment, key), amount)

    @rule(merchant=MERCHANTS, key=KEYS, amount=AMOUNTS)
    def initiate_test(self, merchant: int, key: str, amount: int) -> None:
        """From the dashboard, under keys of its own."""
        merchant %= len(self.merchants)
        owner = self.merchants[merchant]
        if owner.token is not None and "SANDBOX" in owner.keys:
            who = f"the dashboard of business {merchant + 1}"
            self._initiate(who, f"{owner.path}/test-payment", owner.token, (merchant, "SANDBOX", f"test-{key}"), amount)

    def _initiate(self, who: str, path: str, bearer: str, slot: tuple[int, str, str], amount: int) -> None:
        original, key = self.originals.get(slot), slot[2]
        body = {"amount": amount, "idempotencyKey": f"{self.nonce}-{key}"}
        words = f"initiates a payment of {amount} kobo under the key {key}"
        if original is None:
            data: dict[str, Any] = {"amount": amount, "environment": slot[1], "status": "INITIATED"}
            answer = self.ask(who, words, "POST", path, 201, bearer=bearer, body=body, data=data)
            self._began(slot, answer.data)
        elif original.is_final:
            self.ask(who, words, "POST", path, 409, bearer=bearer, body=body, code="DUPLICATE_PAYMENT")
        else:
            self.ask(who, words, "POST", path, 200, bearer=bearer, body=body, data=original.answer)

    @rule(merchant=MERCHANTS, key=KEYS, amount=AMOUNTS)
    def initiate_together(self, merchant: int, key: str, amount: int) -> None:
        merchant %= len(self.merchants)
        slot, secret = (merchant, "SANDBOX", f"race-{key}"), self.secret(merchant, "SANDBOX")
        original = self.originals.get(slot)
        if secret is None or (original is not None and original.is_final):
            return
        body = {"amount": amount, "idempotencyKey": f"{self.nonce}-race-{key}"}
        calls = [ServiceCall("POST", INITIATE, secret, body)] * TOGETHER
        statuses = [201 if original is None else 200, *[200] * (TOGETHER - 1)]
        words = f"{TOGETHER} servers of business {merchant + 1} initiate under the key race-{key}"
        answers = self.ask_together(words, calls, statuses, "reference")
        if original is None:
            self._began(slot, answers[0].data)

    def _began(self, slot: tuple[int, str, str], data: dict[str, Any]) -> None:
        if any(other.answer["reference"] == data["reference"] for other in self.originals.values()):
            self.fail("the payment of another key, business or environment was given out")
        names = ("reference", "checkoutUrl", "amount", "currency", "environment", "status", "expiresAt")
        self.originals[slot] = Original({name: data[name] for name in names})

    @rule(pick=st.integers(0, 7), outcome=st.sampled_from(["SUCCESS", "FAILED", "REVERSED"]))
    def end(self, pick: int, outcome: str) -> None:
        """The payment of some key comes to its end: the key is used up."""
        open_slots = [s for s, one in self.originals.items() if s[1] == "SANDBOX" and not one.is_final]
        if not open_slots:
            return
        slot = open_slots[pick % len(open_slots)]
        original, key = self.originals[slot], self.merchants[slot[0]].keys["SANDBOX"]
        reference = original.answer["reference"]
        who, path = f"the server of business {slot[0] + 1} (SANDBOX)", f"/payments/{reference}/simulate"
        data = {"reference": reference, "status": outcome, "amount": original.answer["amount"]}
        self.ask(who, f"simulates {outcome}", "POST", path, 200, bearer=key, body={"outcome": outcome}, data=data)
        original.is_final = True
