"""Redocly and Spectral with the OWASP rules have nothing to say about the description."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from payagg.entrypoints.http.api.openapi.document import document
from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.settings import Settings

ROOT = Path(__file__).parents[4]
PROGRAMS = ROOT / "tests" / "node" / "node_modules" / ".bin"


def judge(program: str, *arguments: str) -> str:
    """What the program found; skips where npm's packages are not installed, but never in CI."""
    found = PROGRAMS / program
    node = shutil.which("node")
    if node is None or not found.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{program} is not installed and CI does not skip: run `npm ci` in tests/node")
        pytest.skip(f"{program} is not installed")
    environ = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}
    ran = subprocess.run(
        [node, str(found), "lint", *arguments], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    return "" if ran.returncode == 0 else f"{ran.returncode}: {ran.stdout[:8000]}{ran.stderr[-2000:]}"


@pytest.fixture
def description(tmp_path: Path) -> str:
    """As a deployment shows it: docs/openapi.json alone is about loopback, where there is no TLS."""
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document(api_routes(), Settings(base_url="https://payagg.example"))))
    return str(file)


def test_redocly_and_spectral_with_the_owasp_rules_find_nothing(description: str) -> None:
    assert judge("redocly", description, "--config", "redocly.yaml", "--format", "stylish") == ""
    assert judge("spectral", description, "--ruleset", ".spectral.yaml", "--fail-severity", "hint") == ""
