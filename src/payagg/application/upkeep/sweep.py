"""A kind of background work: what the worker runs, and how often."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sweep:
    """Work that runs every `seconds`; with `until_dry` again at once while it finds work."""

    name: str
    seconds: float
    work: Callable[[], Awaitable[int]]
    until_dry: bool = True
