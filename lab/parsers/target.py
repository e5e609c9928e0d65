"""A fuzz target: bytes in, and an AssertionError where a property does not hold."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class FuzzTarget:
    """`seeds` are where a search begins, and what it once found: `make test` tries each of them."""

    check: Callable[[bytes], None]  # its docstring's first line tells what holds
    seeds: tuple[bytes, ...]

    @property
    def name(self) -> str:
        return self.check.__name__.removeprefix("check_").replace("_", " ")

    @property
    def holds(self) -> str:
        return (self.check.__doc__ or "").partition("\n")[0]


def text_of(data: bytes) -> str:
    """Any text, lone surrogates among it: those of undecodable bytes."""
    return data.decode("utf-8", "surrogateescape")


def parts_of(data: bytes, number: int) -> list[bytes]:
    """`data` at its first line breaks, missing parts empty."""
    parts = data.split(b"\n", number - 1)
    return parts + [b""] * (number - len(parts))
