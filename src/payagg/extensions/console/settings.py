"""What a deployment decides about the console: who signs people in."""

from collections.abc import Iterator
from dataclasses import dataclass

from payagg.entrypoints import setting_kinds as kinds
from payagg.entrypoints.setting_kinds import OidcRoles
from payagg.entrypoints.settings import ExtensionSettings, setting


@dataclass(frozen=True)
class ConsoleSettings(ExtensionSettings):
    oidc_issuer: str | None = setting(
        None,
        kinds.ISSUER,
        "OpenID Connect issuer for the console's sign-in, exactly as its configuration writes it",
        unset="none: people sign in with a bearer token",
    )
    oidc_client_id: str | None = setting(None, kinds.TEXT, "the console's client id at the issuer")
    oidc_client_secret: str | None = setting(
        None, kinds.TEXT, "the client's secret", unset="none: a public client", secret=True
    )
    oidc_roles: OidcRoles | None = setting(
        None,
        kinds.OIDC_ROLES,
        "the claim that says who is an administrator, a space, and a comma list of value=role",
        unset="none: administrators cannot sign in by the issuer",
    )

    def faults(self) -> Iterator[str]:
        if (self.oidc_issuer is None) != (self.oidc_client_id is None):
            yield "PAYAGG_OIDC_ISSUER and PAYAGG_OIDC_CLIENT_ID are set together, or neither is."
