"""The documentation as a site: the pages under docs/, the API reference, a search. Served at /docs, written by `make
site`; no outside host and nothing to build."""

from payagg.entrypoints.http.docs.routes import routes_for

__all__ = ["routes_for"]
