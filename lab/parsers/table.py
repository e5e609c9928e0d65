"""Every fuzz target."""

from lab.parsers import bodies, texts

TARGETS = (*texts.TARGETS, *bodies.TARGETS)
