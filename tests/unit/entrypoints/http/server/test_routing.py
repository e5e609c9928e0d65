"""What a route is given of its path."""

from collections.abc import Mapping
from typing import Any

import pytest
from payagg_testing.memory import MemoryStore

from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.http.server.routing import API_PATH, dispatch
from payagg.entrypoints.http.server.wire import FIELDS
from tests.support.assembly import SETTINGS, services_over

ONE, OTHER = "PAY-20250101-AAAAAA", "PAY-20250101-BBBBBB"
TESTS = "/merchant/businesses/{}/test-payment/{}"


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        (f"/payments/{ONE}", {"reference": ONE}),
        (f"/payments/{OTHER}", {"reference": OTHER}),
        (f"/payments/{ONE}9", {"reference": f"{ONE}9"}),
        (f"/payments/{ONE}/simulate", {"reference": ONE}),
        (TESTS.format("biz_1", ONE), {"business_id": "biz_1", "reference": ONE}),
        (TESTS.format(ONE, OTHER), {"business_id": ONE, "reference": OTHER}),
        (TESTS.format(ONE, ONE), {"business_id": ONE, "reference": ONE}),
    ],
)
async def test_a_name_in_the_path_is_given_as_it_came(path: str, parameters: Mapping[str, str]) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    app = create_app(services_over(MemoryStore(), SETTINGS))
    method = "POST" if path.endswith("/simulate") else "GET"
    scope = {"type": "http", "path": API_PATH + path, "method": method, "query_string": b"", FIELDS: {}}
    await dispatch(app, scope, None, send)
    assert sent[0]["status"] == 401  # without a credential, so that nothing is read
    assert scope["path_params"] == parameters
