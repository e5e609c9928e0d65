"""The hosted checkout page: HTML, assets, and only what a public endpoint would answer."""

from payagg.entrypoints.http.checkout_page.pages import routes

__all__ = ["routes"]
