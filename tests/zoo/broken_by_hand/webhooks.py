"""Services written by hand with one thing wrong each: webhooks."""

import hashlib
import hmac
import json
from base64 import b64encode

from tests.zoo.by_hand import Handmade
from tests.zoo.hand_http import Row


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


class DropsTheOldSecretAtOnce(Handmade):
    """A secret that is rotated signs no more, though merchants still verify with it."""

    machine = "webhooks"

    def signing(self, endpoint: Row) -> list[str]:
        return super().signing(endpoint)[:1]


class SignsWithTheOldSecretForEver(Handmade):
    """A secret that was replaced goes on signing, and whoever stole it goes on being believed."""

    machine = "webhooks"

    def signing(self, endpoint: Row) -> list[str]:
        return [endpoint["signingSecret"], *endpoint.get("old", ())[:1]]


class RotatesOnTheNextDay(Handmade):
    """A new secret is shown, and the old one alone signs for a day."""

    machine = "webhooks"

    def signing(self, endpoint: Row) -> list[str]:
        return super().signing(endpoint)[-1:]
