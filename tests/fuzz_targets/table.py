"""Every fuzz target."""

from tests.fuzz_targets import bodies, texts

TARGETS = (*texts.TARGETS, *bodies.TARGETS)
