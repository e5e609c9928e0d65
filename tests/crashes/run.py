"""`make crash-matrix`: each step of a payment x our process killed, Postgres killed, connections cut.

After each crash everything starts again, callers who were not answered repeat themselves, workers go on until nothing
is due, and the invariants are checked. Exit status 1 when one is broken. A whole run writes docs/crash-matrix.md.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from tests.crashes.labels import LABELS, CrashKind, Label
from tests.crashes.scenes import a_scene

DOCUMENT = Path(__file__).parents[2] / "docs" / "crash-matrix.md"
TEMPLATE = "template_of_crashes"
Table = dict[tuple[Label, CrashKind], str]


class Databases:
    """A server to be killed, and an empty database of its own for each crash."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.server, self.made = server, 0
        self._execute(f"CREATE DATABASE {TEMPLATE} OWNER payagg")
        migrate(self._at(TEMPLATE))

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """The URL of one. It is dropped again: a server that was killed looks through every file that it has."""
        self.made += 1
        name = f"crash_{self.made}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} OWNER payagg")
        yield self._at(name)
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.server.superuser_url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def _at(self, name: str) -> str:
        head, _, query = self.server.url.partition("?")
        return f"{head.rpartition('/')[0]}/{name}?{query}"


@contextmanager
def databases() -> Iterator[tuple[Databases, Path]]:
    """And the folder in which each crash has one of its own."""
    with tempfile.TemporaryDirectory(prefix="payagg-crashes-") as folder:
        # The embedded Postgres of a root user runs as another one, who must reach its folder.
        os.chmod(folder, 0o711)
        with EmbeddedPostgres(Path(folder) / "state") as server:
            yield Databases(server), Path(folder)


async def tried(made: Databases, folder: Path, label: Label, kind: CrashKind) -> tuple[str, list[str]]:
    """How the process ended, and what does not hold."""
    own = folder / f"{label.name}-{kind.name}".lower()
    own.mkdir()
    with made.fresh() as url:
        async with a_scene(url, own, label, kind) as scene:
            await scene.crash(await scene.prepare())
            await scene.recover()
            await scene.judge()
    return {-9: "died", 0: "went on"}.get(scene.ended, "refused"), scene.wrong


def run(only: str) -> int:
    table: Table = {}
    broken = 0
    began = time.monotonic()
    with databases() as (made, folder):
        for label in LABELS:
            for kind in CrashKind:
                if only not in f"{label.name} {label.verb} {kind.name}".lower():
                    continue
                started = time.monotonic()
                ended, wrong = asyncio.run(tried(made, folder, label, kind))
                seconds = time.monotonic() - started
                table[label, kind] = f"{ended}, {'BROKEN' if wrong else 'holds'}, {seconds:.1f} s"
                broken += bool(wrong)
                print(f"{label.name}  {kind.value:<20} {table[label, kind]}", *wrong, sep="\n    ", flush=True)
    print(f"{len(table) - broken} of {len(table)} crashes hold.")
    if len(table) == len(LABELS) * len(CrashKind):
        DOCUMENT.write_text("".join(document(table, (time.monotonic() - began) / 60)))
    return 1 if broken else 0


INVARIANTS = """| Invariant | In the end |
| --- | --- |
| INV1 | one reference is charged once, and one payment is paid once |
| INV2 | what the provider took is SUCCESS |
| INV3 | the history is legal |
| INV4 | the merchant has each event, under one id |
| INV5 | amount, currency, environment and business are as before |
| INV6 | an idempotency key answers as before |
| INV7 | nothing is left claimed or due |
| INV8 | what was acknowledged is there |
| | every rule of `payagg doctor` is kept |
"""
HEAD = """<!-- Written by `make crash-matrix`. -->

# Crash matrix

`make crash-matrix` stops something at each step of a payment, on a real Postgres, with providers and a merchant on
loopback: our own process (`kill -9`), every process of the database server (`kill -9`), or each connection to it. Then
the server starts again, callers who were not answered repeat themselves, and workers go on until nothing is due. Last
run: {holds} of {all} hold, in {minutes:.0f} minutes.

{invariants}
A cell says how the process ended (died; refused, which over HTTP is a 503; or went on by itself), and how long all of
it took. The steps are called by the ports that a test hands in (`tests/crashes/child.py`); the product has none of
them: [0123](decisions/0123-crash-steps.md).

"""


def document(table: Table, minutes: float) -> Iterator[str]:
    holds = sum("holds" in cell for cell in table.values())
    yield HEAD.format(holds=holds, all=len(table), minutes=minutes, invariants=INVARIANTS)
    yield f"| Label | Step | {' | '.join(kind.value for kind in CrashKind)} |\n| --- | --- | --- | --- | --- |\n"
    for label in LABELS:
        yield f"{row(label)} {' | '.join(table[label, kind] for kind in CrashKind)} |\n"


def row(label: Label) -> str:
    """What a run does not change of the label's line."""
    return f"| {label.name} | {label.at} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make crash-matrix", description=__doc__)
    parser.add_argument("--only", default="", help="a label, a verb or a kind of crash: W3, process, postgres")
    return run(parser.parse_args().only.lower())


if __name__ == "__main__":
    sys.exit(main())
