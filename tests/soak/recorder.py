"""What the three sides saw, each by itself: the payer what we acknowledged, the provider its charges, the merchant its
webhooks. None of it is read from our database."""

from collections import Counter
from dataclasses import dataclass, field

from payagg.testing.fake_providers import Book
from tests.support.receivers import Receiver


@dataclass
class SoakRecorder:
    provider: Book
    merchant: Receiver
    acknowledged: dict[str, str] = field(default_factory=dict)  # idempotency key to the reference we answered
    handed_over: set[str] = field(default_factory=set)  # references whose payer we sent to the provider
    faults: list[str] = field(default_factory=list)  # what no answer may ever say

    def initiated(self, key: str, reference: str) -> None:
        if self.acknowledged.setdefault(key, reference) != reference:
            self.faults.append(f"{key} is {self.acknowledged[key]} and {reference}")

    def told(self, kind: str) -> Counter[str]:
        return self.merchant.told(kind)

    def wrongs(self, settled: set[str]) -> list[str]:
        """What is wrong at the end: `settled` are the payments that we say are paid."""
        wrong = list(self.faults)
        for reference in self.handed_over:
            if (paid := self.provider.paid(reference)) != 1:
                wrong.append(f"{reference} was charged {paid} times")
        told = self.told("payment.success")
        wrong += [f"{reference} was acknowledged and is not paid" for reference in self.handed_over - settled]
        wrong += [f"the merchant heard {told[one]} times that {one} is paid" for one in settled if told[one] != 1]
        wrong += [f"the merchant heard of {reference}, which is not ours" for reference in told.keys() - settled]
        return wrong
