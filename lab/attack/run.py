"""Every attack under `classes/` against a started product."""

import argparse
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence

from lab.attack import classes
from lab.attack.product import the_product
from lab.attack.target import AttackResult, Target
from lab.kit.tally import Tally

Attack = Callable[[Target], AttackResult]


def attacks() -> Iterator[tuple[str, Attack]]:
    """Every attack by its name, module by module."""
    for module in sorted(one.name for one in pkgutil.iter_modules(classes.__path__)):
        found = vars(importlib.import_module(f"{classes.__name__}.{module}"))
        for name, attack in found.items():
            if name.startswith("attack_"):
                yield f"{module}.{name.removeprefix('attack_')}", attack


def tried(target: Target, attack: Attack) -> AttackResult:
    """What it found; the product must live and answer others afterwards, or the attack has succeeded anyway."""
    try:
        finding = attack(target)
    except Exception as error:  # noqa: BLE001 - an attack that breaks proves nothing, so it must not pass for held
        return AttackResult("", f"the attack itself broke: {error!r}", succeeded=True)
    if not finding.succeeded and not target.is_well():
        return AttackResult(finding.tried, f"{finding.happened}; then nobody was answered", succeeded=True)
    return finding


def run(tally: Tally, target: Target, only: str) -> None:
    """Each attack whose name holds `only`."""
    for name, attack in attacks():
        if only in name:
            found = tried(target, attack)
            wrong = ["IT SUCCEEDED"] * found.succeeded
            tally.line(f"{name}: {found.tried}; {found.happened}", wrong)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab attack", description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of attacks, as trailers or idle_connections.one")
    only = parser.parse_args(arguments).only
    tally = Tally("attack", arguments)
    with the_product() as target:
        run(tally, target, only)
    return tally.end(whole=not only)
