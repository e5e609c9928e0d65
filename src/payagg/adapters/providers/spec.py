"""One provider's specification; only its own folder names it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from payagg.application.ports.providers import Branding, ProviderEventRoute, ProviderLists
from payagg.domain.errors import ErrorCode
from payagg.domain.values import Environment

if TYPE_CHECKING:
    from payagg.adapters.providers.adapter import ProviderAdapter

# Its client, and the reader of its lists if it has some.
Loaded = tuple["type[ProviderAdapter]", Callable[["ProviderAdapter"], ProviderLists] | None]


@dataclass(frozen=True)
class ProviderSpec:
    """One provider. `name` never changes: PAYAGG_<NAME>_SLUG and the ids of its inbound addresses are made of it.
    `slug` is the deployment's: of its gateway, its inbound addresses and its signature header. The rest of the folder
    is imported by `load`, as settings alone need no HTTP client."""

    name: str
    slug: str
    branding: Branding
    load: Callable[[], Loaded]
    refuses_malformed: bool = False  # whether a signed body that is no event is refused; else acknowledged
    alias: ErrorCode | None = None  # of /webhooks/<slug>, where it has that: the answer without credentials
    sdk_url: str = ""  # the script that our launch page runs

    @property
    def routes(self) -> tuple[ProviderEventRoute, ...]:
        """Where its events arrive. The address without an environment is an alias of the live one."""
        receive = f"receive{self.name.title().replace('_', '')}"
        sandbox, live = (
            ProviderEventRoute(
                f"{receive}{environment.value.title()}Event",
                self.slug,
                environment,
                f"/{self.slug}/{environment.value.lower()}",
                refuses_malformed=self.refuses_malformed,
            )
            for environment in (Environment.SANDBOX, Environment.LIVE)
        )
        if self.alias is None:
            return sandbox, live
        path = f"/{self.slug}"
        return sandbox, live, replace(live, operation_id=f"{receive}Event", path=path, unconfigured=self.alias)
