"""The bill of materials says what a lock installs, and where it comes from."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from tools import sbom

PACKAGES = 3  # of the lock: `make sbom` itself says whether the whole of it is valid, in some time


@pytest.mark.release
def test_the_bill_names_every_package_of_the_lock_with_its_hashes_and_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = re.split(r"\n(?=[a-z])", sbom.LOCK.read_text())[1 : PACKAGES + 1]
    lock = tmp_path / "requirements.lock"
    lock.write_text("\n".join(pinned) + "\n")
    monkeypatch.setattr(sbom, "LOCK", lock)
    whole = json.loads(sbom.bill())  # raises where it is not valid
    named = {f"{one['name']}=={one['version']}" for one in whole["components"]}
    assert named == {package.split()[0] for package in pinned}
    assert all(one["externalReferences"][0]["hashes"] for one in whole["components"])
    origin = {one["name"]: one["value"] for one in whole["metadata"]["properties"]}
    assert origin["payagg:lock-sha256"] == hashlib.sha256(lock.read_bytes()).hexdigest()
    assert re.fullmatch(r"[0-9a-f]{40}|unknown", origin["payagg:commit"])
