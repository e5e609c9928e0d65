"""The harness against services that it knows by URL alone: the command, its replaying scripts, the pytest plugin."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from payagg_testing.command import main

from lab.defects.services.broken import (
    AsksForKobo,
    LetsBrowsersSniff,
    ReopensFinalPayments,
    ReplaysAsCreated,
)
from lab.defects.services.payments import Handmade
from lab.defects.services.serving import served_by_hand

SRC = Path(__file__).parents[3] / "src"
BRIEF = ["--histories", "20", "--actions", "6", "--seed", "1"]


def environment(url: str) -> dict[str, str]:
    """What a replaying script reads."""
    app = Handmade.__new__(Handmade)
    given = {"BASE_URL": url, "ADMIN_TOKEN": app.admin, "PYTHONPATH": str(SRC)}
    for number in (1, 2):
        given |= {f"MERCHANT_TOKEN_{number}": f"owner-token-{number}", f"BUSINESS_{number}": f"biz-{number}"}
    return {**os.environ, **given}


def replayed(script: Path, url: str, keys: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script)],
        env=environment(url) | keys,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def fresh_keys(url: str) -> dict[str, str]:
    """Secret keys of both businesses, as the run had."""
    from payagg_testing.conformance.access import ServiceAccess

    target = ServiceAccess(
        url, merchant_tokens=("owner-token-1", "owner-token-2"), businesses=("biz-1", "biz-2")
    ).opened()
    target.with_keys()
    keys = {f"{e}_KEY_{n}": key for n, m in enumerate(target.merchants, 1) for e, key in m.keys.items()}
    target.service.close()
    return keys


@pytest.mark.parametrize(
    ("broken", "machine"),
    [(ReopensFinalPayments, "payments"), (ReplaysAsCreated, "idempotency"), (LetsBrowsersSniff, "logos")],
)
def test_a_counterexample_is_a_story_and_a_script_that_does_it_again(
    broken: type[Handmade], machine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served_by_hand(broken) as (url, options):
        with pytest.raises(SystemExit) as ended:
            main(["run", *options, *BRIEF, "--machine", machine, "--scripts", str(tmp_path)])
        told = capsys.readouterr().out
        assert ended.value.code == 1
        assert "BROKEN" in told
        assert "expected: " in told
        assert "came:     " in told
        assert "owner-token" not in told
        script = tmp_path / f"replay-{machine}.py"
        assert "owner-token" not in script.read_text()
        again = replayed(script, url, fresh_keys(url))
        assert again.returncode == 1, again.stdout + again.stderr
        assert "expected" in again.stderr
    with served_by_hand(Handmade) as (url, _):
        well = replayed(script, url, fresh_keys(url))
        assert (well.returncode, well.stdout) == (0, "The service keeps the interface here.\n"), well.stderr


def test_a_script_judges_a_charge_at_a_played_provider(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served_by_hand(AsksForKobo) as (url, options):
        played = ["--provider-b", "provider_b", "--machine", "settlement-b"]
        with pytest.raises(SystemExit) as ended:
            main(["run", *options, *BRIEF, *played, "--scripts", str(tmp_path)])
        told = capsys.readouterr().out
        assert ended.value.code == 1
        assert "Search again with --machine settlement-b --seed 1." in told
        assert "What stays there: a fake account of provider_b" in told
        again = replayed(tmp_path / "replay-settlement-b.py", url, fresh_keys(url))
    assert again.returncode == 1, again.stdout + again.stderr
    assert "was asked for 500000 kobo" in again.stderr


def test_a_good_service_passes_and_what_is_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with served_by_hand(Handmade) as (_, options), pytest.raises(SystemExit) as ended:
        main(["run", *options, "--histories", "3", "--actions", "10"])
    told = capsys.readouterr().out
    assert ended.value.code == 0, told
    assert told.count("keeps the interface") == 6
    assert "skipped: it needs an inbox that the service can reach" in told
    assert "skipped: it needs a provider's account that the harness may play" in told


def test_with_a_secret_key_alone_payments_are_tried(capsys: pytest.CaptureFixture[str]) -> None:
    with served_by_hand(Handmade) as (url, _):
        key = fresh_keys(url)["SANDBOX_KEY_1"]
        with pytest.raises(SystemExit) as ended:
            main(["run", "--url", url, "--sandbox-key", key, "--histories", "3"])
    told = capsys.readouterr().out
    assert ended.value.code == 0, told
    assert "skipped: it needs a merchant's token" in told
    assert told.count("keeps the interface") == 2


def test_nobody_there_and_nothing_given_are_said_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--url", "http://127.0.0.1:9/api/v1", "--sandbox-key", "ssk_sand_1"])
    assert ended.value.code == 2
    with served_by_hand(Handmade) as (url, _), pytest.raises(SystemExit) as ended:
        main(["run", "--url", url])
    assert ended.value.code == 2
    assert "nothing was tried: give tokens or keys" in capsys.readouterr().err


PLUGIN_TEST = "def test_our_service_keeps_the_interface(payagg_check):\n    payagg_check()\n"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "payagg_testing.pytest_plugin", "-p", "no:cacheprovider"]


def plugin_run(folder: Path, options: list[str], *more: str) -> str:
    (folder / "test_ours.py").write_text(PLUGIN_TEST)
    given = [option.replace("--", "--payagg-") if option.startswith("--") else option for option in options]
    command = [*PYTEST, "--payagg-histories", "3", "--payagg-seed", "1", *given, *more]
    done = subprocess.run(
        command, cwd=folder, env=environment(""), capture_output=True, text=True, timeout=300, check=False
    )
    return done.stdout + done.stderr


def test_the_pytest_plugin_runs_over_the_domain(tmp_path: Path) -> None:
    assert "6 passed, 3 skipped" in plugin_run(tmp_path, ["--over", "domain"])


def test_the_pytest_plugin_fails_with_the_story(tmp_path: Path) -> None:
    with served_by_hand(ReplaysAsCreated) as (_, options):
        told = plugin_run(tmp_path, options, "-k", "idempotency")
    assert "1 failed" in told
    assert "To replay it:" in told
    assert "expected: " in told
