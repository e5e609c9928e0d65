"""Gateways over HTTP, for administrators and for one business, with their logos; refusals in order of precedence; many
callers at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from payagg_testing.builders import AN_ADMIN, a_business, a_payment, an_attempt
from payagg_testing.clocks import ManualClock
from payagg_testing.provider_faults import FakeServers, Fault

from payagg.adapters.logos import ObjectLogos
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.gateways.seed import seed_gateways
from payagg.application.schemas.gateways import CreateGateway
from payagg.domain.business import Role
from payagg.domain.errors import Refusal
from payagg.domain.gateway import GatewayStatus
from payagg.domain.health import Health
from payagg.domain.values import Environment
from tests.support.assembly import named, services_over
from tests.support.audit_trail import entries
from tests.support.gateway_world import DRAIN, TICK, GatewayWorld, files_under
from tests.support.http_world import Api, admin_token, an_api, bearer, merchant_token, refusal
from tests.support.images import HOSTILE, a_png_of, an_image
from tests.support.provider_rigs import credentials_a, credentials_b, fakes_running

BUILT_IN = "/gw_builtin"
GONE = "/gw_unknown"


class GatewayApi(Api):
    """With `biz_1`, whose owner is `ada`, the seeded gateways and a clock that stands still."""

    @property
    def clock(self) -> ManualClock:
        assert isinstance(self.services.clock, ManualClock)
        return self.services.clock

    async def admin(self, method: str, path: str = "", **more: Any) -> httpx.Response:
        headers = bearer(admin_token()) | more.pop("headers", {})
        return await self.client.request(method, f"/admin/gateways{path}", headers=headers, **more)

    async def merchant(self, method: str, path: str = "", **more: Any) -> httpx.Response:
        path = f"/merchant/businesses/biz_1/gateways{path}"
        return await self.client.request(method, path, headers=bearer(merchant_token("ada")), **more)

    async def an_active(self, slug: str = "acme", **fields: Any) -> str:
        """The id of a new gateway that was enabled."""
        created = await self.admin("POST", json={"slug": slug, "name": "Acme Pay", **fields})
        gateway_id: str = created.json()["data"]["id"]
        assert (await self.admin("POST", f"/{gateway_id}/enable")).status_code == 200
        return gateway_id

    async def upload(self, gateway_id: str, content: bytes) -> httpx.Response:
        return await self.admin("POST", f"/{gateway_id}/logo", files={"file": ("logo.png", content, "image/png")})


@pytest.fixture
async def api(store: PostgresStore) -> AsyncIterator[GatewayApi]:
    services = services_over(store, clock=ManualClock())
    await seed_gateways(services.gateways, "builtin", named("provider_a", "provider_b"))
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.members.add("biz_1", "ada", Role.OWNER)
    async with an_api(services) as api:
        yield GatewayApi(services, api.origin, api.client)


@pytest.mark.rule("GATEWAY_ALREADY_ENABLED", "GATEWAY_NOT_ACTIVE", "GATEWAY_IN_USE", "GATEWAY_SLUG_EXISTS", "options.8")
@pytest.mark.rule("gateways.1", "gateways.2", "gateways.3")
@pytest.mark.rule("GET /admin/gateways", "POST /admin/gateways", "GET /admin/gateways/{gatewayId}")
@pytest.mark.rule("PATCH /admin/gateways/{gatewayId}", "DELETE /admin/gateways/{gatewayId}")
@pytest.mark.rule("POST /admin/gateways/{gatewayId}/enable", "POST /admin/gateways/{gatewayId}/disable")
async def test_a_gateway_from_creation_to_deletion(api: GatewayApi) -> None:
    created = await api.admin("POST", json={"slug": "acme", "name": "Acme Pay", "description": "Cards"})
    assert (created.status_code, created.json()["success"]) == (201, True)
    gateway = created.json()["data"]
    assert (gateway["status"], gateway["isActive"], gateway["displayOrder"]) == ("DISABLED", False, 0)
    assert (gateway["isBuiltIn"], gateway["hasCredentials"], gateway["description"]) == (False, False, "Cards")
    one = f"/{gateway['id']}"

    listed = {one["slug"]: one["status"] for one in (await api.admin("GET")).json()["data"]}
    off = dict.fromkeys(("acme", "provider_a", "provider_b"), "DISABLED")
    assert (list(listed), listed) == (sorted(listed), {**off, "builtin": "ACTIVE"})
    for slug in ("builtin", "sandbox"):  # the body is looked at before its slug is looked up
        assert refusal(await api.admin("POST", json={"slug": slug, "name": "x"})) == (400, "VALIDATION_ERROR", "name")
        answer = await api.admin("POST", json={"slug": slug, "name": "Acme"})
        assert refusal(answer) == (409, "GATEWAY_SLUG_EXISTS", "slug")
    assert (await api.admin("PATCH", one, json={})).json() == {"success": True, "data": gateway}
    cleared = (await api.admin("PATCH", one, json={"description": None, "displayOrder": None})).json()["data"]
    assert (cleared["description"], cleared["name"], cleared["displayOrder"]) == (None, "Acme Pay", 0)
    assert refusal(await api.admin("PATCH", one, json={"name": None})) == (400, "VALIDATION_ERROR", "name")

    enabled = (await api.admin("POST", one + "/enable")).json()["data"]
    assert (enabled["status"], enabled["isActive"]) == ("ACTIVE", True)
    assert refusal(await api.admin("POST", one + "/enable")) == (409, "GATEWAY_ALREADY_ENABLED", None)
    assert refusal(await api.admin("DELETE", one)) == (409, "GATEWAY_IN_USE", None)

    draining = (await api.admin("POST", one + "/disable")).json()["data"]
    drain = {"status": "DRAINING", "drainStartedAt": "2025-01-31T12:00:00Z", "drainEndsAt": "2025-01-31T12:30:00Z"}
    assert {**draining, **drain} == draining
    assert refusal(await api.admin("POST", one + "/disable")) == (409, "GATEWAY_NOT_ACTIVE", None)
    assert refusal(await api.admin("DELETE", one)) == (409, "GATEWAY_IN_USE", None)
    api.clock.move(DRAIN)
    detail = (await api.admin("GET", one)).json()["data"]
    assert (detail["status"], detail["drainEndsAt"], detail["overrides"]) == ("DISABLED", None, [])
    deleted = await api.admin("DELETE", one)
    assert (deleted.status_code, set(deleted.json()["data"])) == (200, {"message"})
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/enable"), ("POST", "/disable")):
        answer = await api.admin(method, one + path, **({"json": {}} if method == "PATCH" else {}))
        assert refusal(answer) == (404, "NOT_FOUND", None)
    assert (await api.admin("POST", json={"slug": "acme", "name": "Again"})).status_code == 201


async def test_every_slug_of_another_form_is_told_the_same_form(api: GatewayApi) -> None:
    words = "Must be lower-case letters and digits, in groups joined by single hyphens."
    for slug in ("Acme", "acme-", "acme--pay", "acme_pay", "acme\n", "é1"):
        error = (await api.admin("POST", json={"slug": slug, "name": "Acme"})).json()["error"]
        assert error == {"code": "VALIDATION_ERROR", "message": words, "field": "slug"}


@pytest.mark.rule("GATEWAY_BUILT_IN", "gateways.4")
async def test_the_built_in_is_protected(api: GatewayApi) -> None:
    for field, value in (("name", "Mine"), ("description", None)):
        assert refusal(await api.admin("PATCH", BUILT_IN, json={field: value})) == (400, "VALIDATION_ERROR", field)
    assert (await api.admin("PATCH", BUILT_IN, json={"displayOrder": 4})).json()["data"]["displayOrder"] == 4
    assert refusal(await api.admin("POST", BUILT_IN + "/enable")) == (409, "GATEWAY_ALREADY_ENABLED", None)
    for answer in (await api.admin("POST", BUILT_IN + "/disable"), await api.admin("DELETE", BUILT_IN)):
        assert refusal(answer) == (409, "GATEWAY_BUILT_IN", None)


@pytest.mark.rule("gateways.11", "gateways.22", "PATCH /admin/gateways/{gatewayId}/credentials")
@pytest.mark.rule("POST /admin/gateways/{gatewayId}/credentials/end-overlap")
async def test_credentials_are_replaced_in_full_and_never_given_back(api: GatewayApi) -> None:
    one = f"/{await api.an_active()}"

    async def put(credentials: dict[str, str], gateway: str = one) -> httpx.Response:
        return await api.admin("PATCH", gateway + "/credentials", json={"credentials": credentials})

    whole = {f"k{number}": "\U0001f600" * 4000 for number in range(45)}
    named = {"liveSecretKey": "sk_live_0123", "sandboxSecretKey": "b"}
    first = await put(whole | named | {"na\u00efve": "c", "two words": "d", "x" * 65: "e"})
    assert (first.status_code, first.json()) == (200, {"success": True})
    assert "credentials-removed" not in first.headers
    shown = [await api.admin("GET", path) for path in ("", one, one + "/merchants")]
    for answer in (*shown, await api.admin("PATCH", one, json={"displayOrder": 1}), await api.merchant("GET")):
        assert (answer.status_code, "sk_live" in answer.text) == (200, False)
    assert (await api.admin("GET", one)).json()["data"]["hasCredentials"] is True
    assert (await put(whole | {"other": "z"})).headers["credentials-removed"] == "liveSecretKey, sandboxSecretKey"
    assert "credentials-removed" not in (await put(whole | {"other": "y"})).headers
    answer = await put({"liveSecretKey": "sk_test_1"}, "/gw_provider_a")
    assert refusal(answer) == (400, "VALIDATION_ERROR", "credentials.liveSecretKey")
    assert "sk_test_1" not in answer.text

    for key in ("sk_live_1", "sk_live_2"):
        assert (await put({"liveSecretKey": key}, "/gw_provider_a")).status_code == 200
    for told in ([{"environment": "LIVE", "validUntil": "2025-02-01T12:00:00Z"}], []):
        ended = await api.admin("POST", "/gw_provider_a/credentials/end-overlap")
        assert (ended.status_code, ended.json()["data"]["endedSecrets"]) == (200, told)
    assert refusal(await api.admin("POST", GONE + "/credentials/end-overlap")) == (404, "NOT_FOUND", None)


@pytest.mark.rule("POST /admin/gateways/{gatewayId}/credentials/test")
@pytest.mark.parametrize(("slug", "of"), [("provider_a", credentials_a), ("provider_b", credentials_b)])
async def test_a_provider_is_asked_whether_it_takes_the_credentials_on_file(
    api: GatewayApi, slug: str, of: Callable[[FakeServers], dict[str, str]]
) -> None:
    gateway = f"/gw_{slug}"

    async def tested(environment: str = "LIVE") -> httpx.Response:
        return await api.admin("POST", f"{gateway}/credentials/test", json={"environment": environment})

    assert refusal(await tested()) == (400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", None)
    async with fakes_running() as fakes:
        await api.admin("PATCH", f"{gateway}/credentials", json={"credentials": of(fakes)})
        assert (await tested()).json()["data"] == {"environment": "LIVE", "isAccepted": True, "fault": None}
        {"provider_a": fakes.paystack.book, "provider_b": fakes.payaza.book}[slug].faults.append(Fault.REFUSED_KEY)
        refused = (await tested("SANDBOX")).json()["data"]
        assert refused == {"environment": "SANDBOX", "isAccepted": False, "fault": "BAD_CREDENTIALS"}
    assert (await tested()).json()["data"]["fault"] == "UNREACHABLE"
    async with api.services.store.begin() as tx:
        assert [one for one in await tx.health.all() if one.faults] == []
    told = await entries(api.services.store, object_id=gateway[1:], action="gateway.test_credentials")
    # The clock stands still, so entries have no order.
    assert sorted(one.changes["environment"]["after"] for one in told) == ["LIVE", "LIVE", "SANDBOX"]
    for _ in range(8):
        await tested()
    assert refusal(await tested()) == (429, "RATE_LIMITED", None)
    assert refusal(await api.admin("POST", GONE + "/credentials/test", json={"environment": "LIVE"}))[0] == 404


@pytest.mark.rule("GET /admin/gateways/{gatewayId}/readiness")
async def test_readiness_says_what_stands_between_a_gateway_and_a_payment(api: GatewayApi) -> None:
    async def told(gateway_id: str = "gw_provider_a") -> Any:
        return (await api.admin("GET", f"/{gateway_id}/readiness")).json()["data"]

    async def readiness(*gateway_id: str) -> tuple[bool, int, dict[str, str | None]]:
        data = await told(*gateway_id)
        reasons = {one["environment"]: one["unavailableReason"] for one in data["environments"]}
        return data["hasProcessor"], data["openAttempts"], reasons

    own = ["SecretKey", "WebhookSecret", "BaseUrl", "Enabled"]
    assert (await told())["credentialNames"] == [prefix + name for prefix in ("sandbox", "live") for name in own]
    nothing = {"SANDBOX": "NOT_CONFIGURED", "LIVE": "NOT_CONFIGURED"}
    assert await readiness(await api.an_active()) == (False, 0, nothing)
    assert await readiness() == (True, 0, nothing)
    keys = {"sandboxSecretKey": "sk_test_" + "a" * 40, "liveSecretKey": "sk_live_" + "b" * 40, "liveEnabled": "false"}
    await api.admin("PATCH", "/gw_provider_a/credentials", json={"credentials": keys})
    assert await readiness() == (True, 0, {"SANDBOX": None, "LIVE": "DISABLED"})
    names = {one["environment"]: one["credentialsOnFile"] for one in (await told())["environments"]}
    assert names == {"SANDBOX": ["sandboxSecretKey"], "LIVE": ["liveEnabled", "liveSecretKey"]}
    now = api.clock.now()
    await api.services.store.add_payment(a_payment())
    async with api.services.store.begin() as tx:
        await tx.health.lock("provider_a", Environment.SANDBOX)
        await tx.health.save(Health("provider_a", Environment.SANDBOX, 5, now + TICK, Health.FIRST_PAUSE))
        await tx.attempts.add(an_attempt(next_ask_at=now))
    assert await readiness() == (True, 1, {"SANDBOX": "UNHEALTHY", "LIVE": "DISABLED"})
    assert refusal(await api.admin("GET", GONE + "/readiness")) == (404, "NOT_FOUND", None)


@pytest.mark.rule("options.1", "GET /merchant/businesses/{businessId}/gateways")
@pytest.mark.rule("PATCH /merchant/businesses/{businessId}/gateways/{gatewayId}")
async def test_a_business_lists_active_gateways_and_changes_how_it_sees_one(api: GatewayApi) -> None:
    acme = await api.an_active(displayOrder=7)
    assert (await api.admin("GET", f"/{acme}")).json()["data"]["displayOrder"] == 7
    listed = (await api.merchant("GET")).json()["data"]
    assert [(gateway["slug"], gateway["isEnabled"]) for gateway in listed] == [("builtin", True), ("acme", True)]
    chosen = {(gateway["isDefault"], gateway["businessDisplayOrder"], gateway["displayName"]) for gateway in listed}
    assert chosen == {(False, None, None)}
    body = {"isEnabled": True, "displayOrder": 2**31 - 1, "displayName": "d" * 50, "isDefault": True}
    gateway = (await api.merchant("PATCH", f"/{acme}", json=body)).json()["data"]
    shown = (gateway["businessDisplayOrder"], gateway["displayName"], gateway["isDefault"])
    assert shown == (2**31 - 1, "d" * 50, True)
    assert (await api.merchant("GET")).json()["data"][1] == gateway
    assert (await api.merchant("PATCH", f"/{acme}", json={"isEnabled": True})).json()["data"] == gateway
    off = (await api.merchant("PATCH", f"/{acme}", json={"isEnabled": False, "displayName": None})).json()["data"]
    assert (off["isEnabled"], off["isDefault"], off["displayName"]) == (False, False, None)
    answer = await api.merchant("PATCH", f"/{acme}", json={"isDefault": True})
    assert refusal(answer) == (400, "VALIDATION_ERROR", "isDefault")
    (override,) = (await api.admin("GET", f"/{acme}")).json()["data"]["overrides"]
    assert override == {"businessId": "biz_1", "businessName": "Ada's Shop", "updatedAt": "2025-01-31T12:00:00Z"}
    await api.admin("POST", f"/{acme}/disable")
    assert [gateway["slug"] for gateway in (await api.merchant("GET")).json()["data"]] == ["builtin"]


@pytest.mark.rule("options.4", "options.5", "POST /merchant/businesses/{businessId}/gateways/reorder")
async def test_a_reorder_is_refused_on_order_or_done_whole(api: GatewayApi) -> None:
    first, second = await api.an_active("first"), await api.an_active("second")

    def order(*ids: str) -> dict[str, object]:
        return {"order": [{"gatewayId": id, "displayOrder": place} for place, id in enumerate(ids)]}

    for body, field, words in (
        ({"order": []}, "order", ""),
        (order(*[first] * 101), "order", ""),
        ({"order": [{"gatewayId": first, "displayOrder": 0}, {"displayOrder": 1}]}, "order[1].gatewayId", ""),
        (order(first, second, first), "order", "order[2].gatewayId repeats one"),
        (order(first, "gw_provider_a"), "order", "order[1].gatewayId is not"),
        (order("gw_unknown", first), "order", "order[0].gatewayId is not"),
    ):
        answer = await api.merchant("POST", "/reorder", json=body)
        assert refusal(answer) == (400, "VALIDATION_ERROR", field)
        assert words in answer.json()["error"]["message"]
    assert [g["businessDisplayOrder"] for g in (await api.merchant("GET")).json()["data"]] == [None, None, None]
    third = await api.an_active("third")
    await api.merchant("POST", "/reorder", json={"order": [{"gatewayId": third, "displayOrder": 1}]})
    await api.merchant("PATCH", f"/{first}", json={"isEnabled": False, "displayName": "First"})
    moved = await api.merchant("POST", "/reorder", json=order(second, "gw_builtin", first))
    places = [(g["slug"], g["businessDisplayOrder"]) for g in moved.json()["data"]]
    assert (moved.status_code, places[0]) == (200, ("builtin", None))
    assert places[1:] == [("second", 0), ("third", 1), ("first", 2)]
    named = [(g["displayName"], g["isEnabled"]) for g in moved.json()["data"]]
    assert named == [*[(None, True)] * 3, ("First", False)]
    assert (await api.merchant("GET")).json() == moved.json()


TWO_MEBIBYTES = 2 * 1024 * 1024


async def public(api: GatewayApi, gateway_id: str) -> httpx.Response:
    return await api.client.get(f"/public/gateways/{gateway_id}/logo")


@pytest.mark.rule("limits.22", "gateways.25", "POST /admin/gateways/{gatewayId}/logo")
@pytest.mark.rule("GET /public/gateways/{gatewayId}/logo")
async def test_a_logo_is_served_as_sent_to_anyone_and_kept_for_an_hour(api: GatewayApi) -> None:
    acme = await api.an_active()
    for gateway_id in (acme, "gw_unknown", "..%2F..%2Fetc", "%00"):
        assert refusal(await public(api, gateway_id)) == (404, "NOT_FOUND", None)
    for kind, media_type in (("PNG", "image/png"), ("JPEG", "image/jpeg")):
        content = an_image(kind)
        uploaded = await api.upload(acme, content)
        url = {"logoUrl": f"/api/v1/public/gateways/{acme}/logo"}
        assert (uploaded.status_code, uploaded.json()) == (201, {"success": True, "data": url})
        served = await public(api, acme)
        told = {
            "content-type": media_type,
            "cache-control": "public, max-age=3600",
            "x-content-type-options": "nosniff",
        }
        assert (served.status_code, served.content) == (200, content)
        assert {name: served.headers[name] for name in told} == told
        assert "sandbox" in served.headers["content-security-policy"]
    for answer in (await api.admin("GET", f"/{acme}"), await api.admin("GET"), await api.merchant("GET")):
        assert f'"logoUrl":"/api/v1/public/gateways/{acme}/logo"' in answer.text
    await api.admin("POST", f"/{acme}/disable")
    assert (await public(api, acme)).status_code == 200
    api.clock.move(DRAIN)
    await api.admin("DELETE", f"/{acme}")
    assert refusal(await public(api, acme)) == (404, "NOT_FOUND", None)


@pytest.mark.rule("limits.12", "limits.13")
async def test_an_upload_is_told_by_its_bytes_alone_up_to_two_mebibytes(api: GatewayApi) -> None:
    for name in ("../../etc/passwd", "\u202egnp.exe"):
        files = {"file": (name, an_image("JPEG"), "image/svg+xml")}
        assert (await api.admin("POST", "/gw_builtin/logo", files=files)).status_code == 201, name
        path = (await api.admin("GET", "/gw_builtin")).json()["data"]["logoPath"]
        assert (path.startswith("gw_builtin/"), path.endswith(".jpg"), ".." in path) == (True, True, False)
        assert (await public(api, "gw_builtin")).headers["content-type"] == "image/jpeg"
    largest = a_png_of(TWO_MEBIBYTES)
    assert (await api.upload("gw_builtin", largest)).status_code == 201
    # Each hostile file is looked at in tests/unit/adapters/test_images.py.
    over = [an_image() + b"\0" * (size - len(an_image())) for size in (TWO_MEBIBYTES + 1, 8 * TWO_MEBIBYTES - 1000)]
    for content in (a_png_of(TWO_MEBIBYTES + 1), *over, *(HOSTILE[name]() for name in ("nothing", "an svg"))):
        assert refusal(await api.upload("gw_builtin", content)) == (400, "VALIDATION_ERROR", "file")
    assert (await public(api, "gw_builtin")).content == largest


async def test_the_body_must_be_a_whole_form_with_one_file(api: GatewayApi) -> None:
    path = "/gw_builtin/logo"
    image, end = an_image(), b"--b--\r\n"
    one = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n' + image + b"\r\n"
    other = b'--b\r\nContent-Disposition: form-data; name="note"\r\n\r\nhello\r\n'
    form = "multipart/form-data; boundary=b"
    junk = b"--b\r\n" + b"X-Junk: " + b"j" * 9000 + b"\r\n\r\n"
    refused = [(b"", None), (image, "image/png"), (b'{"file": "x"}', "application/json")]
    refused += [(one + end, "multipart/form-data"), (one + end, form + "b" * 4999)]
    refused += [
        (body, form) for body in (b"garbage", other + end, one[:-20], one + one + end, other * 20 + one + end, junk)
    ]
    for body, kind in refused:
        answer = await api.admin("POST", path, content=body, headers={"Content-Type": kind} if kind else {})
        assert refusal(answer) == (400, "VALIDATION_ERROR", "file"), (body[:60], kind)
    whole = await api.admin("POST", path, content=other + one + end, headers={"Content-Type": form})
    assert whole.status_code == 201


async def outcomes(*calls: Awaitable[Any]) -> Counter[str]:
    """How many calls succeeded and how many were refused with which code; anything else is raised."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Refusal):
            raise result
    return Counter(result.code.name if isinstance(result, Refusal) else "done" for result in results)


async def test_ended_drains_are_made_durable_and_locked_ones_left_for_the_next_round(store: PostgresStore) -> None:
    world = GatewayWorld(store)
    ids = await world.seeded("acme", "other")
    for slug in ("acme", "other"):
        await world.gateways.disable(ids[slug], by=AN_ADMIN)
    world.clock.move(DRAIN)
    async with store.begin() as tx:
        await tx.gateways.lock(ids["acme"])
        assert await world.gateways.end_drains() == 1
    assert (await world.stored(ids["acme"])).status is GatewayStatus.DRAINING
    assert await world.gateways.end_drains() == 1
    assert (await world.stored(ids["acme"])).status is GatewayStatus.DISABLED


async def test_of_changes_at_once_each_leaves_one_state_that_fits(store: PostgresStore, tmp_path: Path) -> None:
    world = GatewayWorld(store, logos=ObjectLogos(tmp_path))
    slugs = ["a1", "provider_a"]
    assert await outcomes(*(seed_gateways(world.gateways, "builtin", named(*slugs)) for _ in range(8))) == {"done": 8}
    listed = await world.gateways.list_gateways()
    assert [gateway.slug for gateway in listed] == ["builtin", *slugs]
    command = CreateGateway(slug="acme", name="Acme")
    created = await outcomes(*(world.gateways.create(command, by=AN_ADMIN) for _ in range(16)))
    assert created == {"done": 1, "GATEWAY_SLUG_EXISTS": 15}
    one = listed[1].id
    images = [an_image(kind, colour=colour) for kind in ("PNG", "JPEG") for colour in ("red", "green")]
    uploads = await outcomes(*(world.gateways.upload_logo(one, content, by=AN_ADMIN) for content in images))
    assert uploads == {"done": 4}
    path = (await world.stored(one)).logo_path
    assert [str(left.relative_to(tmp_path)) for left in files_under(tmp_path) if one in str(left)] == [path]
    gone = [gateway.id for gateway in await world.gateways.list_gateways() if gateway.slug == "acme"] * 8
    assert (await outcomes(*(world.gateways.delete(id, by=AN_ADMIN) for id in gone))) == {"done": 1, "NOT_FOUND": 7}
