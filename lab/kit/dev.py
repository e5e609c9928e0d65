"""`payagg dev` with all its data, to be tried from outside."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.kit.processes import PAYAGG, STOP_SECONDS
from tests.support.machine import ROOT
from tests.support.ports import free_port
from tests.support.processes import environment


def environ_in(folder: Path, **settings: str) -> dict[str, str]:
    """Of a product whose state is in `folder`."""
    return environment(PAYAGG_STATE_DIR=str(folder / "state"), **settings)


@contextmanager
def dev(environ: dict[str, str]) -> Iterator[dict[str, Any]]:
    """What it tells about itself, with its port; it must live until the block is left."""
    port = free_port()
    command = [*PAYAGG, "dev", "--port", str(port), "--json"]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            line = running.stdout.readline()
            if not line:
                raise SystemExit("payagg dev did not start.")
            yield {"port": port, **json.loads(line)}
            if running.poll() is not None:
                raise SystemExit("payagg dev ended during the run.")
        finally:
            running.terminate()
            running.wait(STOP_SECONDS)
