"""`make lab` lists the parts; `make lab ARGS="crashes --only w3"` runs one, and `--help` behind its name tells more."""

import sys
from collections.abc import Sequence

from lab.parts import PARTS


def main(arguments: Sequence[str]) -> int:
    """The exit status: 1 when something does not hold, 2 when there is no such part."""
    if not arguments:
        for part in PARTS:
            print(f"{part.name:<11} {part.lasts:>6}  {part.proves}")
        return 0
    name, *words = arguments
    for part in PARTS:
        if part.name == name:
            return part.run(words)
    print(f"There is no part {name}; there are {', '.join(part.name for part in PARTS)}.", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
