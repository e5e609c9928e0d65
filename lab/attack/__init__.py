"""Attacks that once succeeded, against a started product. How to add one: `classes/__init__.py`."""
