"""The domain stands alone, and only one file of the product reads a clock or draws a number."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3] / "src"
PRODUCT = ROOT / "payagg"
CLOCK_OR_CHANCE = re.compile(
    r"datetime\.(?:now|utcnow|today)\(|date\.today\(|time\.time(?:_ns)?\(|uuid[147]\("
    r"|\bimport (?:random|secrets|uuid)\b|from (?:random|secrets|uuid) import|os\.urandom|\bdefault_rng\b"
)
OUTSIDE = re.compile(r"\basync\b|\bawait\b|\bopen\(|\bimport (?:os|socket|asyncio|time|logging)\b|\bprint\(")
# The adapter that may, and encryption, whose nonces must never repeat.
MAY = {"adapters/system.py", "adapters/security.py"}


def test_only_the_system_adapter_reads_a_clock_or_draws_a_number() -> None:
    read_or_draw = {
        path.relative_to(PRODUCT).as_posix()
        for path in PRODUCT.rglob("*.py")
        if CLOCK_OR_CHANCE.search(path.read_text())
    }
    assert read_or_draw == MAY


def test_the_domain_is_plain_functions_of_its_arguments() -> None:
    assert [path.name for path in (PRODUCT / "domain").glob("*.py") if OUTSIDE.search(path.read_text())] == []


def test_the_domain_imports_with_the_standard_library_alone() -> None:
    modules = sorted(f"payagg.domain.{path.stem}" for path in (PRODUCT / "domain").glob("[a-z]*.py"))
    assert "payagg.domain.payment" in modules
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + "".join(f"import {name}\n" for name in modules)
    # -S leaves site-packages out, so anything from a third party would fail to import.
    program += "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert set(ran.stdout.split()) <= {"__main__", "payagg"}
