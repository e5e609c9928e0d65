"""The demo of `dev`: data made through our own API as a merchant and an administrator would, kept between starts; and
the printed tour, lines to paste in the order a newcomer needs them."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from payagg.domain.audit import Actor, ActorRealm
from payagg.domain.business import BusinessStatus, KycStatus
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.dev.secrets import write_private
from payagg.entrypoints.settings import SettingsError

OWNER = "demo-owner"
ADMINISTRATOR = "demo-admin"
DEV = Actor(ActorRealm.CLI, "payagg dev")
TOKEN_TTL = 30 * 86400
AMOUNT = 150_000  # kobo


@dataclass(frozen=True)
class Demo:
    """`shown` is the content of demo.json; the rest is what the tour and the inbox also need."""

    shown: dict[str, str]
    reference: str  # of a second payment, so the tour's commands do not use up the checkout link
    signing_secret: str = field(repr=False)


class DemoMaker:
    """Finds or makes each piece; `origin` is where our own server answers."""

    def __init__(self, services: Services, origin: str, credentials: Mapping[str, Mapping[str, str]]) -> None:
        self._services = services
        self._settings = services.settings
        self._origin = origin
        self._credentials = credentials  # per provider gateway slug
        self._state = self._settings.state_dir / "dev.json"
        self._api = httpx.AsyncClient(base_url=f"{origin}/api/v1", timeout=20, trust_env=False)
        now = int(services.clock.now().timestamp())
        issue = services.tokens.issue
        self._admin = issue({"sub": ADMINISTRATOR, "type": "admin", "role": "SUPER_ADMIN"}, TOKEN_TTL, now)
        self._merchant = issue({"sub": OWNER, "type": "merchant", "emailVerified": True}, TOKEN_TTL, now)

    @property
    def tokens(self) -> dict[str, str]:
        """By realm."""
        return {"merchant": self._merchant, "admin": self._admin}

    async def make(self, links: Mapping[str, str]) -> Demo:
        """`links` go into demo.json too. Raises SettingsError when our own API refuses, which `--fresh` mends."""
        async with self._api:
            kept: dict[str, str] = json.loads(self._state.read_text()) if self._state.exists() else {}
            try:
                kept = await self._pieces(kept)
            except SettingsError:  # it was suspended, or its keys are used up: beside it another one
                kept = await self._pieces({})
            write_private(self._state, json.dumps(kept))
            await self._gateways()
            demo = await self._payment(kept["sandboxSecretKey"], "demo")
            other = await self._payment(kept["sandboxSecretKey"], "tour")
        shown = {
            "baseUrl": f"{self._settings.base_url}/api/v1",
            "adminToken": self._admin,
            "merchantToken": self._merchant,
            "businessId": kept["businessId"],
            "sandboxSecretKey": kept["sandboxSecretKey"],
            "liveSecretKey": kept["liveSecretKey"],
            "checkoutUrl": demo["checkoutUrl"],
            "webhookInboxUrl": f"{self._settings.base_url}/dev/inbox",
            "docsUrl": f"{self._settings.base_url}/docs",
            **links,
        }
        write_private(self._settings.state_dir / "demo.json", json.dumps(shown, indent=2) + "\n")
        return Demo(shown, other["reference"], kept["signingSecret"])

    async def _pieces(self, kept: dict[str, str]) -> dict[str, str]:
        kept = await self._business(kept)
        base = f"/merchant/businesses/{kept['businessId']}"
        for environment in ("SANDBOX", "LIVE"):
            kept = await self._key(kept, base, environment)
        return await self._endpoint(kept, base)

    async def _business(self, kept: dict[str, str]) -> dict[str, str]:
        services = self._services
        if "businessId" in kept:
            async with services.store.begin() as tx:
                if await tx.businesses.get(kept["businessId"]) is not None:
                    return kept
        made = await services.businesses.create("Demo Shop", OWNER, KycStatus.APPROVED, BusinessStatus.ACTIVE, by=DEV)
        return {"businessId": made.id}

    async def _key(self, kept: dict[str, str], base: str, environment: str) -> dict[str, str]:
        """A secret key is shown once, so the demo stores its own; a revoked one is replaced."""
        name = f"{environment.lower()}SecretKey"
        if name in kept:
            context = await self._api.get("/payments/context", headers=_bearer(kept[name]))
            if context.is_success:
                return kept
        made = await self._call(
            "POST", f"{base}/api-keys", self._merchant, {"environment": environment, "name": "Demo key"}
        )
        return {**kept, name: made["secretKey"]}

    async def _endpoint(self, kept: dict[str, str], base: str) -> dict[str, str]:
        url = f"{self._origin}/dev/inbox"
        listed = await self._call("GET", f"{base}/webhooks", self._merchant)
        mine = next((one for one in listed if one["id"] == kept.get("endpointId")), None)
        if mine is not None:
            if mine["url"] != url or not mine["isActive"]:
                change = {"url": url, "isActive": True}
                await self._call("PATCH", f"{base}/webhooks/{mine['id']}", self._merchant, change)
            return kept
        wanted = {"url": url, "environment": "SANDBOX", "description": "The inbox page of payagg dev"}
        made = await self._call("POST", f"{base}/webhooks", self._merchant, wanted)
        return {**kept, "endpointId": made["id"], "signingSecret": made["signingSecret"]}

    async def _gateways(self) -> None:
        """Points the provider gateways at the fakes of this run, and enables those that were never enabled."""
        for gateway in await self._call("GET", "/admin/gateways", self._admin):
            credentials = self._credentials.get(gateway["slug"])
            if credentials is None:
                continue
            path = f"/admin/gateways/{gateway['id']}"
            await self._call("PATCH", f"{path}/credentials", self._admin, {"credentials": dict(credentials)})
            if not gateway["hasCredentials"] and gateway["status"] == "DISABLED":
                await self._call("POST", f"{path}/enable", self._admin)

    async def _payment(self, key: str, purpose: str) -> dict[str, Any]:
        payment: dict[str, Any] = await self._call(
            "POST",
            "/payments/initiate",
            key,
            {
                "amount": AMOUNT,
                "customerEmail": "ada@example.com",
                "customerName": "Ada Obi",
                "callbackUrl": f"{self._settings.base_url}/dev/inbox",
                "metadata": {"purpose": purpose},
            },
        )
        return payment

    async def _call(self, method: str, path: str, credential: str, body: Any = None) -> Any:
        answer = await self._api.request(method, path, json=body, headers=_bearer(credential))
        if not answer.is_success:
            raise SettingsError(
                f"The demo data could not be made: {method} {path} answered {answer.status_code}; "
                f"{self._settings.state_dir / 'dev.log'} says why. `payagg dev --fresh` starts over."
            )
        return answer.json().get("data")


def _bearer(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"}


def tour(demo: Demo, *, state: Path) -> str:
    """The printed tour; each `curl` line runs as it stands."""
    shown = demo.shown
    api, key = shown["baseUrl"], shown["sandboxSecretKey"]
    auth = f"-H 'Authorization: Bearer {key}'"
    as_json = "-H 'Content-Type: application/json'"
    new = json.dumps({"amount": AMOUNT, "customerEmail": "ada@example.com", "idempotencyKey": f"tour-{demo.reference}"})
    outcome = json.dumps({"outcome": "SUCCESS"})
    lines = [
        "",
        _bold("payagg is running."),
        "",
        f"  {_bold('Pay')}    {shown['checkoutUrl']}",
        "         choose Test card, 4242 4242 4242 4242 (4000 0000 0000 0002 is declined)",
        f"  {_bold('Inbox')}  {shown['webhookInboxUrl']}   each signed webhook as it arrives",
        f"  {_bold('Docs')}   {shown['docsUrl']}",
        *_console(shown),
        "",
        _bold("A merchant's server, to paste:"),
        "",
        _dim("  # a new payment: a reference and a checkout link"),
        f"  curl -sS {api}/payments/initiate {auth} {as_json} -d '{new}'",
        "",
        _dim("  # how a payment stands"),
        f"  curl -sS {api}/payments/{demo.reference} {auth}",
        "",
        _dim("  # how it shall end; the webhook appears in the inbox"),
        f"  curl -sS {api}/payments/{demo.reference}/simulate {auth} {as_json} -d '{outcome}'",
        "",
        _dim(f"  Tokens and keys: {state / 'demo.json'}   Log: {state / 'dev.log'}"),
        "  Ctrl-C stops everything; the data stays. `payagg dev --fresh` starts over.",
        "",
    ]
    return "\n".join(lines)


def _console(shown: Mapping[str, str]) -> list[str]:
    if "consoleUrl" not in shown:
        return []
    return [
        f"  {_bold('Console')}  {shown['consoleUrl']}   signed in as the merchant",
        f"           {shown['adminConsoleUrl']}   as an administrator",
    ]


def _bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def _dim(text: str) -> str:
    return f"\033[2m{text}\033[0m" if sys.stdout.isatty() else text
