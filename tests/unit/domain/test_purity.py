"""What no import rule sees: the domain calls nothing outside, one file reads a clock, one writes a payment's status."""

import ast
import re

from tests.support.machine import ROOT

PRODUCT = ROOT / "src" / "payagg"
CLOCK_OR_CHANCE = re.compile(
    r"datetime\.(?:now|utcnow|today)\(|date\.today\(|time\.time(?:_ns)?\(|uuid[147]\("
    r"|\bimport (?:random|secrets|uuid)\b|from (?:random|secrets|uuid) import|os\.urandom|\bdefault_rng\b"
)
OUTSIDE = re.compile(r"\basync\b|\bawait\b|\bopen\(|\bimport (?:os|socket|asyncio|time|logging)\b|\bprint\(")
# The adapter that may, and encryption, whose nonces must never repeat.
MAY = {"adapters/system.py", "adapters/security.py"}
# The other repositories with a `save`. One that is reached by any other name counts as that of payments.
OTHERS = {
    *("businesses", "api_keys", "gateways", "gateway_choices", "attempts"),
    *("endpoints", "inbox", "health", "anomalies"),
}


def test_only_the_system_adapter_reads_a_clock_or_draws_a_number() -> None:
    read_or_draw = [path for path in PRODUCT.rglob("*.py") if CLOCK_OR_CHANCE.search(path.read_text())]
    assert {path.relative_to(PRODUCT).as_posix() for path in read_or_draw} == MAY


def test_the_domain_is_plain_functions_of_its_arguments() -> None:
    assert [path.name for path in (PRODUCT / "domain").glob("*.py") if OUTSIDE.search(path.read_text())] == []


def saves_a_payment(source: str) -> bool:
    nodes = ast.walk(ast.parse(source))
    receivers = [node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr == "save"]
    return any(not (isinstance(one, ast.Attribute) and one.attr in OTHERS) for one in receivers)


def test_settlement_alone_saves_a_payment() -> None:
    files = [path for path in PRODUCT.rglob("*.py") if path.relative_to(PRODUCT).parts[0] != "adapters"]
    writers = {path.relative_to(PRODUCT).as_posix() for path in files if saves_a_payment(path.read_text())}
    assert writers == {"application/payments/settlement.py"}
