"""Schemathesis against `payagg dev`, the whole product on a Postgres of its own, with a fixed seed."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from lab.kit.figures import RunSummary
from lab.kit.places import a_folder
from lab.kit.processes import until
from tests.support.machine import ROOT
from tests.support.ports import free_port
from tests.support.processes import environment, payagg, running, succeeded

HERE = Path(__file__).parent
OWNER = "demo-owner"
SIGNING_SECRETS = {"sandbox": "whsec_of_the_fuzz_run", "live": "whsec_of_the_fuzz_runs_live_side"}
# Of rates, which a run does not meet; they have tests of their own.
LIMITS = ("WEBHOOK_RATE", "UNKNOWN_REFERENCE", "REFERENCE_RATE", "REFUSED_BODY", "ADDRESS_RATE")
CASES = 100


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES, help="generated cases per operation and phase")
    parser.add_argument("--seed", type=int, default=20250131)
    chosen, more = parser.parse_known_args(arguments)
    tally = RunSummary("fuzz", arguments)
    with a_folder("fuzz") as folder:
        state, port = folder / "state", free_port()
        own = {"PAYAGG_STATE_DIR": str(state)} | {f"PAYAGG_{name}_LIMIT": "1000000" for name in LIMITS}
        with running("dev", port, "--json", **own):
            until((state / "demo.json").exists, "the demo of payagg dev")
            told, environ = json.loads((state / "demo.json").read_text()), environment(**own)
            schemathesis = shutil.which("schemathesis", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
            assert schemathesis is not None
            sign_with_our_secret(told, port)
            environ |= {
                "FUZZ_ADMIN_TOKEN": told["adminToken"],
                "FUZZ_MERCHANT_TOKEN": told["merchantToken"],
                "FUZZ_SECRET_KEY": told["sandboxSecretKey"],
                "FUZZ_BUSINESS_ID": a_business(own),
            }
            command = [schemathesis, "--config-file", str(HERE / "schemathesis.toml"), "run"]
            command += [told["docsUrl"].replace("/docs", "/openapi.json"), "--url", told["baseUrl"]]
            command += ["--seed", str(chosen.seed), "--max-examples", str(chosen.cases), *more]
            status, said = told_by(command, environ)
    found = re.search(r"([0-9]+) generated, \1 passed", said)
    tally.line("Schemathesis", [] if status == 0 else ["see above"])
    return tally.end(whole=chosen.cases >= CASES and not more, cases=int(found[1]) if found else 0)


def told_by(command: Sequence[str], environ: dict[str, str]) -> tuple[int, str]:
    """Its exit status and what it says, which is printed as it comes."""
    lines = []
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return running.returncode, "".join(lines)


def a_business(settings: dict[str, str]) -> str:
    """A second business of the demo's owner: its keys may be revoked while the demo's keep working."""
    made = payagg("business", "create", "--name", "Fuzz", "--owner", OWNER, "--kyc", "APPROVED", **settings)
    return str(json.loads(succeeded(made))["id"])


def sign_with_our_secret(told: dict[str, Any], port: int) -> None:
    """Gives both provider gateways the secrets that the hooks sign events with; the fakes stay where `dev` put them."""
    for slug, at, credentials in (
        ("provider_a", port + 1, {"SecretKey": "sk_{}_fuzz", "WebhookSecret": "{secret}"}),
        ("provider_b", port + 2, {"PublicKey": "PZ78-PK{}-FUZZ", "SigningSecret": "{secret}"}),
    ):
        whole = {
            f"{environment}{name}": value.format(
                mode if slug == "provider_a" else mode.upper(), secret=SIGNING_SECRETS[environment]
            )
            for environment, mode in (("sandbox", "test"), ("live", "live"))
            for name, value in {**credentials, "BaseUrl": f"http://127.0.0.1:{at}"}.items()
        }
        answer = httpx.patch(
            f"{told['baseUrl']}/admin/gateways/gw_{slug}/credentials",
            json={"credentials": whole},
            headers={"Authorization": f"Bearer {told['adminToken']}"},
        )
        answer.raise_for_status()
