"""Webhooks: who is told what, signed with whose secret, again until it is taken; and at most five endpoints."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, multiple, rule

from payagg_testing.conformance.assumptions import OWN, form_of_events
from payagg_testing.conformance.base import ConformanceMachine
from payagg_testing.conformance.events import Signers, Wanted, wait_for_events
from payagg_testing.conformance.expectation import lacks, matches
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.statements import INBOX, OWNER_WITH_KEY, tries

ENDPOINTS: Bundle[str] = Bundle("endpoints")
LIMIT = 5
TYPES = ("payment.pending", "payment.success", "payment.failed", "payment.reversed")
ENVIRONMENTS = st.sampled_from(["SANDBOX", "SANDBOX", "LIVE"])
OUTCOMES, FAILURES = st.sampled_from(["SUCCESS", "FAILED", "REVERSED"]), st.sampled_from([0, 0, 1, 2])
EVENTS = st.sampled_from([(), (), TYPES[1:2], TYPES[2:]])
RETRY = timedelta(hours=3)  # longer than any of the first pauses between tries
OVERLAP = timedelta(hours=24)  # how long a replaced secret signs beside the new one
NO_ROUTE = (404, 405)
REAL_PAUSES = 600  # of a twentieth of a second each, where the clock is not ours
BAD_BODIES: list[dict[str, Any]] = [
    {"environment": "SANDBOX"},
    {"url": "no url", "environment": "SANDBOX"},
    {"url": "http://shop.example/hooks", "environment": "LIVE"},
    {"url": "https://shop.example/hooks", "environment": "TEST"},
    {"url": "https://shop.example/hooks", "environment": "SANDBOX", "description": "d" * 201},
    {"url": "https://shop.example/hooks", "environment": "SANDBOX", "secret": "mine"},
    {"url": "https://shop.example/hooks", "environment": "SANDBOX", "events": ["payment.eaten"]},
]


@dataclass
class ModelEndpoint:
    """An endpoint and everything that must have come there."""

    merchant: int
    environment: str
    path: str
    secrets: list[str]  # the newest first
    events: tuple[str, ...]
    is_active: bool = True
    rotated: timedelta = timedelta(0)  # when, of the time that passed in this history
    wanted: list[Wanted] = field(default_factory=list)
    signers: list[Signers] = field(default_factory=list)

    def add_secret(self, first: int, begins: timedelta, ends: timedelta) -> None:
        """Tries from number `first` on came between these times: both secrets sign for a day after a rotation. Of the
        instant at which that ends, and of a secret that was replaced twice, nothing is foreseen."""
        new, *old = self.secrets[:2]
        is_over, is_on = begins >= self.rotated + OVERLAP, ends < self.rotated + OVERLAP
        signers = Signers(first, [new, *old] if is_on else [new], old if is_over else [])
        self.signers = [each for each in self.signers if each.first < first] + [signers]


class WebhookConformance(ConformanceMachine):
    title = "webhooks"
    in_passing: ClassVar = dict.fromkeys(("webhooks.1", "webhooks.4", "webhooks.6"), ())

    needs = (INBOX, OWNER_WITH_KEY)

    def __init__(self) -> None:
        super().__init__()
        assert self.target.inbox is not None
        self.inbox = self.target.inbox
        self.endpoints: dict[str, ModelEndpoint] = {}
        self.others: dict[int, int] = {}  # active endpoints that were there before, by merchant
        self.references: list[str] = []
        self.failures = 0
        self.elapsed = timedelta(0)

    def teardown(self) -> None:
        for id, model in self.endpoints.items():
            owner = self.merchants[model.merchant]
            self.target.service.send(ServiceCall("DELETE", f"{owner.path}/webhooks/{id}?permanently=true", owner.token))

    def wait(self, duration: timedelta) -> None:
        super().wait(duration)
        self.elapsed += duration

    def active(self, merchant: int) -> int:
        if merchant not in self.others:
            listed = self.ask_as_owner(merchant, "lists the endpoints", "GET", "/webhooks", 200)
            self.others[merchant] = sum(row["isActive"] for row in listed.data)
        return self.others[merchant] + sum(m.is_active for m in self.endpoints.values() if m.merchant == merchant)

    @rule(target=ENDPOINTS, pick=st.integers(0, 1), environment=ENVIRONMENTS, events=EVENTS)
    def add(self, pick: int, environment: str, events: tuple[str, ...]) -> Any:
        return self._add(self.owners[pick % len(self.owners)], environment, events)

    def _add(self, merchant: int, environment: str, events: tuple[str, ...]) -> Any:
        if environment == "LIVE" and not self.inbox.url.startswith("https:"):
            return multiple()  # a LIVE endpoint must be https, and our inbox is not
        is_full = self.active(merchant) >= LIMIT
        path = f"/{self.nonce}/{len(self.endpoints) + 1}"
        body: dict[str, Any] = {"url": self.inbox.url + path, "environment": environment}
        if events:
            body["events"] = list(events)
        data = {**body, "isActive": True, "signingSecret": matches("whsec_.+"), "id": matches(".+")}
        what = f"adds a {environment} endpoint at {path.rpartition('/')[2]} for {', '.join(events) or 'all events'}"
        if is_full:
            self.ask_as_owner(merchant, what, "POST", "/webhooks", 409, body=body)
            return multiple()
        answer = self.ask_as_owner(merchant, what, "POST", "/webhooks", 201, body=body, data=data)
        id, secret = answer.data["id"], answer.data["signingSecret"]
        self.endpoints[id] = ModelEndpoint(merchant, environment, path, [secret], events or TYPES)
        self.endpoints[id].add_secret(0, self.elapsed, self.elapsed)
        listed = {
            f"[id={id}].secretLast4": secret[-4:],
            f"[id={id}].isActive": True,
            f"[id={id}]": lacks("signingSecret"),
        }
        self.ask_as_owner(merchant, "lists", "GET", "/webhooks", 200, data=listed)
        return id

    @rule()
    @tries("limits.8")
    def add_all(self) -> None:
        """Up to the limit and one more."""
        merchant = self.owners[0]
        for _ in range(LIMIT + 1 - self.active(merchant)):
            self._add(merchant, "SANDBOX", ())

    @rule(body=st.sampled_from(BAD_BODIES))
    @tries("limits.21", "webhooks.2")
    def add_badly(self, body: dict[str, Any]) -> None:
        code = "VALIDATION_ERROR"
        self.ask_as_owner(self.owners[0], "adds a bad endpoint", "POST", "/webhooks", 400, body=body, code=code)

    @rule(id=ENDPOINTS)
    def remove(self, id: str) -> None:
        """From then on nothing more comes there."""
        model = self.endpoints[id]
        if model.is_active:
            what = f"removes endpoint {model.path.rpartition('/')[2]}"
            self.ask_as_owner(model.merchant, what, "DELETE", f"/webhooks/{id}", 200)
            model.is_active = False
        data = {f"[id={id}].isActive": False}
        self.ask_as_owner(model.merchant, "lists the endpoints", "GET", "/webhooks", 200, data=data)

    @rule(id=ENDPOINTS, then_a_day_passes=st.booleans())
    def rotate(self, id: str, then_a_day_passes: bool) -> None:
        """From now on both secrets sign, after a day the new one alone. The interface names no such route: where there
        is none, it is not tried again."""
        model = self.endpoints[id]
        if not model.is_active or self.target.rotates_secrets is False:
            return
        what, path = f"rotates the secret of endpoint {model.path.rpartition('/')[2]}", f"/webhooks/{id}/rotate-secret"
        statuses = (200, 201) if self.target.rotates_secrets else (200, 201, *NO_ROUTE)
        answer = self.ask_as_owner(model.merchant, what, "POST", path, *statuses)
        self.target.rotates_secrets = answer.status not in NO_ROUTE
        if not self.target.rotates_secrets:
            return
        secret = answer.data.get("signingSecret")
        if not isinstance(secret, str) or not secret.startswith("whsec_") or secret in model.secrets:
            self.fail("rotation shows no new secret")
        self.raw_secrets.add(secret)
        model.secrets, model.rotated = [secret, *model.secrets], self.elapsed
        model.add_secret(len(self.inbox.deliveries_at(model.path)), self.elapsed, self.elapsed)
        data = {f"[id={id}].secretLast4": secret[-4:], f"[id={id}]": lacks("signingSecret")}
        self.ask_as_owner(model.merchant, "lists the endpoints", "GET", "/webhooks", 200, data=data)
        outcome = model.events[-1].partition(".")[2].upper()
        self._pay(model.merchant, outcome, False, 0)
        if then_a_day_passes and self.target.service.can_wait:
            self.wait(OVERLAP)
            self._pay(model.merchant, outcome, False, 0)

    @rule(pick=st.integers(0, 1), outcome=OUTCOMES, through_checkout=st.booleans(), failures=FAILURES)
    def pay(self, pick: int, outcome: str, through_checkout: bool, failures: int) -> None:
        """A payment comes to its end; endpoints may fail a few tries before they take an event."""
        self._pay(self.owners[pick % len(self.owners)], outcome, through_checkout, failures)

    def _pay(self, merchant: int, outcome: str, through_checkout: bool, failures: int) -> None:
        key, amount = self.merchants[merchant].keys["SANDBOX"], 5_000 + len(self.story.steps)
        who, path = f"the server of business {merchant + 1} (SANDBOX)", "/payments/initiate"
        body: dict[str, Any] = {"amount": amount}
        what, own = f"initiates a payment of {amount} kobo", f"/{self.nonce}/own-{amount}"
        if has_own := self.inbox.url.startswith("https:") and not failures:
            body["webhookUrl"] = self.inbox.url + own
        answer = self.ask(who, what, "POST", path, 201, bearer=key, body=body)
        reference = answer.data["reference"]
        self.references.append(reference)
        self.fail_some(failures, merchant, f"payment.{outcome.lower()}")
        path = f"/payments/{reference}"
        if through_checkout:
            card = {"gatewaySlug": "sandbox", "cardNumber": "4000000000000119"}
            self.ask("the payer", "chooses the simulator", "POST", f"/public{path}/process", 200, body=card)
            self.want("payment.pending", reference, amount, merchant)
        path, chosen = f"{path}/simulate", {"outcome": outcome}
        self.ask(who, f"simulates {outcome}", "POST", path, 200, bearer=key, body=chosen)
        self.want(f"payment.{outcome.lower()}", reference, amount, merchant)
        other, code = "SUCCESS" if outcome != "SUCCESS" else "FAILED", "PAYMENT_ALREADY_FINAL"
        self.ask(who, f"simulates {other}", "POST", path, 409, bearer=key, body={"outcome": other}, code=code)
        self.look_into_the_inbox()
        signing = [one for one in self.endpoints.values() if one.is_active and one.merchant == merchant]
        if has_own and any(one.environment == "SANDBOX" for one in signing) and OWN not in self.differs:
            came = [json.loads(each.body)["data"]["reference"] for each in self.inbox.deliveries_at(own)]
            if set(came) != {reference}:
                self.fail(f"at its own address came {len(came)} events", assumption=OWN)

    def fail_some(self, failures: int, merchant: int, type: str) -> None:
        """Only where the event will come: how often it is tried before it is given up, the interface leaves open.
        Where time is real a retry takes some seconds: one or two in all are enough."""
        can_wait = self.target.service.can_wait
        failures = failures if can_wait else min(failures, 1 - self.failures)
        for model in self.endpoints.values() if failures > 0 else ():
            if not self.wants(model, merchant, type):
                continue
            self.failures += 1
            statuses = ", ".join(["500"] * failures)
            place = model.path.rpartition("/")[2]
            self.story.add_note(f"endpoint {place} will answer {statuses} first")
            self.inbox.answer(model.path, *[500] * failures)

    def wants(self, model: ModelEndpoint, merchant: int, type: str) -> bool:
        is_theirs = (model.merchant, model.environment) == (merchant, "SANDBOX")
        return model.is_active and is_theirs and type in model.events

    def want(self, type: str, reference: str, amount: int, merchant: int) -> None:
        for model in self.endpoints.values():
            if self.wants(model, merchant, type):
                model.wanted.append(Wanted(type, reference, amount, "SANDBOX"))

    def look_into_the_inbox(self) -> None:
        service, began = self.target.service, self.elapsed
        came = {id: len(self.inbox.deliveries_at(model.path)) for id, model in self.endpoints.items()}
        service.work()
        pauses = 8 if service.can_wait else REAL_PAUSES

        def pause() -> None:
            if service.can_wait:
                self.wait(RETRY)
            service.work()
            sign()

        def sign() -> None:
            for id, model in self.endpoints.items():
                model.add_secret(came[id], began, self.elapsed)

        sign()
        for model in self.endpoints.values():
            fault = wait_for_events(self.inbox, model.path, model.signers, model.wanted, self.references, pause, pauses)
            place = model.path.rpartition("/")[2]
            self.tried.update(["webhooks.1", "webhooks.4", "webhooks.6"] if model.wanted else [])
            if fault is not None:
                self.story.add_note(f"events at endpoint {place}")
                self.fail(f"endpoint {place}: {fault}", assumption=form_of_events(fault))
