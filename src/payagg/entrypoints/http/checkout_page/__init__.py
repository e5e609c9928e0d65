"""The hosted checkout page: HTML shells, their assets, and nothing a public endpoint would not say."""

from payagg.entrypoints.http.checkout_page.routes import routes

__all__ = ["routes"]
