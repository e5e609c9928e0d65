"""One fuzz target under libFuzzer: `python -m lab.parsers.one NAME [libFuzzer's own arguments]`."""

import sys

import atheris

with atheris.instrument_imports(include=["payagg"]):
    from lab.parsers.run import TARGETS


def main() -> None:
    name = sys.argv[1]
    [target] = [one for one in TARGETS if one.name == name]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
