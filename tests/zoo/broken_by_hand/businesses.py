"""Services written by hand with one thing wrong each: isolation."""

from tests.zoo.by_hand import Handmade
from tests.zoo.hand_http import Reply, Row


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
