"""Fake providers with their own pages and events, for `dev`; `payagg_testing` serves them with faults, for tests."""

from payagg.extras import needing

with needing("server", "payagg.entrypoints.dev.fake_providers"):
    from payagg.entrypoints.dev.fake_providers.book import Book, FakeCharge, WebhookMode
    from payagg.entrypoints.dev.fake_providers.payaza import FakePayaza, fake_payaza
    from payagg.entrypoints.dev.fake_providers.paystack import FakePaystack, fake_paystack
    from payagg.entrypoints.dev.fake_providers.steering import serve_asgi

__all__ = [
    "Book",
    "FakeCharge",
    "FakePayaza",
    "FakePaystack",
    "WebhookMode",
    "fake_payaza",
    "fake_paystack",
    "serve_asgi",
]
