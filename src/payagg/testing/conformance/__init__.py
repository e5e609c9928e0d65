"""Whether a service keeps the interface: state machines that drive any service by its URL, and a kit for receivers."""

from payagg.extras import needing

with needing("testing", "payagg.testing.conformance"):
    import httpx  # noqa: F401 - the modules here need both
    import hypothesis  # noqa: F401
