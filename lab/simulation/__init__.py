"""The whole product under one seed: processes on the in-memory store, in virtual time, under every fault."""

from lab.simulation.history import History, simulate

__all__ = ["History", "simulate"]
