"""What the console reads of its settings."""

import pytest

from payagg.entrypoints.settings import SettingsError, read_settings
from payagg.extensions.console.settings import ConsoleSettings


def test_each_value_of_the_roles_claim_ends_at_its_comma() -> None:
    given = {"PAYAGG_OIDC_ROLES": "groups pay support=SUPPORT, cn=admins=ADMIN"}
    [own] = [one for one in read_settings(given).own if isinstance(one, ConsoleSettings)]
    assert own.oidc_roles == ("groups", (("cn=admins", "ADMIN"), ("pay support", "SUPPORT")))
    # Of the last of these nobody would be an administrator, and nothing would say why.
    for bad in ("groups", "groups =ADMIN", "groups a=BOSS", "groups a=ADMIN b=SUPPORT"):
        with pytest.raises(SettingsError, match="PAYAGG_OIDC_ROLES must be a claim"):
            read_settings({"PAYAGG_OIDC_ROLES": bad})
