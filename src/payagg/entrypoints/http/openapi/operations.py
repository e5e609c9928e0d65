"""The routes as the description and the tests see them: one entry per operation, with its realm."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from litestar.handlers import HTTPRouteHandler

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.wire import Operation

_PARAMETER = re.compile(r"\{(\w+):str\}")


@dataclass(frozen=True)
class Realm:
    """What every operation under a path prefix has in common."""

    prefix: str
    scheme: str | None
    errors: tuple[ErrorCode, ...]


REALMS = (
    Realm("/admin/", "adminBearer", (ErrorCode.UNAUTHORIZED, ErrorCode.FORBIDDEN)),
    Realm(
        "/merchant/",
        "merchantBearer",
        (ErrorCode.UNAUTHORIZED, ErrorCode.FORBIDDEN, ErrorCode.EMAIL_NOT_VERIFIED),
    ),
    Realm(
        "/payments/",
        "secretKey",
        (
            ErrorCode.UNAUTHORIZED,
            ErrorCode.INVALID_API_KEY,
            ErrorCode.BUSINESS_RESTRICTED,
            ErrorCode.KYC_REQUIRED,
        ),
    ),
    Realm("/", None, ()),
)


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

    @property
    def realm(self) -> Realm:
        return next(realm for realm in REALMS if self.path.startswith(realm.prefix))

    @property
    def is_keyed(self) -> bool:
        return "idempotency_key" in getattr(self.operation.body, "__struct_fields__", ())


def routes_of(handlers: Iterable[HTTPRouteHandler]) -> list[Route]:
    """The handlers that declare an Operation, with the interface's spelling of path parameters."""
    found = []
    for handler in handlers:
        operation = handler.opt.get("operation")
        if not isinstance(operation, Operation):
            continue
        for path in sorted(handler.paths):
            shown = _PARAMETER.sub(lambda match: "{" + _camel(match[1]) + "}", path)
            for method in sorted(handler.http_methods):
                found.append(Route(str(method).lower(), shown, operation))
    return found


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)
