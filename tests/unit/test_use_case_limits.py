"""Numbers and times of the use cases that decide about money, written down by hand: each was chosen for a reason that
stands beside it or in docs/decisions, and a test at a limit that goes by its name would not notice another number."""

from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from payagg.application import (
    access,
    checkout,
    dispatcher,
    payments,
    provider_calls,
    provider_events,
    reconciliation,
    settlement,
)
from payagg.application.ports import TryResult

LIMITS: list[tuple[ModuleType, dict[str, Any]]] = [
    (access, {"READS": 3, "REMEMBERED_MAX": 4_096}),
    (payments, {"REFERENCE_DRAWS": 8}),
    (checkout, {"FIRST_PAUSE_SECONDS": 0.05, "LONGEST_PAUSE_SECONDS": 1.0, "WAIT": timedelta(minutes=1)}),
    (settlement, {"EXPIRE_BATCH": 200}),
    (provider_calls, {"CALL_SECONDS": 15.0}),
    (
        provider_events,
        {"RETRY_BATCH": 50, "FIRST_RETRY": timedelta(seconds=30), "LONGEST_RETRY": timedelta(hours=1)},
    ),
    (reconciliation, {"RATE": 50, "AT_ONCE": 10, "HOLD": timedelta(minutes=2)}),
    (
        dispatcher,
        {
            "CONCURRENT": 400,
            "FAILING_MAX": 200,
            "LEASE": timedelta(seconds=45),
            "POLL_SECONDS": 0.25,
            "GATHER_SECONDS": 0.01,
            "RECORD_MAX": 500,
            "GRACE_SECONDS": 7.0,
            "SUSPECTS_EVERY": 1.0,
            "SUSPECTS_SECONDS": 2.0,
            "SUSPECTS_PAUSE": 3,
            "ALONE_WITHIN": 20.0,
            "GONE": 410,
            "LOST": TryResult(None, "the worker died before it recorded its try", 0),
            "GIVEN_UP": TryResult(None, "given up: earlier tries were never recorded", 0),
            "UNOPENED": TryResult(None, "the signing secret cannot be opened", 0),
            "BACK_OFF_SECONDS": 1.0,
            "BACK_OFF_MAX_SECONDS": 15.0,
            "KEYS_CACHED_MAX": 50_000,
            "PURGE_BATCH": 1_000,
        },
    ),
]


@pytest.mark.parametrize(("module", "limits"), LIMITS, ids=lambda value: getattr(value, "__name__", ""))
def test_each_number_is_the_chosen_one(module: ModuleType, limits: dict[str, Any]) -> None:
    assert {name: getattr(module, name) for name in limits} == limits
