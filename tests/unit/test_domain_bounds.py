"""One set of bounds: the HTTP types, the description and the tables say the domain's own numbers and words."""

import re
from typing import Any

import pytest
from msgspec import inspect
from sqlalchemy import BigInteger, CheckConstraint, Integer, SmallInteger

from payagg.adapters.postgres.schema.tables import metadata
from payagg.application.schemas import api_keys, gateways, payments, webhooks
from payagg.domain import api_key, gateway, payment, values, webhook
from payagg.domain.api_key import ApiKeyStatus
from payagg.domain.attempt import AttemptState
from payagg.domain.business import BUSINESS_NAME_MAX, BusinessStatus, KycStatus, Role
from payagg.domain.gateway import GatewayStatus
from payagg.domain.payment import PAYMENT, Status
from payagg.domain.values import EMAIL_MAX, MAX_AMOUNT, MIN_AMOUNT, SLUG_MAX, SLUG_MIN, URL_MAX, Environment
from payagg.domain.webhook import DeliveryStatus
from payagg.entrypoints.http.openapi.schemas import FIELDS

# Lowest and highest of each value, length or count that a caller may send; None = no such bound, () = none at all.
AMOUNT, EMAIL, URL = (MIN_AMOUNT, MAX_AMOUNT), (None, EMAIL_MAX), (None, URL_MAX)
KEYED = {
    "amount": AMOUNT,
    "customerEmail": EMAIL,
    "customerName": (None, payment.CUSTOMER_NAME_MAX),
    "callbackUrl": URL,
    "metadata": (),  # 50 keys and more, which the domain counts
    "idempotencyKey": (1, payment.IDEMPOTENCY_KEY_MAX),
}
GATEWAY = {
    "name": (gateway.NAME_MIN, gateway.NAME_MAX),
    "description": (None, gateway.DESCRIPTION_MAX),
    "displayOrder": (0, gateway.ORDER_MAX),
}
ENDPOINT = {"url": URL, "description": (None, webhook.DESCRIPTION_MAX), "events": (None, webhook.EVENT_NAMES_MAX)}
SENT = {
    payments.InitiatePayment: {
        **KEYED,
        "currency": (),
        "customerPhone": (None, payment.CUSTOMER_PHONE_MAX),
        "gateway": (None, SLUG_MAX),
        "webhookUrl": URL,
    },
    payments.TestPayment: KEYED,
    gateways.CreateGateway: {**GATEWAY, "slug": (SLUG_MIN, SLUG_MAX)},
    gateways.UpdateGateway: GATEWAY,
    gateways.UpdateCredentials: {"credentials": (1, gateway.CREDENTIALS_MAX)},
    gateways.UpdateBusinessGateway: {
        "isEnabled": (),
        "isDefault": (),
        "displayOrder": (0, gateway.ORDER_MAX),
        "displayName": (None, gateway.DISPLAY_NAME_MAX),
    },
    gateways.OrderedGateway: {"gatewayId": (), "displayOrder": (0, gateway.ORDER_MAX)},
    gateways.ReorderGateways: {"order": (1, gateway.REORDER_MAX)},
    api_keys.GenerateApiKey: {"environment": (), "name": (api_key.NAME_MIN, api_key.NAME_MAX)},
    webhooks.CreateWebhook: {**ENDPOINT, "environment": ()},
    webhooks.ChangeWebhook: {**ENDPOINT, "isActive": ()},
}


def plain(kind: Any) -> Any:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def fields_of(body: Any) -> Any:
    info: Any = inspect.type_info(body)
    return info.fields


def bounds_of(kind: Any) -> Any:
    """What msgspec enforces of one field: (lowest, highest), () where there is nothing."""
    kind = plain(kind)
    if isinstance(kind, inspect.UnionType):
        return next((found for found in map(bounds_of, kind.types) if found), ())
    low = getattr(kind, "min_length", None) if not isinstance(kind, inspect.IntType) else kind.ge
    high = getattr(kind, "max_length", None) if not isinstance(kind, inspect.IntType) else kind.le
    return () if low is None and high is None else (low, high)


@pytest.mark.parametrize("body", SENT, ids=lambda body: body.__name__)
def test_what_a_caller_sends_is_bounded_as_the_domain_bounds_it(body: Any) -> None:
    told = {field.encode_name: bounds_of(field.type) for field in fields_of(body)}
    assert told == SENT[body]


def test_a_credential_and_an_event_name_are_bounded_too() -> None:
    credentials = fields_of(gateways.UpdateCredentials)[0].type
    assert bounds_of(credentials.value_type) == (None, gateway.CREDENTIAL_VALUE_MAX)
    events = next(f for f in fields_of(webhooks.CreateWebhook) if f.name == "events").type
    names = next(inner for inner in map(plain, events.types) if isinstance(inner, inspect.ListType))
    assert bounds_of(names.item_type) == (None, webhook.EVENT_NAME_MAX)


def test_patterns_are_the_domains() -> None:
    forms = {
        payments.Reference: values.REFERENCE_PATTERN,
        payments.Slug: values.OPTION_SLUG_PATTERN,  # what is described and created is narrower
        payments.GatewaySlug: values.OPTION_SLUG_PATTERN,
        api_keys.PublicKey: api_key.PUBLIC_PATTERN,
        api_keys.SecretKey: api_key.SECRET_PATTERN,
    }
    for kind, pattern in forms.items():
        assert plain(inspect.type_info(kind)).pattern == pattern


def test_the_description_bounds_what_it_names_as_the_domain_does() -> None:
    told = {name: field["maxLength"] for name, field in FIELDS.items() if "maxLength" in field}
    expected = {
        "callbackUrl": URL_MAX,
        "webhookUrl": URL_MAX,
        "url": URL_MAX,
        "customerEmail": EMAIL_MAX,
        "customerName": payment.CUSTOMER_NAME_MAX,
        "customerPhone": payment.CUSTOMER_PHONE_MAX,
        "businessName": BUSINESS_NAME_MAX,
        "gateway": SLUG_MAX,
    }
    assert {name: told[name] for name in expected} == expected


# The enumeration behind each column that holds one of its words.
WORDS = {
    "businesses.status": BusinessStatus,
    "businesses.kyc_status": KycStatus,
    "members.role": Role,
    "api_keys.environment": Environment,
    "api_keys.status": ApiKeyStatus,
    "gateways.status": GatewayStatus,
    "webhook_endpoints.environment": Environment,
    "payments.environment": Environment,
    "payments.status": Status,
    "attempts.state": AttemptState,
    "provider_health.environment": Environment,
    "inbox.environment": Environment,
    "deliveries.status": DeliveryStatus,
}


def checks() -> Any:
    """The text of every CHECK, by table and name."""
    return {
        f"{table.name}.{rule.name}": str(rule.sqltext)
        for table in metadata.sorted_tables
        for rule in table.constraints
        if isinstance(rule, CheckConstraint)
    }


def test_the_tables_know_the_words_of_the_domain() -> None:
    told = {name.removesuffix("_known"): rule for name, rule in checks().items() if name.endswith("_known")}
    assert told.keys() >= WORDS.keys()
    for column, kind in WORDS.items():
        assert re.findall(r"'(\w+)'", told[column]) == [member.value for member in kind], column


def test_the_tables_check_money_as_the_domain_does() -> None:
    told = checks()
    assert re.findall("[0-9]+", told["payments.amount_in_bounds"]) == [str(MIN_AMOUNT), str(MAX_AMOUNT)]
    assert told["payments.currency_is_ngn"] == f"currency = '{values.CURRENCY}'"
    assert told["payments.live_never_simulated"].endswith(f"gateway = '{gateway.SANDBOX_SLUG}')")
    final = re.findall(r"'(\w+)'", told["payments.final_is_settled"])
    assert set(final) == {status.value for status in PAYMENT.final}


def test_columns_hold_the_highest_number_and_not_one_more() -> None:
    widths: dict[type[Any], int] = {SmallInteger: 2**15, Integer: 2**31, BigInteger: 2**63}
    for column, most in (
        ("payments.sequence", payment.SEQUENCE_MAX),
        ("gateways.display_order", gateway.ORDER_MAX),
        ("business_gateways.display_order", gateway.ORDER_MAX),
        ("webhook_endpoints.successful", webhook.COUNT_MAX),
    ):
        table, _, name = column.partition(".")
        assert widths[type(metadata.tables[table].c[name].type)] == most + 1
