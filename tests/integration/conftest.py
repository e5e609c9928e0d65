"""What every test here asks: that no server it used logged an error."""

from collections.abc import Iterator
from functools import cache, partial

import httpx
import pytest

from tests.support.error_lines import ERROR_LOG, complaints
from tests.support.processes import Command, payagg

# Each client reads the system's certificates, 20 ms of processor time, to talk plain HTTP on loopback.
httpx._transports.default.create_ssl_context = cache(httpx.create_ssl_context)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def no_undeclared_error(request: pytest.FixtureRequest) -> Iterator[None]:
    """Begun before a test's servers and ended after them."""
    with ERROR_LOG.watching():
        yield
    markers = list(request.node.iter_markers("error_lines"))
    may_come = {event for marker in markers if marker.kwargs.get("optional") for event in marker.args}
    must_come = [event for marker in markers if not marker.kwargs.get("optional") for event in marker.args]
    found = complaints([line for line in ERROR_LOG.taken() if line.event not in may_come], must_come)
    assert not found, "\n".join(found)


@pytest.fixture
def run(database_url: str) -> Command:
    """`payagg` on the test's database."""
    return partial(payagg, PAYAGG_DATABASE_URL=database_url)
