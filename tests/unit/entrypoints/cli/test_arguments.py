"""What `payagg` prints of itself."""

import pytest

from payagg.entrypoints.cli.arguments import GROUPS
from payagg.entrypoints.cli.main import main
from payagg.entrypoints.settings import Settings, SettingsError, require_secrets


def test_payagg_alone_prints_every_command_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 2
    for title, group in GROUPS.items():
        below = lines[lines.index(f"{title}:") + 1 :]
        assert [line.split()[0] for line in below[: len(group)]] == list(group)


def test_a_server_without_secrets_is_told_of_all_and_where_they_come_from() -> None:
    with pytest.raises(SettingsError) as refused:
        require_secrets(Settings())
    first, second = str(refused.value).splitlines()
    assert first.startswith("PAYAGG_JWT_KEY or PAYAGG_JWT_JWKS is required")
    assert second.startswith("PAYAGG_ENCRYPTION_KEYS is required")
    assert first.endswith(" `payagg keygen` prints a new one.")
