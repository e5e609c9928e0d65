"""Defects that the tests must find: the laboratory's part `defects` edits a copy of the product and runs the test named for each."""
