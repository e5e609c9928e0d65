"""A browser of the console without scripts, for tests over HTTP: its cookies, its pages, its forms."""

import re
from html import unescape
from html.parser import HTMLParser

import httpx

from tests.support.http_world import Api, Shop, admin_token, merchant_token

SAME_ORIGIN = {"sec-fetch-site": "same-origin"}


class Browser:
    """Cookies and forms, and nothing that a script does."""

    def __init__(self, api: Api) -> None:
        # No connection stays open: a server that stops would wait for it.
        limits = httpx.Limits(max_keepalive_connections=0)
        self.client = httpx.AsyncClient(base_url=api.origin, trust_env=False, timeout=30, limits=limits, verify=False)
        self.page: httpx.Response

    async def open(self, path: str) -> httpx.Response:
        self.page = await self.client.get(path, headers={"accept": "text/html"}, follow_redirects=True)
        return self.page

    async def send(self, path: str, *, headers: dict[str, str] = SAME_ORIGIN, **fields: str) -> httpx.Response:
        """The form of the page that is open, to `path`; where it leads to is followed."""
        answer = await self.client.post(path, data={"form_token": self.form_token, **fields}, headers=headers)
        self.page = await self.open(answer.headers["location"]) if answer.status_code == 303 else answer
        return self.page

    def fields(self, path: str) -> dict[str, str]:
        """What the open page's form to `path` sends untouched."""
        form = _Form(path)
        form.feed(self.page.text)
        assert form.values, self.page.text
        return form.values

    @property
    def form_token(self) -> str:
        found = re.search(r'name="form_token" value="([^"]+)"', self.page.text)
        assert found is not None, self.page.text
        return found[1]

    async def sign_in(self, shop: Shop) -> "Browser":
        await self.open("/console")
        await self.send("/console/sign-in", token=merchant_token(shop.owner))
        assert self.page.url.path == base_of(shop), self.page.text
        return self

    async def sign_in_as_admin(self) -> "Browser":
        await self.open("/console/admin")
        await self.send("/console/admin/sign-in", token=admin_token())
        assert self.page.url.path == "/console/admin/gateways", self.page.text
        return self


class _Form(HTMLParser):
    """The inputs of the first form whose action is `path`, without unchecked boxes."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path, self.is_inside, self.values = path, False, dict[str, str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "form":
            self.is_inside = found.get("action") == self.path and not self.values
        elif tag == "input" and self.is_inside and (found.get("type") != "checkbox" or "checked" in found):
            self.values[str(found["name"])] = found.get("value") or ("on" if found.get("type") == "checkbox" else "")


def base_of(shop: Shop, environment: str = "sandbox") -> str:
    return f"/console/business/{shop.business.id}/{environment}"


def text_of(page: str) -> str:
    """What a page says, without its marks."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))
