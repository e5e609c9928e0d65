"""`make fuzz`: Schemathesis against `payagg dev`, the whole product on a Postgres of its own, with a fixed seed."""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.support.ports import free_port

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OWNER = "demo-owner"
STOP = 60  # seconds
SIGNING_SECRETS = {"sandbox": "whsec_of_the_fuzz_run", "live": "whsec_of_the_fuzz_runs_live_side"}
NEVER = "1000000"  # a rate limit that a run does not meet; the limits have tests of their own


def unlimited(folder: str) -> dict[str, str]:
    """The environment of a product whose state is in `folder`, and whose rate limits a run does not meet."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PAYAGG_")},
        "PAYAGG_STATE_DIR": f"{folder}/state",
        "PAYAGG_WEBHOOK_RATE_LIMIT": NEVER,
        "PAYAGG_UNKNOWN_REFERENCE_LIMIT": NEVER,
        "PAYAGG_REFERENCE_RATE_LIMIT": NEVER,
        "PAYAGG_REFUSED_BODY_LIMIT": NEVER,
        "PAYAGG_ADDRESS_RATE_LIMIT": NEVER,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    }


@contextlib.contextmanager
def the_service(environ: dict[str, str]) -> Iterator[dict[str, Any]]:
    """What `payagg dev` tells about itself; stopped and forgotten when the block is left."""
    command = [sys.executable, "-m", "payagg", "dev", "--port", str(free_port()), "--json"]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, text=True) as dev:
        assert dev.stdout is not None
        try:
            line = dev.stdout.readline()
            if not line:
                sys.exit("payagg dev did not start.")
            yield json.loads(line)
            if dev.poll() is not None:
                sys.exit("payagg dev ended during the run.")
        finally:
            dev.terminate()
            dev.wait(STOP)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=100, help="generated cases per operation and phase")
    parser.add_argument("--seed", type=int, default=20250131)
    arguments, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="payagg-fuzz-") as folder:
        # The embedded Postgres of a root user runs as another one, who must reach its folder.
        os.chmod(folder, 0o711)
        environ = unlimited(folder)
        with the_service(environ) as told:
            schemathesis = shutil.which("schemathesis", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
            assert schemathesis is not None
            sign_with_our_secret(told)
            environ |= {
                "FUZZ_ADMIN_TOKEN": told["adminToken"],
                "FUZZ_MERCHANT_TOKEN": told["merchantToken"],
                "FUZZ_SECRET_KEY": told["sandboxSecretKey"],
                "FUZZ_BUSINESS_ID": a_business(environ),
            }
            run = [schemathesis, "--config-file", str(HERE / "schemathesis.toml"), "run"]
            run += [told["docsUrl"].replace("/docs", "/openapi.json"), "--url", told["baseUrl"]]
            run += ["--seed", str(arguments.seed), "--max-examples", str(arguments.cases), *more]
            return subprocess.run(run, env=environ, cwd=ROOT, check=False).returncode


def a_business(environ: dict[str, str]) -> str:
    """A second business of the demo's owner: its keys may be revoked while the demo's keep working."""
    command = [sys.executable, "-m", "payagg", "business", "create", "--name", "Fuzz", "--owner", OWNER]
    made = subprocess.run(
        [*command, "--kyc", "APPROVED"], env=environ, cwd=ROOT, check=True, capture_output=True, text=True
    )
    return str(json.loads(made.stdout)["id"])


def sign_with_our_secret(told: dict[str, Any]) -> None:
    """Gives both provider gateways the secrets that the hooks sign events with; the fakes stay where `dev` put them."""
    port = int(told["docsUrl"].rpartition("/")[0].rpartition(":")[2])
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


if __name__ == "__main__":
    sys.exit(main())
