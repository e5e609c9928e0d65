"""What every store and every provider adapter must keep, as classes of tests."""

from payagg.extras import needing

with needing("testing", "payagg.testing.contracts"):
    import pytest  # noqa: F401 - every module here needs it
