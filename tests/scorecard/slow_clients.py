"""slowhttptest against `payagg serve`, in its three modes, 500 connections each.

Its own probe comes from the same address as its connections, which the cap for one address refuses, so the probe here
is ours: readiness asked from another address of loopback, once a second, answered within PROBE_SECONDS.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time

import httpx

from tests.attack.product import the_product
from tests.scorecard.reading import DOES_NOT_RUN

CONNECTIONS = 500
SECONDS = 20
PROBE_SECONDS = 3.0
MODES = {
    "headers": ("-H", "-i", "5"),
    "body": ("-B", "-i", "5", "-s", "8192"),
    "reading": ("-X", "-w", "10", "-y", "20"),
}


def main() -> int:
    program = shutil.which("slowhttptest")
    if program is None:
        print("slowhttptest is not installed (Debian: apt install slowhttptest)")
        return DOES_NOT_RUN
    asked = unanswered = 0
    with the_product() as target, tempfile.TemporaryDirectory() as folder:
        transport = httpx.HTTPTransport(local_address="127.0.0.2")
        for name, words in MODES.items():
            url = f"{target.origin}/api/v1/payments/initiate" if name == "body" else f"{target.origin}/docs"
            options = [
                "-c",
                str(CONNECTIONS),
                "-r",
                "200",
                "-l",
                str(SECONDS),
                "-p",
                str(int(PROBE_SECONDS)),
                "-u",
                url,
            ]
            running = subprocess.Popen(
                [program, *words, *options], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            here = missed = 0
            while running.poll() is None:
                here += 1
                # A connection of its own each time, as a new caller has.
                with httpx.Client(transport=transport, timeout=PROBE_SECONDS, trust_env=False) as client:
                    try:
                        missed += client.get(f"{target.origin}/readyz").status_code != 200
                    except httpx.TransportError:
                        missed += 1
                transport = httpx.HTTPTransport(local_address="127.0.0.2")
                time.sleep(1)
            told = re.sub(r"\x1b\[[0-9;]*m", "", running.communicate()[0])
            reached = [int(one) for one in re.findall(r"^connected: *([0-9]+)$", told, re.MULTILINE)]
            most = max(reached, default=0)
            print(f"{name}: {here - missed} of {here} probes answered, at most {most} connections at once")
            asked, unanswered = asked + here, unanswered + missed
    print(f"available: {asked - unanswered} of {asked} probes answered, {len(MODES)} modes x {CONNECTIONS} connections")
    return 1 if unanswered or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
