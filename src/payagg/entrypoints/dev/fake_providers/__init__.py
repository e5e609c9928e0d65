"""Fake providers with their own pages, events and faults: for `dev`, for tests, and for other projects' tests."""

from payagg.extras import needing

with needing("server", "payagg.entrypoints.dev.fake_providers"):
    from payagg.entrypoints.dev.fake_providers.book import Book, FakeCharge, Fault, WebhookMode
    from payagg.entrypoints.dev.fake_providers.payaza import FakePayaza, fake_payaza
    from payagg.entrypoints.dev.fake_providers.paystack import FakePaystack, fake_paystack
    from payagg.entrypoints.dev.fake_providers.serve import FakeServers, serve_asgi, serve_fakes

__all__ = [
    "Book",
    "FakeCharge",
    "FakePayaza",
    "FakePaystack",
    "FakeServers",
    "Fault",
    "WebhookMode",
    "fake_payaza",
    "fake_paystack",
    "serve_asgi",
    "serve_fakes",
]
