"""Attacks that once succeeded, against a started product: `make attack`. How to add one: `classes/__init__.py`."""
