"""Benchmarks that ship: `make bench` (see docs/performance.md)."""
