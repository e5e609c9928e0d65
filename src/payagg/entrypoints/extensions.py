"""Capabilities beside the core: each is a package `payagg.extensions.NAME`, whose `EXTENSION` says what it brings. The
core imports none of them, and an installation that leaves one out loads nothing of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from payagg.entrypoints.environment import SettingsError, text_of

if TYPE_CHECKING:
    from litestar.types import ControllerRouterHandler

NAMES = ("console",)
VARIABLE = "PAYAGG_EXTENSIONS"


@dataclass(frozen=True)
class Extension:
    """What one brings, each part as `module:name` in its package, imported when it is asked for."""

    settings: str | None = None  # a class of ExtensionSettings
    services: str | None = None  # what `Services.of` finds: a function of the core's Services
    routes: str | None = None  # handlers of Litestar
    exception_handlers: str | None = None  # by the exception, in place of the core's
    dev_pages: str | None = None  # DevPages: a function of the core's Services and the demo's tokens by realm


@dataclass(frozen=True)
class DevPages:
    """Routes of one run of `payagg dev`, and the links to them by their names in demo.json."""

    routes: Sequence["ControllerRouterHandler"]
    links: Mapping[str, str]


def parts(names: Iterable[str], kind: str) -> list[Any]:
    """What the extensions bring as their `kind`, a field of Extension."""
    packages = [import_module(f"payagg.extensions.{name}") for name in names]
    paths = [(package.__name__, getattr(package.EXTENSION, kind)) for package in packages]
    return [resolve_name(f"{name}.{path}") for name, path in paths if path is not None]


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
