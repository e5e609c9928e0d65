"""Drives gateways with requests beside a model, and compares what administrators, businesses and payments see."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from payagg_testing.conformance.base import ConformanceMachine
from payagg_testing.conformance.expectation import ABSENT, among, has, lacks, matches
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.statements import tries

DRAIN = timedelta(minutes=30)
INSTANT = r"\d{4}-\d\d-\d\dT.+"


@dataclass
class ModelGateway:
    """One gateway in the words of the interface; `settings` are those of each business that made some."""

    slug: str
    name: str
    status: str = "DISABLED"
    draining: timedelta | None = None  # since when
    order: int = 0
    has_credentials: bool = False
    businesses: int | None = None  # that use it, while nobody of ours has opted out
    opted_out: set[int] = field(default_factory=set)

    @property
    def visible_status(self) -> str:
        is_drained = self.draining is not None and self.draining >= DRAIN
        return "DISABLED" if is_drained else self.status


class GatewaysByUrl(ConformanceMachine):
    def __init__(self) -> None:
        super().__init__()
        self.gateways: dict[str, ModelGateway] = {}  # by id, those that were not deleted
        self.names = 0
        self.business_names: dict[int, str] = {}

    def teardown(self) -> None:
        """A gateway may only be deleted once it has drained: where the clock is not ours, some stay, DRAINING."""
        service, token = self.target.service, self.target.admin_token
        for id in self.gateways:
            service.send(ServiceCall("POST", f"/admin/gateways/{id}/disable", token))
        if service.can_wait and self.gateways:
            service.wait(DRAIN)
        for id, model in self.gateways.items():
            deleted = service.send(ServiceCall("DELETE", f"/admin/gateways/{id}", token))
            if deleted.status == 409:
                self.target.left_behind.append(f"the gateway {model.slug}, which drains")

    def active(self) -> list[str]:
        return [id for id, model in self.gateways.items() if model.visible_status == "ACTIVE"]

    def options(self, merchant: int, data: dict[str, Any] | None = None) -> list[str]:
        """The ids of a business's options, in the order of its list: the built-in one is the first."""
        listed = self.ask_as_owner(merchant, "lists the options", "GET", "/gateways", 200, data=data).data
        if not listed or listed[0].get("isBuiltIn") is not True:
            self.fail("the built-in option is not the first")
        return [option["id"] for option in listed]

    def settings(self, merchant: int, id: str, what: str, body: dict[str, Any], **also: Any) -> None:
        self.ask_as_owner(merchant, what, "PATCH", f"/gateways/{id}", 200, body=body, data=body | also)

    @tries("gateways.9")
    def agrees(self, id: str) -> None:
        """Administrators, businesses and payments see the gateway as the model says."""
        model = self.gateways.get(id)
        if model is None:
            self.admin("reads a deleted one", "GET", f"/{id}", 404)
            self.admin("lists the gateways", "GET", "", 200, data={"[*].id": lacks(id)})
            return
        overrides = [self.merchants[merchant].business_id for merchant in sorted(model.opted_out)]
        others = [self.merchants[merchant].business_id for merchant in self.owners if merchant not in model.opted_out]
        data: dict[str, Any] = {
            "status": model.visible_status,
            "isActive": model.visible_status == "ACTIVE",
            "name": model.name,
        }
        data |= {"displayOrder": model.order, "hasCredentials": model.has_credentials}
        data["overrides[*].businessId"] = (has(*overrides), lacks(*others))
        for merchant in model.opted_out:
            override = f"overrides[businessId={self.merchants[merchant].business_id}]"
            data[f"{override}.businessName"] = self.name(merchant) or matches(".+")
            data[f"{override}.updatedAt"] = matches(INSTANT)
        if model.businesses is not None:
            data["businessCount"] = model.businesses - len(model.opted_out)
        read = self.admin("reads it", "GET", f"/{id}", 200, data=data)
        model.businesses = read.data["businessCount"] + len(model.opted_out)
        self.merchants_agree(id, model)
        for merchant in self.owners:
            is_on = merchant not in model.opted_out
            listed = {f"[id={id}].isEnabled": is_on} if model.visible_status == "ACTIVE" else {"[*].id": lacks(id)}
            self.ask_as_owner(merchant, "lists the options", "GET", "/gateways", 200, data=listed)
            if "SANDBOX" in self.merchants[merchant].keys:
                self.payments_find(merchant, model)

    @tries("gateways.10")
    def merchants_agree(self, id: str, model: ModelGateway) -> None:
        """The administrator's list of businesses says who has the gateway switched off. That it shows those that never
        configured it, the interface does not say."""
        data: dict[str, Any] = {}
        for merchant in self.owners:
            row = f"[businessId={self.merchants[merchant].business_id}]"
            if name := self.name(merchant):
                data[f"{row}.businessName"] = among(name, ABSENT)
            data[f"{row}.isEnabled"] = among(merchant not in model.opted_out, ABSENT)
        listed = self.admin("lists its businesses", "GET", f"/{id}/merchants?perPage=100", 200, data=data)
        meta = listed.body.get("meta") or {}
        if (meta.get("page"), meta.get("perPage"), type(meta.get("total"))) != (1, 100, int):
            self.fail(f"the page is {meta}")
        shown = {row["businessId"] for row in listed.data}
        if len(shown) == meta["total"] and not {self.merchants[one].business_id for one in model.opted_out} <= shown:
            self.fail("a business that opted out is not listed")

    def name(self, merchant: int) -> str:
        """Of the business, as its key tells it."""
        key = self.merchants[merchant].keys.get("SANDBOX")
        if merchant not in self.business_names and key is not None:
            who = f"the server of business {merchant + 1} (SANDBOX)"
            told = self.ask(who, "asks what its key stands for", "GET", "/payments/context", 200, bearer=key)
            self.business_names[merchant] = told.data["businessName"]
        return self.business_names.get(merchant, "")

    def payments_find(self, merchant: int, model: ModelGateway) -> None:
        owner, body = self.merchants[merchant], {"amount": 5_000, "gateway": model.slug}
        status, code = 201, None
        if model.visible_status != "ACTIVE":
            status, code = 400, "GATEWAY_NOT_FOUND"
        elif merchant in model.opted_out:
            status, code = 400, "GATEWAY_DISABLED"
        who, what = f"the server of business {merchant + 1} (SANDBOX)", f"asks for {model.slug}"
        key, path = owner.keys["SANDBOX"], "/payments/initiate"
        answer = self.ask(who, what, "POST", path, status, bearer=key, body=body, code=code)
        if status == 201:
            path = f"/public/payments/{answer.data['reference']}/gateways"
            data = {"gateways[*].slug": has(model.slug)}
            self.ask("the payer", "looks at the options", "GET", path, 200, data=data)
