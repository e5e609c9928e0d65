"""The links of `dev` that sign a browser in to the console. They contain a code of this run, never a token."""

import hmac
from collections.abc import Mapping

from litestar import Response, get
from litestar.params import FromPath

from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.extensions import DevPages
from payagg.entrypoints.http.server.routing import AnyRequest, services
from payagg.extensions.console import session as sessions
from payagg.extensions.console.pages import see_other

CODE_BYTES = 12


def dev_pages(core: Services, tokens: Mapping[str, str]) -> DevPages:
    """Signs in with the token of the link's realm."""
    this_run = core.entropy.hex(CODE_BYTES)

    @get("/dev/console/{realm:str}/{code:str}")
    async def enter(request: AnyRequest, realm: FromPath[str], code: FromPath[str]) -> Response[bytes]:
        use_cases = services(request)
        found: sessions.Realm | None = next((one for one in sessions.HOME if one == realm), None)
        if found is None or not hmac.compare_digest(code.encode(), this_run.encode()):
            return Response(b"This link is of another run: the terminal shows the new one.", status_code=404)
        session = sessions.signed_in(use_cases, found, tokens[found])
        response = see_other(use_cases, sessions.HOME[found])
        response.set_cookie(await sessions.begin_session(request, session))
        return response

    base = f"{core.settings.base_url}/dev/console"
    return DevPages(
        [enter],
        {"consoleUrl": f"{base}/merchant/{this_run}", "adminConsoleUrl": f"{base}/admin/{this_run}"},
    )
