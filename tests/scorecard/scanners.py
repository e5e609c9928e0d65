"""Scanners that we did not write, for the scorecard: bandit, semgrep, secrets, wapiti or sqlmap.

Each is fetched by uv in the version that stands here, into uv's own cache: they need not agree with our packages, and
none of them comes near production. Exit status 1 when one finds something.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fuzz.run import the_service, unlimited
from tests.scorecard.reading import DOES_NOT_RUN, ROOT

WAPITI_MODULES = "sql,timesql,exec,file,ssrf,xss,crlf,redirect"
WAPITI_SECONDS = 60
BASELINE = ".secrets.baseline"


def tool(package: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """`package` is a name with its version; its program has the same name, or is the first argument."""
    there = [sys.executable, "-m", "uv", "tool", "run", "--quiet", "--from", package]
    if subprocess.run([*there, "python", "-c", ""], check=False, capture_output=True).returncode:
        print(f"{package} cannot be installed here")
        sys.exit(DOES_NOT_RUN)
    return subprocess.run(
        [*there, *arguments], cwd=ROOT, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@contextmanager
def a_product() -> Iterator[dict[str, Any]]:
    """`payagg dev`, as `make fuzz` starts it."""
    with tempfile.TemporaryDirectory(prefix="payagg-scan-") as folder:
        # The embedded Postgres of a root user runs as another one, who must reach its folder.
        os.chmod(folder, 0o711)
        with the_service(unlimited(folder)) as told:
            yield told


def bandit() -> int:
    ran = tool("bandit==1.9.4", "bandit", "--quiet", "--recursive", "src", "--format", "json")
    found = json.loads(ran.stdout)
    high = [one for one in found["results"] if one["issue_severity"] == "HIGH"]
    for one in high:
        print(f"{one['filename']}:{one['line_number']}: {one['issue_text']}")
    lines = found["metrics"]["_totals"]["loc"]
    print(f"bandit: {len(high)} findings of high severity in {lines} lines")
    return len(high)


def semgrep() -> int:
    rules = "tests/scorecard/semgrep.yml"
    options = ["--metrics", "off", "--disable-version-check", "--quiet", "--json"]
    ran = tool("semgrep==1.182.0", "semgrep", "scan", "--config", rules, *options, "src")
    found = json.loads(ran.stdout)
    for one in found["results"]:
        print(f"{one['path']}:{one['start']['line']}: {one['check_id']}")
    number = len(re.findall(r"^  - id:", (ROOT / rules).read_text(), re.MULTILINE))
    wrong = len(found["results"]) + len(found["errors"])
    print(f"semgrep: {wrong} findings by {number} rules of our own in {len(found['paths']['scanned'])} files")
    return wrong


def secrets() -> int:
    """What looks like a key by its letters or form, and is not in the list of those that were looked at."""
    asked = ["git", "-c", f"safe.directory={ROOT}", "ls-files"]
    tracked = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    files = [file for file in tracked if file != BASELINE]  # it holds digests
    with tempfile.TemporaryDirectory() as folder:
        known = Path(folder) / "baseline"
        known.write_text((ROOT / BASELINE).read_text())  # a copy: it moves line numbers in its own
        ran = tool("detect-secrets==1.5.0", "detect-secrets-hook", "--baseline", str(known), "--json", *files)
    found = json.loads(ran.stdout)["results"] if ran.returncode == 1 else {}
    for file, all_of_it in found.items():
        print(*(f"{file}:{one['line_number']}: {one['type']}" for one in all_of_it), sep="\n")
    number = sum(map(len, found.values()))
    print(f"detect-secrets: {number} findings in {len(files)} files beside those that are known to be none")
    return number if ran.returncode in (0, 1) else 1


def wapiti() -> int:
    with a_product() as told, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ["-m", WAPITI_MODULES, "--max-scan-time", str(WAPITI_SECONDS), "--store-session", folder]
        options += ["-f", "json", "-o", str(report), "--flush-session", "--no-bugreport", "--tasks", "4"]
        header = f"Authorization: Bearer {told['sandboxSecretKey']}"
        described = told["docsUrl"].replace("/docs", "/openapi.json")
        ran = tool(
            "wapiti3==3.2.3", "wapiti", "-u", f"{told['baseUrl']}/", "--swagger", described, "-H", header, *options
        )
        if not report.exists():
            print(ran.stdout[-2000:], ran.stderr[-2000:])
            return 1
        found = json.loads(report.read_text())
    each = [f"{kind}: {one['path']}" for kind, all_of_it in found["vulnerabilities"].items() for one in all_of_it]
    print(*each, sep="\n")
    print(f"wapiti: {len(each)} findings on {found['infos']['crawled_pages_nbr']} requests of the description")
    return len(each)


def sqlmap() -> int:
    """Every place of a reference, a search and a body in which it could put SQL."""
    wrong = 0
    with a_product() as told, tempfile.TemporaryDirectory() as folder:
        base, key = told["baseUrl"], f"Authorization: Bearer {told['sandboxSecretKey']}"
        admin = f"Authorization: Bearer {told['adminToken']}"
        tries = (
            (f"{base}/payments/PAY*", key, ()),
            (f"{base}/payments?status=SUCCESS*&email=a*&idempotencyKey=b*&after=c*", key, ()),
            (f"{base}/admin/businesses?search=a*", admin, ()),
            (
                f"{base}/payments/initiate",
                key,
                ("--data", '{"amount":150000,"customerName":"a*","idempotencyKey":"b*"}'),
            ),
        )
        for url, header, more in tries:
            options = ["--batch", "--level", "2", "--risk", "1", "--dbms", "postgresql", "--output-dir", folder]
            options += ["--technique", "BEU", "--ignore-code", "400,404,409", "--disable-coloring", *more]
            ran = tool(
                "sqlmap==1.10.10", "sqlmap", "-u", url, "-H", header, "-H", "Content-Type: application/json", *options
            )
            if "not appear to be injectable" not in ran.stdout:
                wrong += 1
                print(ran.stdout[-2000:])
    print(f"sqlmap: {wrong} of {len(tries)} requests can be injected into")
    return wrong


SCANNERS: dict[str, Callable[[], int]] = {
    scanner.__name__: scanner for scanner in (bandit, semgrep, secrets, wapiti, sqlmap)
}

if __name__ == "__main__":
    sys.exit(min(1, SCANNERS[sys.argv[1]]()))
