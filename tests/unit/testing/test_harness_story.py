"""What a replaying script knows of the service that it asks: ids are read from its own answers, however short."""

import json
from typing import Any

import pytest
from payagg_testing.conformance.expectation import Expected
from payagg_testing.conformance.service import ServiceAnswer, ServiceCall
from payagg_testing.conformance.story import Story
from payagg_testing.conformance.violation import Violation


def answered(status: int, data: Any) -> ServiceAnswer:
    body = {"success": True, "data": data}
    return ServiceAnswer(status, body, {}, json.dumps(body))


def asked(story: Story, method: str, path: str, status: int = 200, data: Any = None) -> None:
    story.did("somebody asks", ServiceCall(method, path), answered(status, data), Expected((status,)))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/gateways/gw-3/logo", "'/gateways/' + a1.json()['data']['id'] + '/logo'"),
        ("/gateways/gw-33", "'/gateways/' + a2.json()['data']['id']"),
        ("/gateways/gw-333", "'/gateways/gw-333'"),
        ("/gateways/a-gw-3", "'/gateways/a-gw-3'"),
        ("/payments?of=PAY-20250131-7K2M9X.2", "'/payments?of=' + a3.json()['data']['reference'] + '.2'"),
    ],
)
def test_a_value_of_an_answer_is_told_by_where_it_came(path: str, told: str) -> None:
    story = Story("gateways")
    asked(story, "POST", "/gateways", 201, {"id": "gw-3"})
    asked(story, "POST", "/gateways", 201, {"id": "gw-33"})
    asked(story, "POST", "/payments", 201, {"reference": "PAY-20250131-7K2M9X"})
    asked(story, "GET", path)
    script = Violation(story, "it is not so", is_replayed=True).script()
    assert f"a4 = call(dict(method='GET', path={told}))" in script
