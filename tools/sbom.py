"""The software bill of materials: `python tools/sbom.py FILE` writes what requirements.lock installs as CycloneDX JSON.

cyclonedx-py reads the lock. We add where it comes from: the commit, whether files differ from it, and the lock's
digest. The same tree gives the same bytes. Raises when the result is not valid.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"


def git(*words: str) -> str | None:
    """What git says, None where this is no checkout."""
    done = subprocess.run(["git", "-C", str(ROOT), *words], check=False, capture_output=True, text=True)  # noqa: S603, S607
    return done.stdout.strip() if done.returncode == 0 else None


def bill() -> str:
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", str(LOCK), "--pyproject", "pyproject.toml"]
    command += ["--output-reproducible", "--short-PURLs", "--spec-version", "1.6", "--output-file", "-"]
    made = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)  # noqa: S603 - our own words
    whole = json.loads(made.stdout)
    changes = git("status", "--porcelain")
    origin = {
        "payagg:commit": git("rev-parse", "HEAD") or "unknown",
        "payagg:differs-from-commit": "unknown" if changes is None else str(bool(changes)).lower(),
        "payagg:lock-sha256": hashlib.sha256(LOCK.read_bytes()).hexdigest(),
    }
    properties = whole["metadata"].setdefault("properties", [])
    properties += [{"name": name, "value": value} for name, value in origin.items()]
    text = json.dumps(whole, indent=2)
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault is not None:
        raise ValueError(f"the bill of materials is not valid: {fault.data}")
    return text + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(bill())
