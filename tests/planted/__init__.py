"""Defects that the tests must find: `make planted` edits a copy of the product and runs the test named for each."""
