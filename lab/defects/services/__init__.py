"""A service written by hand from the interface alone, which the harness must pass, and what it must catch by URL."""
