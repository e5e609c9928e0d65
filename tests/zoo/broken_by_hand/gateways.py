"""Services written by hand with one thing wrong each: gateways."""

from datetime import timedelta

from tests.zoo.by_hand import Handmade
from tests.zoo.hand_http import Reply, Row


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
