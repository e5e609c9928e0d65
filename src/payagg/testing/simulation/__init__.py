"""The whole product under one seed: processes on the in-memory store, in virtual time, under every fault."""

from payagg.extras import needing

with needing("testing", "payagg.testing.simulation"):
    from payagg.testing.simulation.history import History, simulate

__all__ = ["History", "simulate"]
