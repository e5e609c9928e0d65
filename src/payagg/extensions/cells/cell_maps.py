"""`payagg cell map`: the maps that lead HAProxy from a key, a business or a reference to its cell."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from payagg.application.ports.outside import Unavailable
from payagg.entrypoints.settings import Settings, SettingsError
from payagg.extensions.cells.domain import Cells
from payagg.extensions.cells.settings import CellSettings, listed_cells

if TYPE_CHECKING:
    from payagg.extensions.cells.client import HttpCells
    from payagg.extensions.cells.domain import CellNames

FOLLOW_SECONDS = 10.0  # what is newer goes to the home cell, which sends it on
HAPROXY_SECONDS = 5.0
LINES = 100  # of one command, which HAProxy takes up to 16 KB of
Map = dict[str, str]


def write_maps(options: argparse.Namespace, settings: Settings) -> int:
    """Exit status 1 when a cell or HAProxy cannot be asked."""
    cells = listed_cells(settings)
    if not options.out.is_dir():
        raise SettingsError(f"{options.out} is not a folder.")
    return asyncio.run(_run(options, cells, settings.of(CellSettings).cell_secret or ""))


async def _run(options: argparse.Namespace, cells: Cells, secret: str) -> int:
    from payagg.extensions.cells.client import HttpCells

    maps = CellMaps(cells, options.out.absolute(), options.haproxy)
    async with aclosing(HttpCells(cells, secret)) as asking:
        if not options.follow:
            return 1 if _tell(await maps.update(asking), []) else 0
        stop, faults = asyncio.Event(), list[str]()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        while not stop.is_set():
            faults = _tell(await maps.update(asking), faults)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), FOLLOW_SECONDS)
        return 0


def _tell(faults: list[str], before: list[str]) -> list[str]:
    for fault in faults:
        if fault not in before:
            print(fault, file=sys.stderr, flush=True)  # noqa: T201
    return faults


class CellMaps:
    """The maps in a folder, and in a running HAProxy that reads them there when it starts."""

    def __init__(self, cells: Cells, folder: Path, haproxy: Path | None) -> None:
        self._cells, self._folder, self._haproxy = cells, folder, haproxy
        self._known: dict[str, tuple[CellNames, str]] = {}
        self._held: dict[str, Map] = {}  # by HAProxy

    async def update(self, asking: "HttpCells") -> list[str]:
        """Returns what could not be done, in words."""
        from payagg.extensions.cells.client import or_away

        names = list(self._cells.origins)
        digests = [self._known[name][1] if name in self._known else "" for name in names]
        answers = await asyncio.gather(*map(or_away, map(asking.names, names, digests)))
        faults = list[str]()
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, Unavailable):
                faults.append(f"{answer}; its lines stay as they were.")
            elif answer is not None:
                self._known[name] = answer
        try:
            maps = self.write({name: known for name, (known, _) in self._known.items()})
            await self._hand_over(maps)
        except (OSError, Unavailable) as error:
            faults.append(f"The maps are not up to date: {error}.")
        return faults

    def write(self, known: "Mapping[str, CellNames]") -> dict[str, Map]:
        """Every map, whose file is replaced where it differs. A cell that is not `known` keeps its lines."""
        maps: dict[str, Map] = {
            "keys.map": {key: cell for cell, names in known.items() for key in names.keys},
            "businesses.map": {business: cell for cell, names in known.items() for business in names.businesses},
        }
        away = self._cells.origins.keys() - known.keys()
        for name, lines in maps.items():
            before = _lines_of(self._folder / name).items()
            maps[name] = {key: cell for key, cell in before if cell in away} | lines
        maps["prefixes.map"] = {f"/{name}-[0-9]{{8}}-[A-Z0-9]{{6}}(/|$)": name for name in self._cells.origins}
        for name, lines in maps.items():
            file = self._folder / name
            if lines != _lines_of(file) or not file.exists():
                new = file.with_name(f".{name}.new")
                new.write_text("".join(f"{key} {cell}\n" for key, cell in lines.items()), encoding="utf-8")
                new.replace(file)
        return maps

    async def _hand_over(self, maps: Mapping[str, Map]) -> None:
        """All of a map at once, so that no request meets a part of it."""
        for name, lines in maps.items() if self._haproxy is not None else ():
            if self._held.get(name) == lines:
                continue
            path = self._folder / name
            version = (await self._command(f"prepare map {path}")).removeprefix("New version created: ")
            if not version.isdecimal():
                raise Unavailable(f"HAProxy has no map {path}: {version}")
            rows = [f"{key} {cell}\n" for key, cell in lines.items()]
            for at in range(0, len(rows), LINES):
                await self._say(f"add map @{version} {path} <<\n{''.join(rows[at : at + LINES])}")
            await self._say(f"commit map @{version} {path}")
            self._held[name] = lines

    async def _say(self, command: str) -> None:
        answer = await self._command(command)
        if answer:
            raise Unavailable(f"HAProxy answered {answer}")

    async def _command(self, command: str) -> str:
        try:
            async with asyncio.timeout(HAPROXY_SECONDS):
                reader, writer = await asyncio.open_unix_connection(str(self._haproxy))
                try:
                    writer.write(f"{command}\n".encode())
                    return (await reader.read()).decode("utf-8", "replace").strip()
                finally:
                    writer.close()
        except OSError as error:  # a TimeoutError is one
            raise Unavailable(f"{self._haproxy} cannot be asked: {type(error).__name__}") from None


def _lines_of(file: Path) -> Map:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return {key: cell for key, _, cell in (line.partition(" ") for line in lines)}
