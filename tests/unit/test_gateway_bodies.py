"""The limits of gateway bodies: at the limit and one past it, and the name of the field in the refusal."""

import json
from typing import Any

import pytest

from payagg.application.schemas.gateways import (
    CreateGateway,
    ReorderGateways,
    UpdateBusinessGateway,
    UpdateCredentials,
    UpdateGateway,
)
from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.http.strict_json import decode

BIG = 2**31


def a_create(**fields: Any) -> dict[str, Any]:
    return {"slug": "acme", "name": "Acme", **fields}


def an_order(*items: Any) -> dict[str, Any]:
    return {"order": list(items)}


def item(**fields: Any) -> dict[str, Any]:
    return {"gatewayId": "gw_1", "displayOrder": 0, **fields}


ACCEPTED: list[tuple[type, Any]] = [
    (CreateGateway, a_create()),
    (CreateGateway, a_create(slug="ab")),
    (CreateGateway, a_create(slug="a" * 50)),
    (CreateGateway, a_create(slug="a-1-b")),
    (CreateGateway, a_create(name="Ab")),
    (CreateGateway, a_create(name="n" * 100)),
    (CreateGateway, a_create(description="d" * 1000)),
    (CreateGateway, a_create(description=None, displayOrder=None)),
    (CreateGateway, a_create(displayOrder=BIG - 1)),
    (CreateGateway, a_create(unknown="is ignored here")),
    (UpdateGateway, {}),
    (UpdateGateway, {"name": "n" * 100, "description": None, "displayOrder": 0}),
    (UpdateBusinessGateway, {}),
    (UpdateBusinessGateway, {"displayName": "d" * 50, "isEnabled": None}),
    (ReorderGateways, an_order(*[item()] * 100)),
    (UpdateCredentials, {"credentials": {f"k{n}": "v" * 4000 for n in range(50)}}),
    (UpdateCredentials, {"credentials": {"": ""}}),
]
REFUSED: list[tuple[type, Any, str]] = [
    (CreateGateway, {"name": "Acme"}, "slug"),
    (CreateGateway, {"slug": "acme"}, "name"),
    (CreateGateway, a_create(slug="a"), "slug"),
    (CreateGateway, a_create(slug="a" * 51), "slug"),
    *((CreateGateway, a_create(slug=slug), "slug") for slug in ("Acme", "a--b", "-ab", "ab-", "a__b", "a b", "áb", 7)),
    (CreateGateway, a_create(name="n"), "name"),
    (CreateGateway, a_create(name=None), "name"),
    (UpdateGateway, {"name": None}, "name"),
    (CreateGateway, a_create(name="n" * 101), "name"),
    (CreateGateway, a_create(description="d" * 1001), "description"),
    *((CreateGateway, a_create(displayOrder=order), "displayOrder") for order in (-1, BIG, 1.5, "1", True)),
    (UpdateGateway, {"name": "n"}, "name"),
    (UpdateGateway, {"slug": "other"}, "slug"),
    (UpdateGateway, {"status": "ACTIVE"}, "status"),
    (UpdateBusinessGateway, {"displayName": "d" * 51}, "displayName"),
    (UpdateBusinessGateway, {"isEnabled": "true"}, "isEnabled"),
    (UpdateBusinessGateway, {"isDefault": 1}, "isDefault"),
    (UpdateBusinessGateway, {"displayOrder": -1}, "displayOrder"),
    (UpdateBusinessGateway, {"gatewayId": "gw_1"}, "gatewayId"),
    (ReorderGateways, {}, "order"),
    (ReorderGateways, an_order(), "order"),
    (ReorderGateways, an_order(*[item()] * 101), "order"),
    (ReorderGateways, an_order(item(), {"displayOrder": 1}), "order[1].gatewayId"),
    (ReorderGateways, an_order({"gatewayId": "gw_1"}), "order[0].displayOrder"),
    (ReorderGateways, an_order(item(displayOrder=-1)), "order[0].displayOrder"),
    (UpdateCredentials, {}, "credentials"),
    (UpdateCredentials, {"credentials": {}}, "credentials"),
    (UpdateCredentials, {"credentials": []}, "credentials"),
    (UpdateCredentials, {"credentials": {f"k{n}": "" for n in range(51)}}, "credentials"),
    (UpdateCredentials, {"credentials": {"key": "v" * 4001}}, "credentials.key"),
    (UpdateCredentials, {"credentials": {"key": 7}}, "credentials.key"),
    (UpdateCredentials, {"credentials": {"key": None}}, "credentials.key"),
]


@pytest.mark.parametrize(("kind", "body"), ACCEPTED)
def test_a_body_at_its_limits_is_accepted(kind: type, body: Any) -> None:
    decode(json.dumps(body).encode(), kind)


@pytest.mark.parametrize(("kind", "body", "field"), REFUSED)
def test_a_body_past_a_limit_is_refused_by_name(kind: type, body: Any, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode(json.dumps(body).encode(), kind)
    assert (refused.value.code, refused.value.field) == (ErrorCode.VALIDATION_ERROR, field)


def test_credentials_do_not_show_when_printed() -> None:
    command = decode(b'{"credentials": {"liveSecretKey": "sk_live_secret"}}', UpdateCredentials)
    assert "sk_live" not in repr(command) + str(command)
