"""The triggers in the database follow the same tables as the code."""

import importlib
from typing import Any

import pytest

from payagg.adapters.postgres.schema.triggers import Moves
from payagg.domain.anomaly import ANOMALY
from payagg.domain.api_key import API_KEY
from payagg.domain.business import KYC
from payagg.domain.gateway import GATEWAY
from payagg.domain.machine import Machine
from payagg.domain.payment import PAYER_FIELDS, PAYMENT

# The migration that last wrote each machine's triggers.
FOLDER = "payagg.adapters.postgres.migrations.versions"
third = importlib.import_module(f"{FOLDER}.0003_declines_and_anomalies")
first = importlib.import_module(f"{FOLDER}.0001_first_schema")
ends = importlib.import_module(f"{FOLDER}.0006_end_of_personal_data")


@pytest.mark.parametrize(
    ("machine", "written"),
    [
        (PAYMENT, first.PAYMENT),
        (GATEWAY, first.GATEWAY),
        (API_KEY, first.API_KEY),
        (KYC, first.KYC),
        (ANOMALY, third.ANOMALY),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_changed_machine_needs_a_migration(machine: Machine[Any, Any], written: Moves) -> None:
    assert Moves.of(machine) == written


def test_the_trigger_that_lets_payer_fields_be_cleared_knows_the_same_final_states() -> None:
    assert Moves.of(PAYMENT) == ends.PAYMENT
    assert set(ends.CLEARABLE) == {*PAYER_FIELDS, "fingerprint"}
