"""What a deployment decides about the console: who signs people in, and when a session ends."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from payagg.entrypoints import setting_kinds as kinds
from payagg.entrypoints.setting_kinds import OidcRoles
from payagg.entrypoints.settings import ExtensionSettings, setting


@dataclass(frozen=True)
class ConsoleSettings(ExtensionSettings):
    oidc_issuer: str | None = setting(
        None,
        kinds.ISSUER,
        "OpenID Connect issuer that signs people in to the console, as its configuration writes it",
        unset="none: with a bearer token",
    )
    oidc_client_id: str | None = setting(None, kinds.TEXT, "what the issuer calls the console")
    oidc_client_secret: str | None = setting(
        None, kinds.TEXT, "the client's secret", unset="none: a public client", secret=True
    )
    oidc_roles: OidcRoles | None = setting(
        None,
        kinds.OIDC_ROLES,
        "the claim that says who is an administrator, a space, and a comma list of value=role",
        unset="none: no administrator signs in there",
    )
    console_idle: timedelta = setting(
        "1800",
        kinds.lasting("seconds", 43_200, least=60),
        "after so long without a request a console session is over, and after twelve hours in any case",
    )

    def faults(self) -> Iterator[str]:
        if (self.oidc_issuer is None) != (self.oidc_client_id is None):
            yield "PAYAGG_OIDC_ISSUER and PAYAGG_OIDC_CLIENT_ID are set together, or neither is."
