"""The links of `dev` that sign a browser in to the console. They contain a code of this run, never a token."""

import hmac
from dataclasses import dataclass, field

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.console import session as sessions
from payagg.entrypoints.http.console.pages import see_other
from payagg.entrypoints.http.server.routing import AnyRequest, services

CODE_BYTES = 12


@dataclass
class ConsoleLinks:
    """`tokens` by realm are known once the demo data is made."""

    code: str
    tokens: dict[sessions.Realm, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, use_cases: Services) -> "ConsoleLinks":
        return cls(use_cases.payments.entropy.hex(CODE_BYTES))

    def url(self, origin: str, realm: sessions.Realm) -> str:
        return f"{origin}/dev/console/{realm}/{self.code}"


def console_routes(links: ConsoleLinks) -> list[HTTPRouteHandler]:
    @get("/dev/console/{realm:str}/{code:str}")
    async def enter(request: AnyRequest, realm: FromPath[str], code: FromPath[str]) -> Response[bytes]:
        use_cases = services(request)
        found = next((one for one in links.tokens if one == realm), None)
        if found is None or not hmac.compare_digest(code.encode(), links.code.encode()):
            return Response(b"This link is of another run: the terminal shows the new one.", status_code=404)
        session = sessions.signed_in(use_cases, found, links.tokens[found])
        response = see_other(use_cases, sessions.HOME[found])
        response.set_cookie(await sessions.begin_session(request, session))
        return response

    return [enter]
