"""One set of bounds: the tables know the domain's own numbers and words; test_interface_limits.py has what callers may
send."""

import re
from importlib import import_module
from typing import Any

import pytest
from sqlalchemy import BigInteger, Integer, SmallInteger

from payagg.adapters.postgres.schema.tables import (
    HAS_BODY,
    HAS_PAYER,
    IS_UNSETTLED,
    MAY_END,
    MAY_NEED_ATTENTION,
    SCHEMA,
    metadata,
)
from payagg.domain import gateway, payment, values, webhook
from payagg.domain.api_key import ApiKeyStatus
from payagg.domain.attempt import AttemptState
from payagg.domain.business import BusinessStatus, KycStatus, Role
from payagg.domain.delivery import DeliveryStatus
from payagg.domain.gateway import GatewayStatus
from payagg.domain.payment import PAYMENT, Status
from payagg.domain.values import MAX_AMOUNT, MIN_AMOUNT, Environment

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


def checks() -> dict[str, str]:
    """The text of every CHECK, and of the rules that are a trigger's, by table and name."""
    tables = re.findall(r"^CREATE [A-Z ]*TABLE (\w+) \((.*?)^\)", SCHEMA, re.MULTILINE | re.DOTALL)
    rule = re.compile(r"CONSTRAINT (\w+)\s+CHECK\s+\((.*?)\),?(?:  --.*)?$", re.MULTILINE)
    told = {f"{table}.{name}": told for table, body in tables for name, told in rule.findall(body)}
    newest = import_module("payagg.adapters.postgres.migrations.versions.0031_rules_as_triggers")
    triggers = {"payments": newest.PAYMENT_RULES, "attempts": newest.ATTEMPT_RULES}
    words = {f"{table}.{name}": rule for table, rules in triggers.items() for name, rule in rules.items()}
    return told | {name: rule.replace("NEW.", "") for name, rule in words.items()}


def test_the_conditions_of_indexes_are_in_the_words_that_statements_use() -> None:
    words = " ".join(SCHEMA.split())
    for condition in (HAS_PAYER, IS_UNSETTLED, MAY_NEED_ATTENTION, MAY_END, HAS_BODY):
        assert f"{condition};" in words


def test_the_tables_know_the_words_of_the_domain() -> None:
    told = {name.removesuffix("_known"): rule for name, rule in checks().items() if name.endswith("_known")}
    assert told.keys() >= WORDS.keys()
    for column, kind in WORDS.items():
        assert re.findall(r"'(\w+)'", told[column]) == [member.value for member in kind], column


@pytest.mark.rule("payments.19")
def test_the_tables_check_money_as_the_domain_does() -> None:
    told = checks()
    assert re.findall("[0-9]+", told["payments.amount_in_bounds"]) == [str(MIN_AMOUNT), str(MAX_AMOUNT)]
    assert told["payments.currency_is_ngn"] == f"currency = '{values.CURRENCY}'"
    assert told["payments.live_never_simulated"].endswith(f"gateway = '{gateway.SANDBOX_SLUG}')")
    final = re.findall(r"'(\w+)'", told["payments.final_is_settled"])
    assert set(final) == {status.value for status in PAYMENT.final}


def test_columns_hold_the_highest_number_and_not_one_more() -> None:
    widths: dict[type[Any], int] = {SmallInteger: 2**15, Integer: 2**31, BigInteger: 2**63}
    columns = {"gateways.display_order": gateway.ORDER_MAX, "business_gateways.display_order": gateway.ORDER_MAX}
    columns |= {"payments.sequence": payment.SEQUENCE_MAX, "webhook_endpoints.successful": webhook.COUNT_MAX}
    for column, most in columns.items():
        table, _, name = column.partition(".")
        assert widths[type(metadata.tables[table].c[name].type)] == most + 1, column
