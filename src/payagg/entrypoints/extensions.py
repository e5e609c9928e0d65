"""Capabilities beside the core: each is a package `payagg.extensions.NAME`, whose `EXTENSION` says what it brings. The
core imports none of them, and an installation that leaves one out loads nothing of it."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from payagg.entrypoints.environment import SettingsError, text_of

if TYPE_CHECKING:
    from litestar.types import ControllerRouterHandler

NAMES = ("console", "archive", "catchup", "cells")
VARIABLE = "PAYAGG_EXTENSIONS"


@dataclass(frozen=True)
class Command:
    """A command of `payagg`, shown in the group of that title. `run` is a function of its options and the settings, as
    `module:name` in the package; it returns the exit status."""

    group: str
    name: str
    meaning: str
    arguments: Callable[[ArgumentParser], object]
    run: str


@dataclass(frozen=True)
class Extension:
    """What one brings; a text is `module:name` in its package, imported when it is asked for."""

    settings: str | None = None  # a class of ExtensionSettings
    services: str | None = None  # what `Services.of` finds: a function of the core's Services
    elsewhere: str | None = None  # of the settings: what makes the store's Elsewhere, None where there is no other
    routes: str | None = None  # handlers of Litestar: a function of Services
    middleware: str | None = None  # ASGI around the routes: a function of these, Services and the rate limits
    exception_handlers: str | None = None  # by the exception, in place of the core's
    sweeps: str | None = None  # of the worker: a function of Services
    metrics: str | None = None  # families of prometheus_client: a function of Services and the counters' totals
    dev_pages: str | None = None  # DevPages: a function of the core's Services and the demo's tokens by realm
    archived_histories: str | None = None  # ArchivedHistories, for `payagg explain`: a function of the settings
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True)
class DevPages:
    """Routes of one run of `payagg dev`, and the links to them by their names in demo.json."""

    routes: Sequence["ControllerRouterHandler"]
    links: Mapping[str, str]


def parts(names: Iterable[str], kind: str) -> list[Any]:
    """What the extensions bring as their `kind`, a field of Extension."""
    paths = [(name, getattr(_extension(name), kind)) for name in names]
    return [_part(name, path) for name, path in paths if path is not None]


def commands_of(names: Iterable[str]) -> list[Command]:
    return [command for name in names for command in _extension(name).commands]


def command_named(name: str, names: Iterable[str]) -> Any:
    """The function that runs it."""
    return next(_part(one, each.run) for one in names for each in _extension(one).commands if each.name == name)


def _extension(name: str) -> Extension:
    found: Extension = import_module(f"payagg.extensions.{name}").EXTENSION
    return found


def _part(name: str, path: str) -> Any:
    return resolve_name(f"payagg.extensions.{name}.{path}")


def parse_names(text: str) -> tuple[str, ...]:
    """In the order of NAMES; raises ValueError for one that there is not."""
    wanted = set() if text == "none" else {name.strip() for name in text.split(",")}
    if not wanted <= set(NAMES):
        raise ValueError
    return tuple(name for name in NAMES if name in wanted)


def names_in(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Those that the environment chooses, known before its settings are read; all, where `read_settings` will refuse
    the choice."""
    try:
        text, _ = text_of(environ, VARIABLE)
        return NAMES if text is None else parse_names(text)
    except (SettingsError, ValueError):
        return NAMES
