"""Each step of a payment x our process killed, Postgres killed, connections cut.

After each crash everything starts again, callers who were not answered repeat themselves, workers go on until nothing
is due, and the invariants INV1 to INV8 are checked (lab/kit/judgement.py).
"""

import argparse
import asyncio
import time
from collections.abc import Sequence

from lab.crashes.labels import LABELS, CrashKind, Label
from lab.crashes.scenes import Scene, a_scene
from lab.kit.places import Databases, databases
from lab.kit.tally import Tally


async def tried(made: Databases, label: Label, kind: CrashKind) -> Scene:
    """With what does not hold."""
    with made.fresh() as (url, folder):
        async with a_scene(url, folder, label, kind) as scene:
            await scene.crash(await scene.prepare())
            await scene.recover()
            await scene.judge()
    return scene


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab crashes", description=__doc__)
    parser.add_argument("--only", default="", help="a label, a verb or a kind of crash: W3, process, postgres")
    only = parser.parse_args(arguments).only.lower()
    tally = Tally("crashes", arguments)
    with databases("crashes") as made:
        for label in LABELS:
            for kind in CrashKind:
                if only in (label.name.lower(), label.verb, kind.name.lower(), ""):
                    began = time.monotonic()
                    scene = asyncio.run(tried(made, label, kind))
                    how = f"{scene.told_of_end}, {time.monotonic() - began:.1f} s"
                    tally.line(f"{label.name}  {kind.value:<20} {how:<16} {label.at}", scene.wrong)
    return tally.end(whole=not only)
