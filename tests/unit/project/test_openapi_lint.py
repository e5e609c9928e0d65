"""Redocly and Spectral with the OWASP rules have nothing to say about the description."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from payagg.entrypoints.http.docs.description import describe
from payagg.entrypoints.settings import Settings
from tests.support.machine import ROOT, node_package, program

PROGRAMS = ROOT / "tests" / "node" / "node_modules" / ".bin"


def judge(name: str, *arguments: str) -> str:
    """What the program found."""
    command = [program("node"), str(node_package(".bin") / name), "lint", *arguments]
    environ = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 else f"{ran.returncode}: {ran.stdout[:8000]}{ran.stderr[-2000:]}"


@pytest.fixture
def description(tmp_path: Path) -> str:
    """As a deployment shows it: docs/openapi.json alone is about loopback, where there is no TLS."""
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(describe(Settings(base_url="https://payagg.example"))))
    return str(file)


@pytest.mark.release
def test_redocly_and_spectral_with_the_owasp_rules_find_nothing(description: str) -> None:
    assert judge("redocly", description, "--config", "redocly.yaml", "--format", "stylish") == ""
    assert judge("spectral", description, "--ruleset", ".spectral.yaml", "--fail-severity", "hint") == ""
