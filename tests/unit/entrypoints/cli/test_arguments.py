"""What `payagg` prints of itself."""

import argparse
from collections.abc import Iterator

import pytest

from payagg.entrypoints.bootstrap import check_for_serving
from payagg.entrypoints.cli.arguments import GROUPS, parser
from payagg.entrypoints.cli.main import main
from payagg.entrypoints.settings import Settings, SettingsError


def test_payagg_alone_prints_every_command_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 2
    for title, group in GROUPS.items():
        below = lines[lines.index(f"{title}:") + 1 :]
        assert [line.split()[0] for line in below[: len(group)]] == list(group)


def options_of(whole: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in whole._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from options_of(one)
        elif action.option_strings:
            yield action


def test_each_option_with_a_default_tells_it() -> None:
    with_default = [one for one in options_of(parser()) if one.default not in (None, False, argparse.SUPPRESS)]
    assert with_default
    assert [one.option_strings for one in with_default if f"default: {one.default}" not in str(one.help)] == []


def test_a_server_without_secrets_is_told_of_all_and_where_they_come_from() -> None:
    with pytest.raises(SettingsError) as refused:
        check_for_serving(Settings())
    first, second = str(refused.value).splitlines()
    assert first.startswith("PAYAGG_JWT_KEY or PAYAGG_JWT_JWKS is required")
    assert second.startswith("PAYAGG_ENCRYPTION_KEYS is required")
    assert first.endswith(" `payagg keygen` prints a new one.")
