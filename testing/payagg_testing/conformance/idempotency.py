"""Idempotency keys: unique per business and environment, under replay, under race and after the end."""

from datetime import timedelta
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import rule

from payagg.domain.values import Environment
from payagg_testing.conformance.expectation import among
from payagg_testing.conformance.payments import NO_ANSWER
from payagg_testing.conformance.payments_by_url import PaymentsByUrl, UrlPayment
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.statements import CLOCK, OWNER_WITH_KEY, SANDBOX_KEY, tries
from payagg_testing.state_machine.model import FINAL, HOUR, SIMULATOR

TOGETHER = 4
KEYS = st.sampled_from(["order-1", "ORDER-1", "order-2"])
AMOUNTS = st.sampled_from([5_000, 7_500])
MERCHANTS = st.integers(0, 1)
SERVERS = st.tuples(MERCHANTS, st.sampled_from(["SANDBOX", "SANDBOX", "LIVE"]))
INITIATE = "/payments/initiate"
DAY = timedelta(days=1)


class IdempotencyConformance(PaymentsByUrl):
    title = "idempotency"
    in_passing: ClassVar = {"payments.10": ()}

    needs = (SANDBOX_KEY,)

    def __init__(self) -> None:
        super().__init__()
        self.originals: dict[tuple[int, str, str], dict[str, Any]] = {}  # answers: the payments that hold the keys

    @rule(server=SERVERS, key=KEYS, amount=AMOUNTS)
    @tries("payments.11")
    def initiate(self, server: tuple[int, str], key: str, amount: int) -> None:
        """Another amount under the same key is no other payment."""
        merchant, environment = server[0] % len(self.merchants), server[1]
        if self.may_initiate(merchant, environment):
            who, secret = (
                f"the server of business {merchant + 1} ({environment})",
                self.merchants[merchant].keys[environment],
            )
            self._initiate(who, INITIATE, secret, (merchant, environment, key), amount)

    @rule(merchant=MERCHANTS, key=KEYS, amount=AMOUNTS)
    @tries("payments.25", needs=OWNER_WITH_KEY)
    def initiate_test(self, merchant: int, key: str, amount: int) -> None:
        """From the dashboard, under keys of its own."""
        merchant %= len(self.merchants)
        owner = self.merchants[merchant]
        if owner.token is not None and "SANDBOX" in owner.keys:
            who = f"the dashboard of business {merchant + 1}"
            self._initiate(who, f"{owner.path}/test-payment", owner.token, (merchant, "SANDBOX", f"test-{key}"), amount)

    def _initiate(self, who: str, path: str, bearer: str, slot: tuple[int, str, str], amount: int) -> None:
        original, key = self.originals.get(slot), slot[2]
        if original is not None and self.is_left_open(original):
            return
        body = {"amount": amount, "idempotencyKey": f"{self.nonce}-{key}"}
        words = f"initiates a payment of {amount} kobo under the key {key}"
        if original is None:
            data: dict[str, Any] = {"amount": amount, "environment": slot[1], "status": "INITIATED"}
            answer = self.ask(who, words, "POST", path, 201, bearer=bearer, body=body, data=data)
            self._began(slot, answer.data)
        elif self.is_final(original):
            self.ask(who, words, "POST", path, 409, bearer=bearer, body=body, code="DUPLICATE_PAYMENT")
            self.tried.add("payments.10")
        else:
            # "The original unchanged" is the payment as it is, or the answer as it was.
            data = original | {"status": among(original["status"], self.models[original["reference"]].status)}
            self.ask(who, words, "POST", path, 200, bearer=bearer, body=body, data=data)

    @rule(merchant=MERCHANTS, key=KEYS, amount=AMOUNTS, is_test=st.booleans())
    @tries("payments.6")
    def initiate_together(self, merchant: int, key: str, amount: int, is_test: bool) -> None:
        """Four servers of a business, or four windows of its dashboard."""
        merchant %= len(self.merchants)
        owner, key = self.merchants[merchant], f"{'test-' * is_test}race-{key}"
        slot = merchant, "SANDBOX", key
        original = self.originals.get(slot)
        if not self.may_initiate(merchant, "SANDBOX") or (is_test and owner.token is None):
            return
        if original is not None and (self.is_final(original) or self.is_left_open(original)):
            return
        body = {"amount": amount, "idempotencyKey": f"{self.nonce}-{key}"}
        path, bearer = (f"{owner.path}/test-payment", owner.token) if is_test else (INITIATE, owner.keys["SANDBOX"])
        calls = [ServiceCall("POST", path, bearer, body)] * TOGETHER
        statuses = [201 if original is None else 200, *[200] * (TOGETHER - 1)]
        words = f"business {merchant + 1} initiates {TOGETHER} times at once under the key {key}"
        answers = self.ask_together(words, calls, statuses, "reference")
        if original is None:
            self._began(slot, answers[0].data)

    def _began(self, slot: tuple[int, str, str], data: dict[str, Any]) -> None:
        environment, expires = Environment(slot[1]), self.now + HOUR
        self.know(data["reference"], UrlPayment(data["amount"], environment, expires, merchant=slot[0]))
        names = ("reference", "checkoutUrl", "amount", "currency", "environment", "status", "expiresAt")
        self.originals[slot] = {name: data[name] for name in names}

    def is_final(self, original: dict[str, Any]) -> bool:
        return self.models[original["reference"]].status in FINAL

    def is_left_open(self, original: dict[str, Any]) -> bool:
        """Whether it was never begun in its hour: what it is until somebody reads it, the interface leaves open."""
        return self.models[original["reference"]].is_expired(self.now)

    @rule(pick=st.integers(0, 7), outcome=st.sampled_from(FINAL))
    def end(self, pick: int, outcome: str) -> None:
        """The payment of some key comes to its end: the key is used up."""
        if (reference := self._running(pick)) is not None:
            self.simulate_outcome(reference, outcome)

    @rule(pick=st.integers(0, 7))
    def begin(self, pick: int) -> None:
        """The payer is sent on and never comes back: the payment stays PENDING, and has its key."""
        if (reference := self._running(pick)) is not None:
            self.choose_gateway(reference, f"chooses the simulator with the card {NO_ANSWER}", SIMULATOR, NO_ANSWER)
            self.agrees(reference)

    @rule(duration=st.sampled_from([HOUR, DAY, 30 * DAY]))
    @tries(needs=CLOCK)
    def time_passes(self, duration: timedelta) -> None:
        self.wait(duration)

    def _running(self, pick: int) -> str | None:
        """The reference of a sandbox payment of some key that is neither final nor past its hour untouched."""
        ours = [
            original["reference"]
            for slot, original in self.originals.items()
            if slot[1] == "SANDBOX" and not self.is_final(original) and not self.is_left_open(original)
        ]
        return ours[pick % len(ours)] if ours else None
