"""`make attack`: tries every attack under `classes/` against a started product; exit status 1 when one succeeds."""

import argparse
import importlib
import pkgutil
import sys
import textwrap
from collections.abc import Callable, Iterator

from tests.attack import classes
from tests.attack.product import the_product
from tests.attack.target import AttackResult, Target

Attack = Callable[[Target], AttackResult]
WIDTHS = (58, 44, 62)


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


def run(target: Target, only: str) -> int:
    """Prints a row for each attack whose name holds `only`; how many succeeded."""
    succeeded = 0
    print(_row("ATTACK", "TRIED", "HAPPENED", "RESULT"), flush=True)
    for name, attack in attacks():
        if only in name:
            finding = tried(target, attack)
            succeeded += finding.succeeded
            result = "SUCCEEDED" if finding.succeeded else "held"
            print(_row(name, finding.tried, finding.happened, result), flush=True)
    return succeeded


def main() -> int:
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of attacks, as trailers or idle_connections.one")
    arguments = parser.parse_args()
    with the_product() as target:
        succeeded = run(target, arguments.only)
    print(f"{succeeded} attacks succeeded." if succeeded else "Every attack was held.")
    return 1 if succeeded else 0


def _row(*cells: str) -> str:
    """Cells side by side, each wrapped to its width."""
    lines = [textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, (*WIDTHS, 10), strict=True)]
    height = max(map(len, lines))
    padded = [[*cell, *[""] * (height - len(cell))] for cell in lines]
    whole = [
        "  ".join(part.ljust(width) for part, width in zip(parts, (*WIDTHS, 10), strict=True)).rstrip()
        for parts in zip(*padded, strict=True)
    ]
    return "\n".join(whole)


if __name__ == "__main__":
    sys.exit(main())
