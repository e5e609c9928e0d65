"""Gateways: their states with the drain between, what each business made of them, and what payments then find."""

from datetime import timedelta
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, rule

from payagg_testing.conformance.expectation import in_order, matches
from payagg_testing.conformance.gateways_by_url import DRAIN, INSTANT, GatewaysByUrl, ModelGateway
from payagg_testing.conformance.statements import ADMIN, CLOCK, OWNER, tries

GATEWAYS: Bundle[str] = Bundle("gateways")
SECRET_VALUE = "conformance-credential-"  # noqa: S105 - planted, to see that no answer shows it
BAD_CREATES: list[dict[str, Any]] = [
    {"name": "No slug"},
    {"slug": "UPPER", "name": "Acme"},
    {"slug": "a", "name": "Acme"},
    {"slug": "-acme", "name": "Acme"},
    {"slug": "acme--pay", "name": "Acme"},
    {"slug": "a" * 51, "name": "Acme"},
    {"slug": "acme-pay", "name": "A"},
    {"slug": "acme-pay", "name": "A" * 101},
    {"slug": "acme-pay", "name": "Acme", "displayOrder": -1},
    {"slug": "acme-pay", "name": "Acme", "description": "d" * 1001},
]
BAD_SETTINGS: list[dict[str, Any]] = [
    {"displayName": "D" * 51},
    {"isEnabled": "no"},
    {"displayOrder": -1},
    {"slug": "x"},
]
# Of options; ID stands for one that may be ordered.
BAD_ORDERS: list[list[dict[str, Any]]] = [
    [],
    [{"gatewayId": "ID"}],
    [{"displayOrder": 1}],
    [{"gatewayId": "ID", "displayOrder": -1}],
    [{"gatewayId": "no-such-gateway", "displayOrder": 1}],
    [{"gatewayId": "ID", "displayOrder": 1}] * 101,
]
BAD_PAGES = ["page=0", "perPage=0", "perPage=101", "page=one", "search=" + "s" * 101]
BAD_CREDENTIALS: list[Any] = [{}, {"key": 1}, {"key": "v" * 4001}, {f"k{n}": "v" for n in range(51)}]


class GatewayConformance(GatewaysByUrl):
    title = "gateways"
    in_passing: ClassVar = {"limits.5": (CLOCK,), "options.2": (OWNER,)}

    needs = (ADMIN,)

    @rule(target=GATEWAYS, enabled=st.sampled_from([True, True, False]))
    @tries("gateways.1")
    def create(self, enabled: bool) -> str:
        self.names += 1
        slug, name = f"g{self.names}-{self.nonce}", f"Gateway {self.names}"
        data = {"slug": slug, "name": name, "status": "DISABLED", "isActive": False, "isBuiltIn": False}
        data |= {"hasCredentials": False, "drainStartedAt": None, "drainEndsAt": None}
        body = {"slug": slug, "name": name}
        answer = self.admin(f"creates {slug}", "POST", "", 201, body=body, data=data)
        id: str = answer.data["id"]
        self.gateways[id] = ModelGateway(slug, name)
        if enabled:
            self.enable(id)
        return id

    @rule(id=GATEWAYS)
    @tries("gateways.2")
    def create_again(self, id: str) -> None:
        """A slug is taken as long as its gateway is there; the built-in one's is reserved."""
        if id in self.gateways:
            body = {"slug": self.gateways[id].slug, "name": "Twin"}
            self.admin("creates it again", "POST", "", 409, body=body)
        body = {"slug": self.target.builtin_slug, "name": "Mine"}
        self.admin("takes the built-in slug", "POST", "", 400, 409, body=body)

    @rule(body=st.sampled_from(BAD_CREATES))
    @tries("limits.15")
    def create_badly(self, body: dict[str, Any]) -> None:
        self.admin("creates a bad gateway", "POST", "", 400, body=body, code="VALIDATION_ERROR")

    @rule(id=GATEWAYS, name=st.sampled_from(["AB", "N" * 100]), order=st.sampled_from([0, 7]))
    def rename(self, id: str, name: str, order: int) -> None:
        model = self.gateways.get(id)
        if model is None:
            self.admin("renames a deleted one", "PATCH", f"/{id}", 404, body={"name": name})
            return
        self.admin("sets a status", "PATCH", f"/{id}", 400, body={"status": "ACTIVE"})
        model.name, model.order = name, order
        data = {"name": name, "displayOrder": order, "status": model.visible_status, "slug": model.slug}
        self.admin("renames it", "PATCH", f"/{id}", 200, body={"name": name, "displayOrder": order}, data=data)

    @rule(id=GATEWAYS)
    def enable(self, id: str) -> None:
        model = self.gateways.get(id)
        status = 404 if model is None else 409 if model.visible_status == "ACTIVE" else 200
        data = {"status": "ACTIVE", "isActive": True, "drainStartedAt": None} if status == 200 else None
        self.admin("enables it", "POST", f"/{id}/enable", status, data=data)
        if model is not None:
            model.status, model.draining = "ACTIVE", None
            self.agrees(id)

    @rule(id=GATEWAYS)
    def disable(self, id: str) -> None:
        model = self.gateways.get(id)
        status = 404 if model is None else 200 if model.visible_status == "ACTIVE" else 409
        data = {"status": "DRAINING", "isActive": False} if status == 200 else None
        if data is not None:
            data |= {"drainStartedAt": matches(INSTANT), "drainEndsAt": matches(INSTANT)}
        self.admin("disables it", "POST", f"/{id}/disable", status, data=data)
        if model is not None and status == 200:
            model.status, model.draining = "DRAINING", timedelta(0)
        if model is not None:
            self.agrees(id)

    @rule(id=GATEWAYS)
    @tries("gateways.8")
    def delete(self, id: str) -> None:
        model = self.gateways.get(id)
        status = 404 if model is None else 200 if model.visible_status == "DISABLED" else 409
        self.admin("deletes it", "DELETE", f"/{id}", status, data={"message": matches(".+")} if status == 200 else None)
        if status == 200:
            del self.gateways[id]
        self.agrees(id)

    @rule(duration=st.sampled_from([DRAIN / 2, DRAIN - timedelta(seconds=5), DRAIN]))
    @tries(needs=CLOCK)
    def time_passes(self, duration: timedelta) -> None:
        self.wait(duration)
        for id, model in self.gateways.items():
            if model.draining is not None:
                model.draining += duration
            self.agrees(id)

    @rule(id=GATEWAYS, count=st.sampled_from([1, 50]))
    @tries("gateways.11", "access.8")
    def store_credentials(self, id: str, count: int) -> None:
        """What no answer may ever show again, of this or any other route."""
        value = f"{SECRET_VALUE}{self.nonce}-{self.names}"
        self.raw_secrets.add(value)
        path, what = f"/{id}/credentials", "stores credentials"
        model = self.gateways.get(id)
        body = {"credentials": {f"key{n}": value for n in range(count)}}
        answer = self.admin(what, "PATCH", path, 200 if model else 404, body=body)
        if model is not None:
            if answer.body != {"success": True}:
                self.fail("the answer to credentials is more than success")
            model.has_credentials = True
            self.agrees(id)

    @rule(id=GATEWAYS, bad=st.sampled_from(BAD_CREDENTIALS))
    @tries("limits.14")
    def store_bad_credentials(self, id: str, bad: Any) -> None:
        if id in self.gateways:
            self.admin("stores bad credentials", "PATCH", f"/{id}/credentials", 400, body={"credentials": bad})

    @rule(id=GATEWAYS, pick=st.integers(0, 1), is_enabled=st.sampled_from([False, False, True]))
    @tries("gateways.7", needs=OWNER)
    def opt(self, id: str, pick: int, is_enabled: bool) -> None:
        """A business switches a gateway off or on, for itself alone."""
        merchant = self.owners[pick % len(self.owners)]
        model = self.gateways.get(id)
        if model is None or model.visible_status != "ACTIVE":
            return
        self.settings(merchant, id, "switches it " + ("on" if is_enabled else "off"), {"isEnabled": is_enabled})
        (model.opted_out.discard if is_enabled else model.opted_out.add)(merchant)
        self.agrees(id)

    @rule(id=GATEWAYS)
    def retire(self, id: str) -> None:
        """Disabled, and looked at just before and just after the end of its drain, then deleted."""
        model = self.gateways.get(id)
        if model is None or model.visible_status != "ACTIVE":
            return
        self.disable(id)
        if self.target.service.can_wait:
            self.time_passes(DRAIN - timedelta(seconds=5))
            self.delete(id)
            self.time_passes(timedelta(seconds=5))
            self.tried.add("limits.5")
            self.delete(id)

    @rule(id=GATEWAYS)
    @tries("gateways.6", needs=OWNER)
    def renew(self, id: str) -> None:
        """Enabled again after a business had switched it off: that stays as it was, and the drain is over for good."""
        self.opt(id, 0, False)
        self.disable(id)
        self.enable(id)
        if self.target.service.can_wait:
            self.time_passes(DRAIN)

    @rule(id=GATEWAYS, name=st.sampled_from(["Pay by card", "D" * 50, None]), then_off=st.booleans())
    @tries("options.3", "options.6", needs=OWNER)
    def choose_default(self, id: str, name: str | None, then_off: bool) -> None:
        """At most one option is the default, and switching it off ends that."""
        merchant, model = self.owners[0], self.gateways.get(id)
        if model is None or model.visible_status != "ACTIVE" or merchant in model.opted_out:
            return
        self.settings(merchant, id, "makes it the default", {"isDefault": True, "displayName": name})
        others = [other for other, one in self.gateways.items() if one.visible_status == "ACTIVE" and other != id]
        data: dict[str, Any] = {f"[id={id}].isDefault": True, f"[id={id}].displayName": name}
        data |= {f"[id={other}].isDefault": False for other in others}
        self.ask_as_owner(merchant, "lists the options", "GET", "/gateways", 200, data=data)
        if then_off:
            self.settings(merchant, id, "switches it off", {"isEnabled": False}, isDefault=False)
            model.opted_out.add(merchant)
            self.agrees(id)

    @rule(orders=st.permutations([2, 7, 10]))
    @tries("options.1", "options.4", "options.5", needs=OWNER)
    def reorder(self, orders: list[int]) -> None:
        """The business's own order, and nobody else's; the built-in entry is ignored and stays the first."""
        owner, what = self.owners[0], "reorders its options"
        before = self.options(owner)
        wanted = dict(zip(self.active(), orders, strict=False))
        if not wanted:
            return
        entries = {before[0]: 99, **wanted}
        body = {"order": [{"gatewayId": id, "displayOrder": order} for id, order in entries.items()]}
        data: dict[str, Any] = {f"[id={id}].businessDisplayOrder": order for id, order in wanted.items()}
        sorted_ids = sorted(wanted, key=wanted.__getitem__)
        if self.target.sorts_options:
            data["[*].id"] = in_order(*sorted_ids)
        self.ask_as_owner(owner, what, "POST", "/gateways/reorder", 200, body=body, data=data)
        after = [id for id in self.options(owner, data) if id in wanted]
        # That a list follows this order the interface does not say; where one was changed to do so, the next ones must.
        if after == sorted_ids != [id for id in before if id in wanted]:
            self.target.sorts_options = True
        for other in self.owners[1:]:
            others = {f"[id={id}].businessDisplayOrder": None for id in wanted}
            self.ask_as_owner(other, "lists the options", "GET", "/gateways", 200, data=others)
        left_out = [id for id, model in self.gateways.items() if model.visible_status != "ACTIVE"][:1]
        for id in left_out:
            body = {"order": [{"gatewayId": id, "displayOrder": 1}]}
            self.ask_as_owner(owner, f"{what}, one of them not active", "POST", "/gateways/reorder", 400, body=body)

    @rule(body=st.sampled_from(BAD_SETTINGS), orders=st.sampled_from(BAD_ORDERS))
    @tries("limits.16", "limits.17", needs=OWNER)
    def settle_badly(self, body: dict[str, Any], orders: list[dict[str, Any]]) -> None:
        for id in self.active()[:1]:
            self.ask_as_owner(self.owners[0], "asks for a bad setting", "PATCH", f"/gateways/{id}", 400, body=body)
            order = [{name: id if value == "ID" else value for name, value in each.items()} for each in orders]
            what, path = "asks for a bad order", "/gateways/reorder"
            self.ask_as_owner(self.owners[0], what, "POST", path, 400, body={"order": order})

    @rule(id=GATEWAYS, query=st.sampled_from(BAD_PAGES))
    @tries("limits.18", "limits.19")
    def ask_for_a_bad_page(self, id: str, query: str) -> None:
        if id in self.gateways:
            self.admin("asks for a page that cannot be", "GET", f"/{id}/merchants?{query}", 400)

    @rule()
    @tries("gateways.4", "gateways.5")
    def touch_the_built_in(self) -> None:
        """It can neither be disabled nor deleted, and no business can do without it."""
        listed = self.admin("lists the gateways", "GET", "", 200)
        built_in = next((row for row in listed.data if row.get("isBuiltIn")), None)
        if built_in is None:
            self.fail("the built-in gateway is not listed")
            return
        path = f"/{built_in['id']}"
        self.admin("disables the built-in", "POST", f"{path}/disable", 409)
        self.admin("deletes the built-in", "DELETE", path, 409)
        self.admin("renames the built-in", "PATCH", path, 400, 409, body={"name": "Mine"})
        for merchant in self.owners[:1]:
            what, path = "switches the built-in off", f"/gateways/{built_in['id']}"
            self.ask_as_owner(merchant, what, "PATCH", path, 400, body={"isEnabled": False})
            self.options(merchant)
            self.tried.add("options.2")
