"""A started product for the attacks: `payagg dev` for its data, and on the same database `payagg serve` as in
production, but for the few files that it may open."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

from tests.attack.target import Target
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
START, STOP = 120, 60  # seconds
FILES = 1024  # that `serve` may open


@contextlib.contextmanager
def the_product() -> Iterator[Target]:
    """Both, ready; stopped and forgotten when the block is left."""
    with tempfile.TemporaryDirectory(prefix="payagg-attack-") as folder:
        # The embedded Postgres of a root user runs as another one, who must reach its folder.
        os.chmod(folder, 0o711)
        state = Path(folder) / "state"
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PAYAGG_")},
            "PAYAGG_STATE_DIR": str(state),
            "PAYAGG_SHUTDOWN_DELAY": "0",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        }
        dev_port, port = free_port(), free_port()
        dev = subprocess.Popen(
            [*_PAYAGG, "dev", "--port", str(dev_port), "--json"],
            env=environ,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        with _ended(dev):
            assert dev.stdout is not None
            line = dev.stdout.readline()
            if not line:
                sys.exit("payagg dev did not start.")
            told = json.loads(line)
            keys = state / "secrets"
            as_dev = {
                "PAYAGG_JWT_KEY": (keys / "jwt.pem").read_text(),
                "PAYAGG_ENCRYPTION_KEYS": f"dev:{(keys / 'encryption.key').read_text()}",
            }
            with _serving(port, environ | as_dev) as pid:
                yield Target(
                    origin=f"http://127.0.0.1:{port}",
                    pid=pid,
                    secret_key=told["sandboxSecretKey"],
                    merchant_token=told["merchantToken"],
                    business_id=told["businessId"],
                    dev_origin=f"http://127.0.0.1:{dev_port}",
                )


_PAYAGG = [sys.executable, "-m", "payagg"]


@contextlib.contextmanager
def _serving(port: int, environ: Mapping[str, str]) -> Iterator[int]:
    limited = ["sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh"]
    with open(os.devnull, "w") as nowhere:
        serve = subprocess.Popen(
            [*limited, *_PAYAGG, "serve", "--port", str(port), "--no-worker"],
            env=environ,
            cwd=ROOT,
            stderr=nowhere,
            text=True,
        )
        with _ended(serve):
            until = time.monotonic() + START
            while not _is_ready(port):
                if serve.poll() is not None or time.monotonic() > until:
                    sys.exit("payagg serve did not start.")
                time.sleep(0.1)
            yield serve.pid


@contextlib.contextmanager
def _ended(process: "subprocess.Popen[str]") -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
