"""Services written by hand with one thing wrong each: charges at a provider."""

import asyncio
import json
from base64 import b64decode, urlsafe_b64encode
from contextlib import suppress
from decimal import Decimal
from typing import Any

from tests.zoo.by_hand import FINAL, Handmade
from tests.zoo.hand_http import Reply, Row


class BelievesUnsignedEvents(Handmade):
    """An event without a signature is taken."""

    machine = "settlement"

    def is_genuine(self, slug: str, secret: str) -> bool:
        return f"x-{slug}-signature" not in self.headers or super().is_genuine(slug, secret)


class ChecksParsedEvents(Handmade):
    """The signature is compared with that of the body as parsed and written again."""

    machine = "settlement"

    def is_genuine(self, slug: str, secret: str) -> bool:
        with suppress(ValueError):
            self.content = json.dumps(json.loads(self.content), separators=(",", ":")).encode()
        return super().is_genuine(slug, secret)


class SettlesAnyAmount(Handmade):
    """What the provider took is not compared with the payment."""

    machine = "settlement"

    def settle(self, payment: Row, told: Row) -> None:
        super().settle(payment, told | {"amount": payment["amount"]})


class TakesMoreForEnough(Handmade):
    """More than the amount is as good as the amount."""

    machine = "settlement"

    def settle(self, payment: Row, told: Row) -> None:
        super().settle(payment, told | {"amount": min(told["amount"], payment["amount"])})


class MixesEnvironments(Handmade):
    """An event of one environment settles a payment of the other."""

    machine = "settlement"

    def belongs(self, payment: Row, environment: str) -> bool:
        return True


class LetsALateSuccessWin(Handmade):
    """A payment that failed becomes paid when its provider reports late."""

    machine = "settlement"

    def settle(self, payment: Row, told: Row) -> None:
        if payment["status"] in FINAL and told["status"] == "success":
            payment["status"] = "PENDING"
        super().settle(payment, told)


class ChargesTwice(Handmade):
    """A repeat of process begins another charge."""

    machine = "settlement"

    def hand_off_of(self, payment: Row) -> str:
        if payment["gateway"] == "provider_a":
            self.charge(payment, "provider_a")
        return super().hand_off_of(payment)


class ChargesEachOfTwoAtOnce(Handmade):
    """Two requests at one moment both find no hand-off, and both begin a charge."""

    machine = "settlement"

    async def answer(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Reply:
        payment = self.payments.get(path.split("/")[3], {}) if path.endswith("/process") else {}
        found_none = payment.get("handOff", "") is None
        await asyncio.sleep(0)
        if found_none:
            payment["handOff"] = None
        return await super().answer(method, path, headers, content)


class AsksForNaira(Handmade):
    """The provider is asked for naira where it takes kobo."""

    machine = "settlement"

    def charge(self, payment: Row, slug: str) -> str:
        return super().charge(payment | {"amount": payment["amount"] // 100}, slug)


class FailsOnMismatch(Handmade):
    """A report of another amount ends the payment."""

    machine = "settlement"

    def settle(self, payment: Row, told: Row) -> None:
        super().settle(payment, told)
        if payment.get("mismatch"):
            self.move(payment, "FAILED")


class ForgetsReplacedSecrets(Handmade):
    """A provider's secret is replaced, and the events that it signed before are refused."""

    machine = "settlement"

    def replaced(self, slug: str, environment: str) -> list[str]:
        return []


class BelievesReplacedSecrets(Handmade):
    """Events are believed that a secret signed which was replaced long ago."""

    machine = "settlement"

    def replaced(self, slug: str, environment: str) -> list[str]:
        kept = [one for g in self.gateways.values() if g["slug"] == slug for one in g.get("replaced", [])]
        return [secret for where, secret, _ in kept if where == environment]


class TakesTheAliasForSandbox(Handmade):
    """The path without an environment is the sandbox's."""

    machine = "settlement"

    def inbound_by_alias(self, slug: str) -> Reply:
        return self.inbound(slug, "sandbox")


class AsksForKobo(Handmade):
    """The popup is opened with kobo, where it takes naira."""

    machine = "settlement-b"

    def naira(self, kobo: int) -> float:
        return kobo


class ReadsWholeNaira(Handmade):
    """Amounts in naira are read without their decimals, so that some kobo may be missing."""

    machine = "settlement-b"

    def kobo(self, naira: Any) -> int:
        return int(Decimal(str(naira)) + Decimal("0.5")) * 100


class ReadsHexAlone(Handmade):
    """A signature in base64 is compared with one in hexadecimal digits."""

    machine = "settlement-b"

    def is_genuine(self, slug: str, secret: str) -> bool:
        return super().is_genuine("provider_a", secret)


class RefusesWhatItCannotRead(Handmade):
    """A signed event that cannot be read is answered with 400, and sent again and again."""

    machine = "settlement-b"

    def unreadable(self, slug: str) -> Reply:
        return super().unreadable("provider_a")


class SendsTheSecretToTheBrowser(Handmade):
    """The whole account is handed to the browser, with the secret that signs events."""

    machine = "settlement-b"

    def launch(self, payment: Row) -> str:
        url, _, encoded = super().launch(payment).partition("#")
        parameters = json.loads(b64decode(encoded + "=" * (-len(encoded) % 4)))
        everything = json.dumps(self.account("provider_b") | parameters).encode()
        return f"{url}#{urlsafe_b64encode(everything).decode()}"


class BelievesThePopup(Handmade):
    """What the provider is asked about counts as paid once it was begun."""

    machine = "settlement-b"

    def told_by_b(self, status: str, naira: Any) -> Row:
        return super().told_by_b("Completed", naira)
