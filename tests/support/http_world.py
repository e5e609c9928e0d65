"""The application on real HTTP over loopback, and merchants to call it."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
from payagg_testing.builders import AN_ADMIN

from payagg.application.gateways.seed import seed_gateways
from payagg.application.schemas.gateways import UpdateCredentials
from payagg.domain.api_key import ApiKey
from payagg.domain.business import Business, BusinessStatus, KycStatus, Role
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.app import Application, create_app
from payagg.entrypoints.http.server.middleware import BODY_SECONDS
from payagg.entrypoints.http.server.rate_limits import Limits
from payagg.entrypoints.process import worker
from payagg.entrypoints.process.http_server import QuietServer, http_server, listen
from payagg.entrypoints.settings import Settings
from tests.support.answers.recorder import App, recorded
from tests.support.assembly import TOKENS, named

_unused: dict[tuple[Settings, float], list[Application]] = defaultdict(list)


@contextmanager
def an_app(services: Services, body_seconds: float = BODY_SECONDS) -> Iterator[App]:
    """The application, which one test after the other uses with services of its own: to make the routes and the
    description of equal settings again takes longer than most tests."""
    unused = _unused[services.settings, body_seconds]
    app = unused.pop() if unused else create_app(services, body_seconds=body_seconds)
    app.services, app.draining = services, asyncio.Event()
    app.limits = Limits.of(services.settings, services.store, services.clock)
    yield recorded(app)
    # Spans belong to the tracer of their test.
    if not services.settings.otel:
        unused.append(app)


async def started(app: Any, listener: Any, new_id: Any) -> "tuple[QuietServer, asyncio.Task[None]]":
    """A server of `app` that answers at `listener`, and its task."""
    server = http_server(app, new_id)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        if running.done():
            running.result()
        await asyncio.sleep(0.005)
    return server, running


@asynccontextmanager
async def served(services: Services, body_seconds: float = BODY_SECONDS) -> AsyncIterator[str]:
    """The origin of a server that answers until the block is left."""
    with an_app(services, body_seconds) as app:
        listener = listen("127.0.0.1", 0)
        server, running = await started(app, listener, services.payments.entropy.hex)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def working(services: Services, pace: float = 1.0) -> AsyncIterator["asyncio.Task[None]"]:
    """The worker of the services, told to stop when the block is left."""
    stop = asyncio.Event()
    running = asyncio.create_task(worker.run(services, stop, pace))
    try:
        yield running
    finally:
        stop.set()
        async with asyncio.timeout(30):
            await running


def a_token(subject: str = "owner-1", *, ttl: int = 86_400, **claims: Any) -> str:
    return TOKENS.issue({"sub": subject, **claims}, ttl, int(time.time()))


def admin_token(role: str = "ADMIN") -> str:
    return a_token("admin-1", type="admin", role=role)


def merchant_token(subject: str = "owner-1", verified: bool = True) -> str:
    return a_token(subject, type="merchant", emailVerified=verified)


def bearer(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"}


@dataclass(frozen=True)
class Shop:
    """A business with an owner and one key per environment."""

    business: Business
    owner: str
    sandbox: str
    live: str
    public: str

    @property
    def as_sandbox(self) -> dict[str, str]:
        return bearer(self.sandbox)

    @property
    def as_live(self) -> dict[str, str]:
        return bearer(self.live)

    @property
    def as_owner(self) -> dict[str, str]:
        return bearer(merchant_token(self.owner))

    @property
    def path(self) -> str:
        return f"/merchant/businesses/{self.business.id}"


def readers(shop: Shop) -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """Where the SANDBOX payments of a shop are read, by whom, and what has to be said."""
    yield "/payments", shop.as_sandbox, {}
    yield f"{shop.path}/payments", shop.as_owner, {"environment": "SANDBOX"}
    yield "/admin/payments", bearer(admin_token("SUPPORT")), {"businessId": shop.business.id, "environment": "SANDBOX"}


@dataclass
class Api:
    """One server with a client of it; paths are relative to /api/v1."""

    services: Services
    origin: str
    client: httpx.AsyncClient
    shops: list[Shop] = field(default_factory=list)

    async def open_shop(
        self,
        kyc: KycStatus = KycStatus.APPROVED,
        status: BusinessStatus = BusinessStatus.ACTIVE,
        keys: tuple[Environment, ...] = tuple(Environment),
    ) -> Shop:
        number = len(self.shops) + 1
        entropy = self.services.payments.entropy
        now = self.services.clock.now()
        business = Business(entropy.id("biz", now), f"Shop {number}", status, kyc, now)
        owner = f"owner-{number}"
        secrets = {}
        async with self.services.store.begin() as tx:
            await tx.businesses.add(business)
            await tx.members.add(business.id, owner, Role.OWNER)
            await tx.members.add(business.id, "member-1", Role.MEMBER)
            for environment in keys:
                key, secrets[environment] = ApiKey.generate(
                    id=entropy.id("key", now),
                    business_id=business.id,
                    environment=environment,
                    name="Server",
                    secret_hex=entropy.hex(24),
                    public_hex=entropy.hex(16),
                    now=now,
                )
                await tx.api_keys.add(key)
        public = "spk_sand_" + entropy.hex(16)
        shop = Shop(business, owner, secrets.get(Environment.SANDBOX, ""), secrets.get(Environment.LIVE, ""), public)
        self.shops.append(shop)
        return shop

    async def open_gateways(self) -> None:
        """provider_a ready for both environments; nobody is called by what these tests do."""
        gateways = self.services.gateways
        await seed_gateways(gateways, "builtin", named("provider_a", "provider_b"))
        seeded = {gateway.slug: gateway.id for gateway in await gateways.list_gateways()}
        credentials = {"sandboxSecretKey": "sk_test_" + "a" * 40, "liveSecretKey": "sk_live_" + "b" * 40}
        await gateways.set_credentials(seeded["provider_a"], UpdateCredentials(credentials=credentials), by=AN_ADMIN)
        await gateways.enable(seeded["provider_a"], by=AN_ADMIN)

    async def get(self, path: str, headers: Mapping[str, str] | None = None, **query: Any) -> Any:
        """The data of a 200."""
        answer = await self.client.get(path, headers=headers, params=query or None)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    async def send(self, method: str, path: str, headers: Mapping[str, str] | None = None, /, **body: Any) -> Any:
        """The data of what is done; the body is JSON."""
        answer = await self.client.request(method, path, headers=headers, json=body or None)
        assert answer.is_success, answer.text
        return answer.json()["data"]

    async def walked(self, path: str, headers: Mapping[str, str], of: str, **query: Any) -> list[Any]:
        """What a list has under `of`, by its cursor; behind its end is an empty page with the same cursor."""
        met: list[Any] = []
        page: dict[str, Any] = {"hasMore": True}
        while page["hasMore"]:
            page = await self.get(path, headers, **query)
            assert len(page[of]) <= query.get("limit", 100)
            met += page[of]
            query["after"] = page["nextCursor"]
        assert await self.get(path, headers, **query) == {of: [], "nextCursor": query["after"], "hasMore": False}
        return met

    async def initiate(self, shop: Shop, headers: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
        whole = {"amount": 150000, **body}
        data: dict[str, Any] = await self.send("POST", "/payments/initiate", headers or shop.as_sandbox, **whole)
        return data

    async def paid(self, shop: Shop, **body: Any) -> str:
        """The reference of a SANDBOX payment that was simulated to success."""
        reference: str = (await self.initiate(shop, **body))["reference"]
        await self.send("POST", f"/payments/{reference}/simulate", shop.as_sandbox, outcome="SUCCESS")
        return reference

    async def events(self, shop: Shop, count: int) -> list[dict[str, Any]]:
        """All SANDBOX events, once so many are old enough to be shown: none is before every earlier one is."""
        found: list[dict[str, Any]] = []
        async with asyncio.timeout(30):
            while len(found) < count:
                found = (await self.get("/events", shop.as_sandbox))["events"]
                await asyncio.sleep(0.1)
        return found

    async def add_endpoint(
        self, shop: Shop, url: str = "https://shop.example/hooks", environment: str = "SANDBOX", **more: Any
    ) -> dict[str, Any]:
        body = {"url": url, "environment": environment, **more}
        data: dict[str, Any] = await self.send("POST", f"{shop.path}/webhooks", shop.as_owner, **body)
        return data

    async def change(self, shop: Shop, **fields: Any) -> None:
        """The business as it was, but for these of its fields."""
        async with self.services.store.begin() as tx:
            await tx.businesses.save(replace(shop.business, **fields))


@asynccontextmanager
async def an_api(services: Services, body_seconds: float = BODY_SECONDS) -> AsyncIterator[Api]:
    async with (
        served(services, body_seconds) as origin,
        # Who verifies reads all authorities first, which takes 25 ms of CPU.
        httpx.AsyncClient(
            base_url=f"{origin}/api/v1", timeout=30, limits=httpx.Limits(max_connections=100), verify=False
        ) as client,
    ):
        yield Api(services, origin, client)


async def sell_through_provider_a(
    client: httpx.AsyncClient, shop: Shop, credentials: dict[str, str], merchant: str
) -> None:
    """provider_a enabled with its credentials, and SANDBOX events of the shop sent to the address of `merchant`."""
    admin = bearer(admin_token())
    gateways = (await client.get("/admin/gateways", headers=admin)).raise_for_status().json()["data"]
    [gateway] = [one["id"] for one in gateways if one["slug"] == "provider_a"]
    place = f"/admin/gateways/{gateway}"
    sealed = await client.patch(f"{place}/credentials", headers=admin, json={"credentials": credentials})
    sealed.raise_for_status()
    (await client.post(f"{place}/enable", headers=admin)).raise_for_status()
    endpoint = {"url": merchant, "environment": "SANDBOX"}
    (await client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=endpoint)).raise_for_status()


def refusal(answer: httpx.Response) -> tuple[int, str, str | None]:
    """Status, code and field of an error envelope that holds nothing else."""
    body = answer.json()
    assert body == {"success": False, "error": body.get("error")}
    error = body["error"]
    assert {"code", "message"} <= set(error) <= {"code", "message", "field"}
    return answer.status_code, error["code"], error.get("field")


def assert_refused(answer: httpx.Response, status: int, code: str, field: str | None = None) -> None:
    found = refusal(answer)
    assert found[:2] == (status, code), answer.text
    assert answer.json()["error"]["message"]
    assert field in (None, found[2]), answer.text


async def raw(origin: str, request: bytes, *, half_open: bool = False) -> bytes:
    """The whole answer to bytes as they are, where a client library would tidy them."""
    host, _, port = origin.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    await writer.drain()
    if half_open:
        writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()
