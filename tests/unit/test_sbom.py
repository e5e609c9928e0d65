"""The bill of materials says what the lock installs, and where it comes from."""

import hashlib
import json
import re

import pytest

from tools.sbom import LOCK, bill


@pytest.mark.long
def test_the_bill_names_every_package_of_the_lock_with_its_hashes_and_is_valid() -> None:
    whole = json.loads(bill())  # raises where it is not valid
    assert (whole["bomFormat"], whole["specVersion"]) == ("CycloneDX", "1.6")
    pinned = set(re.findall(r"^([a-z0-9-]+)(?:\[.*\])?==([^\s;]+)", LOCK.read_text(), re.M))
    assert {(one["name"], one["version"]) for one in whole["components"]} == pinned
    assert all(one["externalReferences"][0]["hashes"] for one in whole["components"])
    origin = {one["name"]: one["value"] for one in whole["metadata"]["properties"]}
    assert origin["payagg:lock-sha256"] == hashlib.sha256(LOCK.read_bytes()).hexdigest()
    assert re.fullmatch(r"[0-9a-f]{40}|unknown", origin["payagg:commit"])
    assert bill() == bill()
