"""The documentation as a site: the pages under docs/, the API reference, a search. Served at /docs; no outside host and
nothing to build. MkDocs or Sphinx would run at installation or commit a theme's scripts: of these pages MkDocs 1.6
makes a site with 198 KB of scripts where ours has 3, inline on every page and once from a CDN, and brings 18 packages.
Scalar, Redoc and Swagger UI are megabytes of script. Our content policy blocks inline and foreign scripts."""
