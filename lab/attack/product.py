"""A started product for the attacks: `payagg dev` for its data, and on the same database `payagg serve` as in
production, but for the few files that it may open."""

import contextlib
from collections.abc import Iterator

from lab.attack.target import Target
from lab.kit.dev import dev, environ_in
from lab.kit.places import a_folder
from lab.kit.processes import PAYAGG, Processes, until
from tests.support.ports import free_port
from tests.support.processes import is_ready

FILES = 1024  # that `serve` may open


@contextlib.contextmanager
def the_product() -> Iterator[Target]:
    """Both, ready; stopped and forgotten when the block is left."""
    with a_folder("attack") as folder, Processes(folder) as processes:
        environ, port = environ_in(folder, PAYAGG_SHUTDOWN_DELAY="0"), free_port()
        with dev(environ) as told:
            keys = folder / "state" / "secrets"
            as_dev = {
                "PAYAGG_JWT_KEY": (keys / "jwt.pem").read_text(),
                "PAYAGG_ENCRYPTION_KEYS": f"dev:{(keys / 'encryption.key').read_text()}",
            }
            limited = ("sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", *PAYAGG)
            processes.start("serve", [*limited, "serve", "--port", str(port), "--no-worker"], environ | as_dev)
            until(lambda: is_ready(port), "payagg serve ready")
            yield Target(
                origin=f"http://127.0.0.1:{port}",
                pid=processes.running["serve"].pid,
                secret_key=told["sandboxSecretKey"],
                merchant_token=told["merchantToken"],
                business_id=told["businessId"],
                dev_origin=f"http://127.0.0.1:{told['port']}",
            )
            processes.kill("serve")
