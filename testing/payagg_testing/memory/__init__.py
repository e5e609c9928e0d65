"""The whole Store in dicts: for unit tests, simulation and internal tools. Nothing survives the process."""

from payagg_testing.memory.state import BrokenRule, State
from payagg_testing.memory.store import MemoryStore, MemoryTransaction

__all__ = ["BrokenRule", "MemoryStore", "MemoryTransaction", "State"]
