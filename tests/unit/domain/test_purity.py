"""What no import rule can see: the domain stands alone, one file reads a clock, and one writes a payment's status."""

import ast
import re
import subprocess
import sys

from tests.support.machine import ROOT

SOURCE = ROOT / "src"
PRODUCT = SOURCE / "payagg"
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


def test_the_domain_imports_with_the_standard_library_alone() -> None:
    modules = sorted(f"payagg.domain.{path.stem}" for path in (PRODUCT / "domain").glob("[a-z]*.py"))
    assert "payagg.domain.payment" in modules
    program = f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n" + "".join(f"import {name}\n" for name in modules)
    # -S leaves site-packages out, so anything from a third party would fail to import.
    program += "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert set(ran.stdout.split()) <= {"__main__", "payagg"}


def saves_a_payment(source: str) -> bool:
    nodes = ast.walk(ast.parse(source))
    receivers = [node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr == "save"]
    return any(not (isinstance(one, ast.Attribute) and one.attr in OTHERS) for one in receivers)


def test_settlement_alone_saves_a_payment() -> None:
    files = [path for path in PRODUCT.rglob("*.py") if path.relative_to(PRODUCT).parts[0] != "adapters"]
    writers = {path.relative_to(PRODUCT).as_posix() for path in files if saves_a_payment(path.read_text())}
    assert writers == {"application/payments/settlement.py"}
