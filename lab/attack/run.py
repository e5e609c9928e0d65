"""Every attack of this folder against a started product: `payagg dev` for its data, and on the same database `payagg
serve` as in production, but for the few files that it may open, and one more behind HAProxy."""

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence

from lab.attack import attacks as known
from lab.attack.target import AttackResult, Target
from lab.kit.dev import dev, environ_in
from lab.kit.figures import RunSummary
from lab.kit.places import a_folder
from lab.kit.processes import PAYAGG, Processes, until, with_addresses
from tests.support.machine import ROOT, program
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
            behind, front, file = free_port(), free_port(), folder / "haproxy.cfg"
            as_dev["PAYAGG_TRUSTED_PROXIES"] = "127.0.0.1"
            processes.start("behind", [*limited, "serve", "--port", str(behind), "--no-worker"], environ | as_dev)
            text = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8")
            file.write_text(with_addresses(text, f"127.0.0.1:{front}", [f"127.0.0.1:{behind}"] * 3))
            processes.start("haproxy", [program("haproxy"), "-db", "-f", str(file)])
            until(lambda: all(map(is_ready, (port, behind, front))), "payagg serve and HAProxy ready")
            yield Target(
                origin=f"http://127.0.0.1:{port}",
                pid=processes.running["serve"].pid,
                secret_key=told["sandboxSecretKey"],
                front_origin=f"http://127.0.0.1:{front}",
            )
            for name in ("haproxy", "behind", "serve"):
                processes.kill(name)


Attack = Callable[[Target], AttackResult]


def attacks() -> dict[str, Attack]:
    """Every attack by its name."""
    return {name.removeprefix("attack_"): one for name, one in vars(known).items() if name.startswith("attack_")}


def tried(target: Target, attack: Attack) -> AttackResult:
    """What it found; the product must live and answer others afterwards, or the attack has succeeded anyway."""
    try:
        finding = attack(target)
    except Exception as error:  # noqa: BLE001 - an attack that breaks proves nothing, so it must not pass for held
        return AttackResult("", f"the attack itself broke: {error!r}", succeeded=True)
    if not finding.succeeded and not target.is_well():
        return AttackResult(finding.tried, f"{finding.happened}; then nobody was answered", succeeded=True)
    return finding


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab attack", description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of attacks, as json or bodies")
    only = parser.parse_args(arguments).only
    tally = RunSummary("attack", arguments)
    with the_product() as target:
        for name, attack in attacks().items():
            if only in name:
                found = tried(target, attack)
                tally.line(f"{name}: {found.tried}; {found.happened}", ["IT SUCCEEDED"] * found.succeeded)
    return tally.end(whole=not only)
