"""The documentation as a site: the pages under docs/, the API reference, a search. Served at /docs, written by `make
site`; no outside host and nothing to build. MkDocs or Sphinx would run at installation or commit a theme's
scripts; Scalar, Redoc and Swagger UI are megabytes of script that our content policy blocks."""

from payagg.entrypoints.http.docs.routes import routes_for

__all__ = ["routes_for"]
