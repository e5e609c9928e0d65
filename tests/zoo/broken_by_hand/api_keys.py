"""Services written by hand with one thing wrong each: API keys."""

from tests.zoo.by_hand import Handmade
from tests.zoo.hand_http import Reply, Row


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
