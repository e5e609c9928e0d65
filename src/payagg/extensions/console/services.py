"""What the console keeps beyond the core: its sessions, and the issuer that signs people in."""

from dataclasses import dataclass

from payagg.application.ports.outside import Clock
from payagg.entrypoints.bootstrap import Services
from payagg.extensions.console.console_sessions import ConsoleSessions
from payagg.extensions.console.openid import OpenIdIssuer
from payagg.extensions.console.settings import ConsoleSettings


@dataclass(frozen=True)
class Console:
    sessions: ConsoleSessions
    issuer: OpenIdIssuer | None  # None: it takes bearer tokens


def console_over(core: Services) -> Console:
    settings = core.settings.of(ConsoleSettings)
    return Console(ConsoleSessions(core.store, core.clock, settings.console_idle), _issuer(settings, core.clock))


def _issuer(settings: ConsoleSettings, clock: Clock) -> OpenIdIssuer | None:
    """Makes no call."""
    if settings.oidc_issuer is None or settings.oidc_client_id is None:
        return None
    claim = settings.oidc_roles[0] if settings.oidc_roles else None
    return OpenIdIssuer(settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret, claim, clock)
