"""Cells: installations that share gateways and keys, each with its own Postgres and its own businesses."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cells:
    """Every cell's origin by its name, in the order that all of them share; `own` is the one that looks.

    A cell's name is the prefix of the references that it makes. Raises ValueError where `own` is not among them.
    """

    own: str
    origins: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.own not in self.origins:
            raise ValueError(f"{self.own} is none of the cells")

    @property
    def home(self) -> str:
        """The first, where gateways are set."""
        return next(iter(self.origins))

    @property
    def is_home(self) -> bool:
        return self.own == self.home

    @property
    def others(self) -> Mapping[str, str]:
        """The origins of all but `own`."""
        return {name: origin for name, origin in self.origins.items() if name != self.own}

    def elsewhere(self, reference: str) -> str | None:
        """The other cell that made `reference`, by its form alone; None where it is ours or no cell's today."""
        name = reference[:3]
        return name if name != self.own and name in self.origins else None
