"""Services written by hand with one thing wrong each: the docstring says what, `machine` which one must notice."""

from inspect import isclass
from types import ModuleType
from typing import Any

from tests.zoo.broken_by_hand import api_keys, businesses, gateways, idempotency, logos, payments, settlement, webhooks
from tests.zoo.by_hand import Handmade

SUBJECTS: list[ModuleType] = [payments, idempotency, api_keys, businesses, gateways, logos, webhooks, settlement]


def _broken(module: ModuleType) -> list[Any]:
    return [one for one in vars(module).values() if isclass(one) and issubclass(one, Handmade) and one is not Handmade]


BROKEN = [one for module in SUBJECTS for one in _broken(module)]
