"""API keys: five of them, shown once, each for one business and environment, and gone at once when revoked."""

from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from payagg_testing.conformance.base import ConformanceMachine
from payagg_testing.conformance.expectation import among, has, lacks, matches
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.statements import OWNER, SUSPENDED, UNAPPROVED, tries
from payagg_testing.conformance.target import ENVIRONMENTS

LIMIT = 5
REVOKED_LISTED = 20  # per environment
INSTANT = r"\d{4}-\d\d-\d\dT.+"
KYC = ("NOT_SUBMITTED", "PENDING", "UNDER_REVIEW", "APPROVED", "REJECTED")
INFIX = {"SANDBOX": "sand", "LIVE": "live"}
BAD_BODIES: list[dict[str, Any]] = [
    {},
    {"environment": "SANDBOX"},
    {"environment": "TEST", "name": "Server"},
    {"environment": "SANDBOX", "name": "S"},
    {"environment": "SANDBOX", "name": "S" * 101},
    {"environment": "SANDBOX", "name": "Server", "role": "admin"},
]
NO_KEYS = ["", "Server", "ssk_sand_", "ssk_sand_zz", "ssk_live_" + "0" * 48, "ssk_sand_" + "0" * 48]


@dataclass
class ModelKey:
    """One key as its business knows it."""

    id: str
    merchant: int
    environment: str
    name: str
    secret: str
    public: str
    is_active: bool = True
    is_used: bool = False


class ApiKeyConformance(ConformanceMachine):
    title = "API keys"
    in_passing: ClassVar = {"limits.7": ()}

    needs = (OWNER,)

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[ModelKey] = []
        self.revoked: list[ModelKey] = []  # in that order
        self.business_names: dict[int, str] = {}
        self.room: dict[tuple[int, str], int] = {}

    def teardown(self) -> None:
        """Keys that the machine made would fill the five of the next history."""
        for key in self.keys:
            if key.is_active:
                owner = self.merchants[key.merchant]
                self.target.service.send(ServiceCall("DELETE", f"{owner.path}/api-keys/{key.id}", owner.token))
                self.gone.add(key.id)

    def owner(self, number: int) -> int:
        return self.owners[number % len(self.owners)]

    def active(self, merchant: int, environment: str) -> int:
        """How many keys are active, those of the run included; the service is asked before the first of ours."""
        slot = (merchant, environment)
        if slot not in self.room:
            listed = self.ask_as_owner(merchant, "lists the keys", "GET", "/api-keys", 200)
            active = [record["id"] for record in listed.data[environment.lower()] if record["status"] == "ACTIVE"]
            if self.gone.intersection(active):
                self.fail("a key that was revoked is active")
            self.room[slot] = len(active)
        return self.room[slot] + sum(
            key.is_active for key in self.keys if (key.merchant, key.environment) == (merchant, environment)
        )

    @rule(number=st.integers(0, 1), environment=st.sampled_from(ENVIRONMENTS), name=st.sampled_from(["AB", "S" * 100]))
    @tries("keys.1")
    def generate(self, number: int, environment: str, name: str) -> None:
        self._generate(self.owner(number), environment, name)

    @rule(number=st.integers(0, 1), environment=st.sampled_from(ENVIRONMENTS))
    @tries("limits.6")
    def generate_all(self, number: int, environment: str) -> None:
        """Up to the limit and one more, which rules that draw singly would rarely reach."""
        merchant = self.owner(number)
        for _ in range(LIMIT + 1 - self.active(merchant, environment)):
            self._generate(merchant, environment, "Server")

    def _generate(self, merchant: int, environment: str, name: str) -> None:
        is_full = self.active(merchant, environment) >= LIMIT
        digits = f"{INFIX[environment]}_[0-9a-f]+"
        shape = {"name": name, "environment": environment, "secretKeyNote": matches(".+")}
        shape |= {"secretKey": matches(f"ssk_{digits}"), "publicKey": matches(f"spk_{digits}")}
        what, body = f"generates a {environment} key", {"environment": environment, "name": name}
        if is_full:
            self.ask_as_owner(merchant, what, "POST", "/api-keys", 409, body=body, code="KEY_LIMIT_REACHED")
            return
        answer = self.ask_as_owner(merchant, what, "POST", "/api-keys", 201, body=body, data=shape)
        data = answer.data
        self.story.secrets[data["secretKey"]] = f"<key {len(self.keys) + 1}, {environment} of business {merchant + 1}>"
        key = ModelKey(data["id"], merchant, environment, name, data["secretKey"], data["publicKey"])
        if any(key.id == other.id or key.secret == other.secret for other in self.keys):
            self.fail("a key was given out twice")
        self.keys.append(key)
        self.lists(merchant)
        self.use_key(key)
        self.lists(merchant)

    @rule(bad=st.sampled_from(BAD_BODIES))
    @tries("limits.20")
    def generate_badly(self, bad: dict[str, Any]) -> None:
        code = "VALIDATION_ERROR"
        self.ask_as_owner(self.owners[0], "asks for a bad key", "POST", "/api-keys", 400, body=bad, code=code)

    @rule(pick=st.integers(0, 9))
    @tries("keys.2")
    def revoke(self, pick: int) -> None:
        """Then at once nothing is done with it, and a second time is refused."""
        if not self.keys:
            return
        key = self.keys[pick % len(self.keys)]
        self.use_key(key)
        status, data = (200, {"message": matches(".+")}) if key.is_active else (409, None)
        what, path = f"revokes key {self.keys.index(key) + 1}", f"/api-keys/{key.id}"
        self.ask_as_owner(key.merchant, what, "DELETE", path, status, data=data)
        if key.is_active:
            key.is_active = False
            self.revoked.append(key)
        self.use_key(key)
        self.lists(key.merchant)

    @precondition(lambda self: not self.revoked)
    @rule(number=st.integers(0, 1), all_of_them=st.sampled_from([False, False, False, True]))
    def replace_often(self, number: int, all_of_them: bool) -> None:
        """As many are revoked as a list shows, and one more."""
        merchant, group = self.owner(number), ENVIRONMENTS[0]
        if not all_of_them or self.active(merchant, group) >= LIMIT:
            return
        body = {"environment": group, "name": "Server"}
        for _ in range(REVOKED_LISTED + 1):
            made = self.ask_as_owner(merchant, "generates a key", "POST", "/api-keys", 201, body=body).data
            self.ask_as_owner(merchant, "revokes it", "DELETE", f"/api-keys/{made['id']}", 200)
            key = ModelKey(made["id"], merchant, group, "Server", made["secretKey"], made["publicKey"], False)
            self.revoked.append(key)
        self.lists(merchant)
        self.tried.add("limits.7")

    @rule(pick=st.integers(0, 9))
    def use(self, pick: int) -> None:
        if self.keys:
            self.use_key(self.keys[pick % len(self.keys)])

    def use_key(self, key: ModelKey) -> None:
        """For every purpose, as a revoked key must fail for all of them."""
        who, owner = f"the server with key {self.keys.index(key) + 1}", self.merchants[key.merchant]
        own: dict[str, Any] = {"businessId": owner.business_id, "environment": key.environment}
        own["kycStatus"] = "APPROVED" if key.environment == "LIVE" else among(*KYC)
        own |= {"businessName": self.business_names.get(key.merchant, matches(".+"))}
        status, code = (200, None) if key.is_active else (401, "INVALID_API_KEY")
        what, path, data = "asks what it stands for", "/payments/context", None if code else own
        told = self.ask(who, what, "GET", path, status, bearer=key.secret, code=code, data=data)
        if code is None:
            self.business_names[key.merchant], key.is_used = told.data["businessName"], True
        if key.environment == "LIVE" and key.is_active:
            return
        status, code = (201, None) if key.is_active else (401, "INVALID_API_KEY")
        data = {"environment": key.environment} if key.is_active else None
        path, body = "/payments/initiate", {"amount": 5_000}
        self.ask(who, "initiates", "POST", path, status, bearer=key.secret, body=body, code=code, data=data)

    @rule(pick=st.integers(0, 9), no_key=st.sampled_from(NO_KEYS))
    @tries("access.21")
    def use_what_is_no_key(self, pick: int, no_key: str) -> None:
        context = "/payments/context"
        if no_key:
            self.ask("a stranger", "tries a guess", "GET", context, 401, bearer=no_key, code="INVALID_API_KEY")
        else:
            self.ask("a stranger", "asks without a key", "GET", context, 401, code="UNAUTHORIZED")
        if self.keys:
            public = self.keys[pick % len(self.keys)].public
            self.ask("a stranger", "tries a public key", "GET", context, 401, bearer=public, code="INVALID_API_KEY")

    @rule(pick=st.integers(0, 9))
    def revoke_of_another(self, pick: int) -> None:
        """Another business's owner cannot revoke a key, neither below the own path nor below the other's."""
        if not self.keys or len(self.owners) < 2:
            return
        key = self.keys[pick % len(self.keys)]
        stranger = next(number for number in self.owners if number != key.merchant)
        own, other = self.merchants[stranger], self.merchants[key.merchant]
        what, who = f"tries to revoke key {self.keys.index(key) + 1}", f"owner {stranger + 1}"
        self.ask_as_owner(stranger, what, "DELETE", f"/api-keys/{key.id}", 404)
        if own.token != other.token:
            self.ask(who, what, "DELETE", f"{other.path}/api-keys/{key.id}", 403, bearer=own.token)
        self.use_key(key)

    @rule()
    @tries("keys.3", needs=UNAPPROVED)
    def ask_before_kyc(self) -> None:
        """A business that is not approved gets sandbox keys, which work, and no LIVE one."""
        owner, who = self.target.unapproved, "the owner of a business before KYC"
        assert owner is not None
        path, body = f"{owner.path}/api-keys", {"environment": "LIVE", "name": "Server"}
        self.ask(who, "asks for a LIVE key", "POST", path, 403, bearer=owner.token, body=body, code="KYC_REQUIRED")
        body = {"environment": "SANDBOX", "name": "Server"}
        made = self.ask(who, "generates a SANDBOX key", "POST", path, 201, bearer=owner.token, body=body)
        secret, data = made.data["secretKey"], {"businessId": owner.business_id, "environment": "SANDBOX"}
        self.ask("its server", "asks what it stands for", "GET", "/payments/context", 200, bearer=secret, data=data)
        self.ask(who, "revokes it", "DELETE", f"{path}/{made.data['id']}", 200, bearer=owner.token)
        path, amount, code = f"{owner.path}/test-payment", {"amount": 5_000}, "NO_SANDBOX_KEY"
        self.ask(who, "tries a payment without a key", "POST", path, 400, bearer=owner.token, body=amount, code=code)

    @rule()
    @tries("webhooks.8", needs=SUSPENDED)
    def ask_while_suspended(self) -> None:
        """A business that is not active may read its endpoints and change nothing."""
        owner, who, code = self.target.suspended, "the owner of a suspended business", "BUSINESS_RESTRICTED"
        assert owner is not None
        path, body = f"{owner.path}/api-keys", {"environment": "SANDBOX", "name": "Server"}
        self.ask(who, "lists the keys", "GET", path, 403, bearer=owner.token, code=code)
        self.ask(who, "asks for a key", "POST", path, 403, bearer=owner.token, body=body, code=code)
        path, body = f"{owner.path}/webhooks", {"environment": "SANDBOX", "url": "https://shop.example/hooks"}
        self.ask(who, "lists the endpoints", "GET", path, 200, bearer=owner.token)
        self.ask(who, "adds an endpoint", "POST", path, 403, bearer=owner.token, body=body, code=code)

    def lists(self, merchant: int) -> None:
        """The list holds what the model holds, masked."""
        active = [key for key in self.keys if key.merchant == merchant and key.is_active]
        data: dict[str, Any] = {}
        for environment in ENVIRONMENTS:
            group = environment.lower()
            ids = [key.id for key in active if key.environment == environment]
            others = [key.id for key in self.keys if key.merchant != merchant or key.environment != environment]
            data[f"{group}[*].id"] = (has(*ids), lacks(*others))
            for key in self.keys:
                if key.merchant == merchant and key.environment == environment and key.is_active:
                    data[f"{group}[id={key.id}].status"] = "ACTIVE"
                    data[f"{group}[id={key.id}].secretKeyDisplay"] = matches(
                        rf"ssk_{INFIX[environment]}_\S*{key.secret[-4:]}"
                    )
                    data[f"{group}[id={key.id}].publicKey"] = key.public
                    data[f"{group}[id={key.id}].name"] = key.name
                    data[f"{group}[id={key.id}].createdAt"] = matches(INSTANT)
                    data[f"{group}[id={key.id}].lastUsedAt"] = matches(INSTANT) if key.is_used else None
            revoked = [key for key in self.revoked if (key.merchant, key.environment) == (merchant, environment)]
            data[f"{group}[*].id"] += (
                has(*(key.id for key in revoked[-REVOKED_LISTED:])),
                lacks(*(key.id for key in revoked[:-REVOKED_LISTED])),
            )
            for key in revoked[-1:]:
                data[f"{group}[id={key.id}].status"] = "REVOKED"
                data[f"{group}[id={key.id}].revokedAt"] = matches(INSTANT)
        self.ask_as_owner(merchant, "lists the keys", "GET", "/api-keys", 200, data=data)
