"""The routes as the description and the tests see them: one entry per operation."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from litestar.handlers import HTTPRouteHandler

from payagg.entrypoints.http.server.routing import Operation, camel

_PARAMETER = re.compile(r"\{(\w+):str\}")


@dataclass(frozen=True)
class Route:
    """One operation of the document."""

    method: str
    path: str
    operation: Operation

    @property
    def id(self) -> str:
        return self.operation.id

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"\{(\w+)\}", self.path)


def routes_of(handlers: Iterable[HTTPRouteHandler]) -> list[Route]:
    """The handlers that declare an Operation, with the interface's spelling of path parameters."""
    found = []
    for handler in handlers:
        operation = handler.opt.get("operation")
        if not isinstance(operation, Operation):
            continue
        for path in sorted(handler.paths):
            shown = _PARAMETER.sub(lambda match: "{" + camel(match[1]) + "}", path)
            for method in sorted(handler.http_methods):
                found.append(Route(str(method).lower(), shown, operation))
    return found
