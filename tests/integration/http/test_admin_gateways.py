"""Administrators' operations on gateways over HTTP: answers, and refusals in their order of precedence."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import psycopg
import pytest
from payagg_testing.builders import a_business, a_payment, an_attempt

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.gateway_credentials import GatewayCredentials
from payagg.domain.attempt import AttemptState
from payagg.domain.health import Health
from payagg.domain.values import Environment
from tests.support.gateway_api import GatewayApi, a_gateway_api
from tests.support.gateway_world import DRAIN, TICK
from tests.support.http_world import refusal

pytestmark = pytest.mark.anyio

BUILT_IN = "/gw_builtin"
GONE = "/gw_unknown"


@pytest.fixture
async def api(store: PostgresStore) -> AsyncIterator[GatewayApi]:
    async with a_gateway_api(store) as api:
        yield api


@pytest.mark.rule(
    "GET /admin/gateways",
    "POST /admin/gateways",
    "GET /admin/gateways/{gatewayId}",
    "DELETE /admin/gateways/{gatewayId}",
    "POST /admin/gateways/{gatewayId}/enable",
    "POST /admin/gateways/{gatewayId}/disable",
    "GATEWAY_ALREADY_ENABLED",
    "GATEWAY_NOT_ACTIVE",
    "GATEWAY_IN_USE",
)
async def test_a_gateway_from_creation_to_deletion(api: GatewayApi) -> None:
    created = await api.admin("POST", json={"slug": "acme", "name": "Acme Pay", "description": "Cards"})
    assert (created.status_code, created.json()["success"]) == (201, True)
    gateway = created.json()["data"]
    assert (gateway["status"], gateway["isActive"], gateway["displayOrder"]) == ("DISABLED", False, 0)
    one = f"/{gateway['id']}"

    listed = (await api.admin("GET")).json()["data"]
    assert [g["slug"] for g in listed] == ["acme", "builtin", "provider_a", "provider_b"]
    assert [g["status"] for g in listed] == ["DISABLED", "ACTIVE", "DISABLED", "DISABLED"]

    enabled = (await api.admin("POST", one + "/enable")).json()["data"]
    assert (enabled["status"], enabled["isActive"]) == ("ACTIVE", True)
    assert refusal(await api.admin("POST", one + "/enable")) == (409, "GATEWAY_ALREADY_ENABLED", None)
    assert refusal(await api.admin("DELETE", one)) == (409, "GATEWAY_IN_USE", None)

    draining = (await api.admin("POST", one + "/disable")).json()["data"]
    assert draining["status"] == "DRAINING"
    assert draining["drainStartedAt"] == "2025-01-31T12:00:00Z"
    assert draining["drainEndsAt"] == "2025-01-31T12:30:00Z"
    assert refusal(await api.admin("POST", one + "/disable")) == (409, "GATEWAY_NOT_ACTIVE", None)
    api.clock.move(DRAIN - TICK)
    assert refusal(await api.admin("DELETE", one)) == (409, "GATEWAY_IN_USE", None)

    api.clock.move(TICK)
    detail = (await api.admin("GET", one)).json()["data"]
    assert (detail["status"], detail["drainEndsAt"], detail["overrides"]) == ("DISABLED", None, [])
    deleted = await api.admin("DELETE", one)
    assert (deleted.status_code, set(deleted.json()["data"])) == (200, {"message"})
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/enable"), ("POST", "/disable")):
        answer = await api.admin(method, one + path, **({"json": {}} if method == "PATCH" else {}))
        assert refusal(answer) == (404, "NOT_FOUND", None)
    assert (await api.admin("POST", json={"slug": "acme", "name": "Again"})).status_code == 201


@pytest.mark.rule("GATEWAY_SLUG_EXISTS")
async def test_the_body_of_a_creation_is_looked_at_before_its_slug_is_looked_up(api: GatewayApi) -> None:
    for slug in ("builtin", "sandbox"):
        assert refusal(await api.admin("POST", json={"slug": slug, "name": "x"})) == (400, "VALIDATION_ERROR", "name")
        answer = await api.admin("POST", json={"slug": slug, "name": "Acme"})
        assert refusal(answer) == (409, "GATEWAY_SLUG_EXISTS", "slug")
    answer = await api.admin("POST", json={"slug": "acme\n", "name": "Acme"})
    assert refusal(answer) == (400, "VALIDATION_ERROR", "slug")
    not_json = await api.admin("POST", data={"slug": "acme", "name": "Acme"})
    assert refusal(not_json)[:2] == (400, "VALIDATION_ERROR")


@pytest.mark.rule("GATEWAY_BUILT_IN")
async def test_the_built_in_is_protected(api: GatewayApi) -> None:
    assert refusal(await api.admin("PATCH", BUILT_IN, json={"name": "Mine"})) == (400, "VALIDATION_ERROR", "name")
    answer = await api.admin("PATCH", BUILT_IN, json={"description": None})
    assert refusal(answer) == (400, "VALIDATION_ERROR", "description")
    assert (await api.admin("PATCH", BUILT_IN, json={"displayOrder": 4})).json()["data"]["displayOrder"] == 4
    assert refusal(await api.admin("POST", BUILT_IN + "/enable")) == (409, "GATEWAY_ALREADY_ENABLED", None)
    assert refusal(await api.admin("POST", BUILT_IN + "/disable")) == (409, "GATEWAY_BUILT_IN", None)
    assert refusal(await api.admin("DELETE", BUILT_IN)) == (409, "GATEWAY_BUILT_IN", None)


@pytest.mark.rule("options.8", "PATCH /admin/gateways/{gatewayId}")
async def test_a_patch_tells_null_from_absent(api: GatewayApi) -> None:
    created = await api.admin("POST", json={"slug": "acme", "name": "Acme", "description": "Cards", "displayOrder": 3})
    one = f"/{created.json()['data']['id']}"
    assert (await api.admin("PATCH", one, json={})).json() == {"success": True, "data": created.json()["data"]}
    cleared = (await api.admin("PATCH", one, json={"description": None, "displayOrder": None})).json()["data"]
    assert (cleared["description"], cleared["name"], cleared["displayOrder"]) == (None, "Acme", 3)
    assert refusal(await api.admin("PATCH", one, json={"name": None})) == (400, "VALIDATION_ERROR", "name")


@pytest.mark.rule("GET /admin/gateways/{gatewayId}/merchants")
async def test_merchants_come_in_pages(api: GatewayApi) -> None:
    async with api.services.store.begin() as tx:
        for number in range(24):
            await tx.businesses.add(a_business(f"b{number:02}", f"Shop {number:02}"))
    first = (await api.admin("GET", BUILT_IN + "/merchants")).json()
    assert first["meta"] == {"page": 1, "perPage": 20, "total": 25}
    assert len(first["data"]) == 20
    last = (await api.admin("GET", BUILT_IN + "/merchants?page=3&perPage=10&search=SHOP")).json()
    assert (len(last["data"]), last["meta"]) == (5, {"page": 3, "perPage": 10, "total": 25})
    literal = (await api.admin("GET", BUILT_IN + "/merchants", params={"search": "%"})).json()
    assert (literal["data"], literal["meta"]["total"]) == ([], 0)


@pytest.mark.rule("gateways.11", "PATCH /admin/gateways/{gatewayId}/credentials")
async def test_credentials_are_taken_and_never_given_back(api: GatewayApi) -> None:
    one = f"/{await api.an_active()}"
    whole = {f"k{number}": "\U0001f600" * 4000 for number in range(49)} | {"secret": "sk_live_0123456789"}
    answer = await api.admin("PATCH", one + "/credentials", json={"credentials": whole})
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    for answer in (
        await api.admin("GET"),
        await api.admin("GET", one),
        await api.admin("PATCH", one, json={"displayOrder": 1}),
        await api.admin("GET", one + "/merchants"),
        await api.merchant("GET"),
    ):
        assert answer.status_code == 200
        assert "sk_live" not in answer.text
    assert (await api.admin("GET", one)).json()["data"]["hasCredentials"] is True
    answer = await api.admin(
        "PATCH", "/gw_provider_a/credentials", json={"credentials": {"liveSecretKey": "sk_test_1"}}
    )
    assert refusal(answer) == (400, "VALIDATION_ERROR", "credentials.liveSecretKey")
    assert "sk_test_1" not in answer.text


@pytest.mark.rule("gateways.22")
async def test_names_that_are_not_sent_again_are_gone_and_a_header_says_which(api: GatewayApi) -> None:
    one = f"/{await api.an_active()}/credentials"
    whole = {"liveSecretKey": "a", "sandboxSecretKey": "b", "na\u00efve": "c", "two words": "d", "x" * 65: "e"}
    first = await api.admin("PATCH", one, json={"credentials": whole})
    assert "credentials-removed" not in first.headers
    second = await api.admin("PATCH", one, json={"credentials": {"other": "z"}})
    assert (second.status_code, second.json()) == (200, {"success": True})
    assert second.headers["credentials-removed"] == "liveSecretKey, sandboxSecretKey"
    third = await api.admin("PATCH", one, json={"credentials": {"other": "y"}})
    assert "credentials-removed" not in third.headers


async def test_a_header_counts_the_attempts_that_another_account_leaves_behind(api: GatewayApi) -> None:
    keys = {"sandboxSecretKey": "sk_test_" + "a" * 40}

    async def left_by(**changes: str) -> str | None:
        answer = await api.admin("PATCH", "/gw_provider_a/credentials", json={"credentials": {**keys, **changes}})
        assert (answer.status_code, answer.json()) == (200, {"success": True})
        left: str | None = answer.headers.get("open-attempts")
        return left

    assert await left_by() is None
    async with api.services.store.begin() as tx:
        gateway = await tx.gateways.get("gw_provider_a")
    assert gateway is not None
    credentials = GatewayCredentials(api.services.gateways.vault, api.services.gateways.providers)
    account = credentials.accounts(gateway)[Environment.SANDBOX]
    payment, now = a_payment(), api.clock.now()
    await api.services.store.add_payment(payment)
    async with api.services.store.begin() as tx:
        await tx.payments.add_attempt(an_attempt(payment, 1, account=account, next_ask_at=now))
        await tx.payments.add_attempt(an_attempt(payment, 2, AttemptState.REFUSED, account=account, next_ask_at=None))
    assert await left_by(sandboxWebhookSecret="w" * 40) is None  # the same account
    assert await left_by(sandboxSecretKey="sk_test_" + "b" * 40) == "1"
    assert await left_by() is None  # its account is on file again


@pytest.mark.rule("POST /admin/gateways/{gatewayId}/credentials/end-overlap")
async def test_an_administrator_ends_the_overlap_of_replaced_signing_secrets(api: GatewayApi) -> None:
    for key in ("sk_live_1", "sk_live_2"):
        body = {"credentials": {"liveSecretKey": key}}
        assert (await api.admin("PATCH", "/gw_provider_a/credentials", json=body)).status_code == 200

    async def is_kept() -> bool:
        async with api.services.store.begin() as tx:
            gateway = await tx.gateways.get("gw_provider_a")
        return gateway is not None and gateway.replaced_secrets is not None

    assert await is_kept()
    until = api.services.clock.now() + timedelta(hours=24)
    told = []
    for _ in range(2):
        ended = await api.admin("POST", "/gw_provider_a/credentials/end-overlap")
        assert ended.status_code == 200
        told.append(ended.json()["data"]["endedSecrets"])
        assert not await is_kept()
    ((environment, valid_until),) = [(one["environment"], one["validUntil"]) for one in told[0]]
    assert environment == "LIVE"
    assert abs(datetime.fromisoformat(valid_until) - until) < timedelta(minutes=10)
    assert told[1] == []
    assert refusal(await api.admin("POST", GONE + "/credentials/end-overlap")) == (404, "NOT_FOUND", None)


@pytest.mark.rule("gateways.12")
@pytest.mark.error_lines("credentials do not open")
async def test_swapped_ciphertexts_open_nowhere_and_stop_only_their_own_gateways(
    api: GatewayApi, database_url: str
) -> None:
    keys = {
        "gw_provider_a": {"sandboxSecretKey": "sk_test_" + "a" * 40},
        "gw_provider_b": {"sandboxPublicKey": "PZ78-PKTEST-" + "B" * 36, "sandboxSigningSecret": "s" * 32},
    }
    for gateway_id, credentials in keys.items():
        answer = await api.admin("PATCH", f"/{gateway_id}/credentials", json={"credentials": credentials})
        assert answer.status_code == 200, answer.text
        await api.admin("POST", f"/{gateway_id}/enable")
    payment = a_payment(now=api.clock.now())
    await api.services.store.add_payment(payment)

    async def reasons() -> dict[str, str | None]:
        answer = await api.client.get(f"/public/payments/{payment.reference}/gateways")
        assert answer.status_code == 200, answer.text
        return {option["slug"]: option["unavailableReason"] for option in answer.json()["data"]["gateways"]}

    assert await reasons() == {"builtin": "NOT_CONFIGURED", "provider_a": None, "provider_b": None, "sandbox": None}
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute(
            "UPDATE gateways g SET credentials = o.credentials FROM gateways o"
            " WHERE g.id = 'gw_provider_a' AND o.id = 'gw_provider_b'"
        )
    assert await reasons() == {
        "builtin": "NOT_CONFIGURED",
        "provider_a": "NOT_CONFIGURED",
        "provider_b": None,
        "sandbox": None,
    }


@pytest.mark.rule("GET /admin/gateways/{gatewayId}/readiness")
async def test_readiness_says_what_stands_between_a_gateway_and_a_payment(api: GatewayApi) -> None:
    async def readiness(gateway_id: str) -> tuple[bool, int, dict[str, str | None]]:
        answer = await api.admin("GET", f"/{gateway_id}/readiness")
        assert answer.status_code == 200, answer.text
        data = answer.json()["data"]
        reasons = {one["environment"]: one["unavailableReason"] for one in data["environments"]}
        return data["hasProcessor"], data["openAttempts"], reasons

    provider_a = (await api.admin("GET", "/gw_provider_a/readiness")).json()["data"]["credentialNames"]
    assert provider_a[:4] == ["sandboxSecretKey", "sandboxWebhookSecret", "sandboxBaseUrl", "sandboxEnabled"]
    assert provider_a[4:] == [name.replace("sandbox", "live") for name in provider_a[:4]]
    nothing = {"SANDBOX": "NOT_CONFIGURED", "LIVE": "NOT_CONFIGURED"}
    assert await readiness(await api.an_active()) == (False, 0, nothing)
    assert await readiness("gw_provider_a") == (True, 0, nothing)
    keys = {"sandboxSecretKey": "sk_test_" + "a" * 40, "liveSecretKey": "sk_live_" + "b" * 40, "liveEnabled": "false"}
    await api.admin("PATCH", "/gw_provider_a/credentials", json={"credentials": keys})
    assert await readiness("gw_provider_a") == (True, 0, {"SANDBOX": None, "LIVE": "DISABLED"})
    now = api.clock.now()
    async with api.services.store.begin() as tx:
        await tx.health.lock("provider_a", Environment.SANDBOX)
        await tx.health.save(Health("provider_a", Environment.SANDBOX, 5, now + TICK, Health.FIRST_PAUSE))
    await api.services.store.add_payment(a_payment())
    attempt = an_attempt(next_ask_at=now)
    async with api.services.store.begin() as tx:
        await tx.payments.add_attempt(attempt)
    assert await readiness("gw_provider_a") == (True, 1, {"SANDBOX": "UNHEALTHY", "LIVE": "DISABLED"})
    assert refusal(await api.admin("GET", GONE + "/readiness")) == (404, "NOT_FOUND", None)
