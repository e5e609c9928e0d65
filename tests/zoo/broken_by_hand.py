"""Services written by hand with one thing wrong each: the docstring says what, `machine` which one must notice."""

import asyncio
import hashlib
import hmac
import json
from base64 import b64encode
from datetime import timedelta
from typing import Any

from tests.zoo.by_hand import FINAL, HOUR, Handmade
from tests.zoo.hand_http import Reply, Row


class ReopensFinalPayments(Handmade):
    """A second simulated outcome replaces the first."""

    machine = "payments"

    def simulate(self, reference: str) -> Reply:
        payment = self.payments.get(reference)
        if payment is not None and payment["status"] in FINAL:
            payment["status"] = "INITIATED"
        return super().simulate(reference)


class TakesNinetyNineKobo(Handmade):
    """The smallest amount is off by one."""

    machine = "payments"

    def is_amount(self, amount: Any) -> bool:
        return super().is_amount(amount) or amount == 99


class TakesDecimals(Handmade):
    """5000.0 is taken for 5000."""

    machine = "payments"

    def is_amount(self, amount: Any) -> bool:
        return isinstance(amount, int | float) and not isinstance(amount, bool) and amount >= 100 and amount % 1 == 0


class TakesTrueForAnAmount(Handmade):
    """Amounts are checked with isinstance, so that booleans are integers."""

    machine = "payments"

    def is_amount(self, amount: Any) -> bool:
        return isinstance(amount, int) and (amount >= 100 or amount is True)


class ChargesAfterTheHour(Handmade):
    """The checkout window never closes."""

    machine = "payments"

    def is_too_late(self, payment: Row) -> bool:
        return False


class ChargesAMinuteLonger(Handmade):
    """The window is open at its end: one minute too long."""

    machine = "payments"

    def is_too_late(self, payment: Row) -> bool:
        return bool(self.now >= payment["began"] + HOUR + timedelta(minutes=1))


class SimulatesLivePayments(Handmade):
    """The simulator is offered for LIVE payments."""

    machine = "payments"

    def lists_simulator(self, payment: Row) -> bool:
        return True


class TellsThePayerTheEmail(Handmade):
    """The payer's view carries the customer's e-mail address."""

    machine = "payments"

    def public(self, reference: str) -> Reply:
        status, data = super().public(reference)
        return status, data | {"customerEmail": self.payments[reference]["customerEmail"]}


class GuessesTheOutcomeOfSilence(Handmade):
    """A payment whose provider has not answered is called failed."""

    machine = "payments"

    def verify(self, reference: str) -> Reply:
        status, data = super().verify(reference)
        if data["status"] == "PENDING":
            self.move(self.payments[reference], "FAILED")
        return status, data | {"status": self.payments[reference]["status"]}


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


class GivesASixthKey(Handmade):
    """The limit of five keys is checked with `>`."""

    machine = "api-keys"

    def counted_keys(self, business: str, environment: str) -> int:
        return super().counted_keys(business, environment) - 1


class CountsKeysOfBothEnvironments(Handmade):
    """Five keys per business, not per environment."""

    machine = "api-keys"

    def counted_keys(self, business: str, environment: str) -> int:
        return sum(super(type(self), self).counted_keys(business, one) for one in ("SANDBOX", "LIVE"))


class KeepsRevokedKeysForAWhile(Handmade):
    """Keys are cached by their first use, and a revoked one goes on working."""

    machine = "api-keys"

    def find_key(self, secret: str) -> Row | None:
        cache: dict[str, Row] = self.__dict__.setdefault("cache", {})
        found = super().find_key(secret)
        return cache.setdefault(secret, dict(found)) if found is not None else None


class AcceptsPublicKeys(Handmade):
    """A public key opens what the secret key does."""

    machine = "api-keys"

    def find_key(self, secret: str) -> Row | None:
        public = next((key for key in self.keys.values() if key["publicKey"] == secret), None)
        return public or super().find_key(secret)


class ListsSecretKeys(Handmade):
    """The list shows the secrets."""

    machine = "api-keys"

    def shown_key(self, key: Row) -> Row:
        return super().shown_key(key) | {"secretKeyDisplay": key["secretKey"]}


class RevokesKeysOfOthers(Handmade):
    """Revocation looks at the key's id alone."""

    machine = "api-keys"

    def revoke_key(self, business: str, id: str) -> Reply:
        return super().revoke_key(self.keys.get(id, {}).get("business", business), id)


class GivesLiveKeysBeforeKyc(Handmade):
    """A LIVE key is given to a business that is not approved."""

    machine = "api-keys"

    def is_approved(self, business: str) -> bool:
        return True


class ServesSuspendedBusinesses(Handmade):
    """Nobody looks whether a business is active."""

    machine = "api-keys"

    def ensure_active(self, business: str) -> None:
        """Every business is."""


class ShowsPaymentsOfOtherBusinesses(Handmade):
    """A payment is found by its reference, whoever asks."""

    machine = "businesses"

    def own(self, reference: str, business: str, environment: str) -> Row:
        return super().own(reference, self.find(reference)["business"], environment)


class ShowsLivePaymentsToSandboxKeys(Handmade):
    """A payment is found by its business, whichever environment."""

    machine = "businesses"

    def own(self, reference: str, business: str, environment: str) -> Row:
        return super().own(reference, business, self.find(reference)["environment"])


class TrustsEveryMerchant(Handmade):
    """Any merchant's token opens any business."""

    machine = "businesses"

    def admit_merchant(self, business: str) -> None:
        if self.bearer not in self.businesses.values():
            super().admit_merchant(business)


class LetsMerchantsAdminister(Handmade):
    """The realm of a token is not looked at."""

    machine = "businesses"

    def admit_admin(self) -> None:
        if self.bearer not in self.businesses.values():
            super().admit_admin()


class RemovesEndpointsOfOthers(Handmade):
    """An endpoint is removed by its id alone."""

    machine = "businesses"

    def remove_endpoint(self, business: str, id: str) -> Reply:
        return super().remove_endpoint(self.endpoints.get(id, {}).get("business", business), id)


class DisablesWithoutADrain(Handmade):
    """A disabled gateway is off at once."""

    machine = "gateways"

    def drain(self, gateway: Row) -> None:
        super().drain(gateway)
        gateway["status"] = "DISABLED"


class DrainsForEver(Handmade):
    """Nobody ends a drain."""

    machine = "gateways"

    def state(self, gateway: Row) -> str:
        return str(gateway["status"])


class DrainsForFiveMinutesLess(Handmade):
    """The drain window is 25 minutes long."""

    machine = "gateways"

    def drain(self, gateway: Row) -> None:
        super().drain(gateway)
        gateway["ends"] = self.now + timedelta(minutes=25)


class DeletesWhileItDrains(Handmade):
    """A gateway is deleted under the payments that it still settles."""

    machine = "gateways"

    def may_delete(self, gateway: Row) -> bool:
        return self.state(gateway) != "ACTIVE" and not gateway["isBuiltIn"]


class RoutesToDrainingGateways(Handmade):
    """New payments may still ask for a gateway that drains."""

    machine = "gateways"

    def check_gateway(self, business: str, environment: str, slug: str | None) -> None:
        if not any(g["slug"] == slug and self.state(g) == "DRAINING" for g in self.gateways.values()):
            super().check_gateway(business, environment, slug)


class OptsOutForEverybody(Handmade):
    """One business switches a gateway off for all."""

    machine = "gateways"

    def is_on(self, business: str, id: str) -> bool:
        return all(super(type(self), self).is_on(one, id) for one in self.businesses)


class ForgetsOptOutsWhenEnabled(Handmade):
    """Enabling a gateway brings it back to those who had opted out."""

    machine = "gateways"

    def enable_gateway(self, id: str) -> Reply:
        answer = super().enable_gateway(id)
        for business, gateway in list(self.settings):
            if gateway == id:
                self.settings[business, gateway] = {}
        return answer


class ShowsCredentials(Handmade):
    """A gateway's detail shows what was stored."""

    machine = "gateways"

    def shown_gateway(self, gateway: Row) -> Row:
        return super().shown_gateway(gateway) | {"credentials": gateway["credentials"]}


class HasTwoDefaults(Handmade):
    """A new default leaves the old one."""

    machine = "gateways"

    def keep_one_default(self, business: str, id: str) -> None:
        if self.settings[business, id].get("isEnabled") is False:
            self.settings[business, id]["isDefault"] = False


class KeepsTheDefaultThatIsOff(Handmade):
    """Switching an option off leaves it the default."""

    machine = "gateways"

    def keep_one_default(self, business: str, id: str) -> None:
        own = dict(self.settings[business, id])
        super().keep_one_default(business, id)
        self.settings[business, id] = own


class SignsParsedBodies(Handmade):
    """The signature is of the event as parsed and written again."""

    machine = "webhooks"

    def signed(self, endpoint: Row, id: str, body: bytes) -> dict[str, str]:
        return super().signed(endpoint, id, json.dumps(json.loads(body), indent=1).encode())


class SignsWithTheNewestSecret(Handmade):
    """One secret signs for all endpoints."""

    machine = "webhooks"

    def signed(self, endpoint: Row, id: str, body: bytes) -> dict[str, str]:
        return super().signed(list(self.endpoints.values())[-1], id, body)


class SignsWithTheSecretsText(Handmade):
    """The key is the text of the secret, not the bytes behind it."""

    machine = "webhooks"

    def signed(self, endpoint: Row, id: str, body: bytes) -> dict[str, str]:
        headers = super().signed(endpoint, id, body)
        content = f"{id}.{headers['webhook-timestamp']}.".encode() + body
        digest = hmac.new(endpoint["signingSecret"].encode(), content, hashlib.sha256).digest()
        value = "v1," + b64encode(digest).decode()
        return headers | {"webhook-signature": value, "X-Service-Signature": value}


class TriesOnce(Handmade):
    """An event that is not taken is lost."""

    machine = "webhooks"

    def deliver(self, one: Row) -> bool:
        return super().deliver(one) or True


class RenamesEventsOnRetry(Handmade):
    """Every try has another id, so that a receiver cannot tell a repeat."""

    machine = "webhooks"

    def deliver(self, one: Row) -> bool:
        one["event"]["id"] = f"evt-{next(self.numbers)}"
        return super().deliver(one)


class TellsOtherBusinesses(Handmade):
    """Every endpoint of the environment hears of every payment."""

    machine = "webhooks"

    def wants(self, endpoint: Row, payment: Row, kind: str) -> bool:
        return super().wants(endpoint | {"business": payment["business"]}, payment, kind)


class TellsLiveEndpointsOfSandbox(Handmade):
    """Sandbox events reach LIVE endpoints."""

    machine = "webhooks"

    def wants(self, endpoint: Row, payment: Row, kind: str) -> bool:
        return super().wants(endpoint | {"environment": payment["environment"]}, payment, kind)


class IgnoresSubscriptions(Handmade):
    """Every endpoint gets every event type."""

    machine = "webhooks"

    def wants(self, endpoint: Row, payment: Row, kind: str) -> bool:
        return super().wants(endpoint | {"events": []}, payment, kind)


class TellsRemovedEndpoints(Handmade):
    """A removed endpoint still gets events."""

    machine = "webhooks"

    def wants(self, endpoint: Row, payment: Row, kind: str) -> bool:
        return super().wants(endpoint | {"isActive": True}, payment, kind)

    def work(self) -> None:
        self.outbox = [one for one in self.outbox if not self.deliver(one)]


class BelievesUnsignedEvents(Handmade):
    """An event without a signature is taken."""

    machine = "settlement"

    def is_genuine(self, secret: str) -> bool:
        return "x-provider_a-signature" not in self.headers or super().is_genuine(secret)


class ChecksParsedEvents(Handmade):
    """The signature is compared with that of the body as parsed and written again."""

    machine = "settlement"

    def is_genuine(self, secret: str) -> bool:
        self.content = json.dumps(json.loads(self.content), separators=(",", ":")).encode()
        return super().is_genuine(secret)


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


BROKEN = Handmade.__subclasses__()
