"""Folders that programs cannot write to, as a newcomer has them by accident; only root can make such."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

PATIENCE = 120
FULL = "mount -t tmpfs -o size={size} none {folder}"
READ_ONLY = "mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"


def ran_with(
    mounted: str,
    folder: Path,
    command: Sequence[object],
    environment: dict[str, str],
    size: str = "",
    before: str = ":",
) -> "subprocess.CompletedProcess[str]":
    """Runs the command where `folder` is mounted that way, for it alone; the shell command `before` prepares."""
    mount = mounted.format(folder=folder, size=size)
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing may be mounted here")
    script = f'{mount} && {before} && cd {folder} && exec "$@"'
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *map(str, command)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE,
    )
