"""What stands around the use cases when a StoreSystem drives them: providers that follow a script, and no surprises."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from payagg_testing.state_machine.system import SILENCE, Said

from payagg.application.payments.settlement import Settled, Settlement
from payagg.application.ports.outside import Entropy
from payagg.domain.attempt import Charge, HandOff, HandOffKind, payment_reference
from payagg.domain.report import NO_CHARGE, FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment

ACCOUNT = "account"  # the one name in a scripted provider's credentials; its value also signs


@dataclass
class ScriptedProvider:
    """A processor in memory that does what the next call was told; all of them share one count of charges. Each
    account knows its own charges alone, and its events are signed with its name."""

    slug: str
    charges: Counter[str]
    refuses: bool = False
    starts_alone: bool = False
    says: Said = SILENCE
    accounts: dict[str, str] = field(default_factory=dict)  # by the charge's reference
    credential_names: tuple[str, ...] = (ACCOUNT,)

    def check_credentials(self, credentials: Mapping[str, str]) -> None:
        """Any will do."""

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return ACCOUNT in credentials

    def is_switched_on(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return True

    def account(self, credentials: Mapping[str, str], environment: Environment) -> str | None:
        return credentials.get(ACCOUNT)

    async def start_charge(self, charge: Charge) -> HandOff:
        self.accounts[charge.reference] = charge.credentials[ACCOUNT]  # a refused one may be paid all the same
        if self.refuses:
            raise ProviderFault(FaultKind.REJECTED)
        self.charges[payment_reference(charge.reference)] += 1
        return HandOff(HandOffKind.REDIRECT, f"https://{self.slug}.example/{charge.reference}")

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        if self.accounts.get(charge.reference) != charge.credentials[ACCOUNT]:
            return ProviderReport(charge.reference, Outcome.UNPAID, NO_CHARGE)
        return self.says.report(charge.reference, charge.amount)

    def is_authentic(
        self, body: bytes, headers: Mapping[str, str], credentials: Mapping[str, str], environment: Environment
    ) -> bool:
        return headers.get(self.header) == credentials[ACCOUNT]

    @property
    def header(self) -> str:
        return f"x-{self.slug}-signature"

    def signing_secret(self, credentials: Mapping[str, str], environment: Environment) -> Mapping[str, str]:
        return credentials

    def event(self, report: ProviderReport, number: int) -> bytes:
        """The body of the event; `number` tells it from an equal one, which would be known already."""
        return msgspec.json.encode({"report": report, "number": number})

    def read_event(self, body: bytes) -> ProviderReport | None:
        return msgspec.convert(msgspec.json.decode(body)["report"], ProviderReport)

    def redact_event(self, body: bytes) -> bytes:
        return body


@dataclass(frozen=True)
class HeardSettlement(Settlement):
    """Remembers what reports did: an inbox acknowledges an event whatever comes of it."""

    heard: list[str] = field(default_factory=list)

    async def report(self, *arguments: Any, **named: Any) -> Settled:
        settled = await super().report(*arguments, **named)
        self.heard.append(settled.effect.value)
        return settled


class PunctualEntropy:
    """Another's entropy without the spread in time, so that a plain model can say when something is due."""

    def __init__(self, entropy: Entropy) -> None:
        self.reference, self.id, self.hex, self.bytes = entropy.reference, entropy.id, entropy.hex, entropy.bytes

    def chance(self) -> float:
        return 0.0


class LabelVault:
    """Seals with nothing but a label: what was sealed for one gateway does not open for another."""

    def seal(self, plain: bytes, context: str) -> bytes:
        return context.encode() + b"\n" + plain

    def open(self, sealed: bytes, context: str) -> bytes:
        label, _, plain = sealed.partition(b"\n")
        if label != context.encode():
            raise ValueError("sealed for something else")
        return plain
