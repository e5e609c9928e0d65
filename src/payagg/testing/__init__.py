"""Shipped test equipment (`pip install payagg[testing]`): strategies, state machines, contract suites, clocks."""
