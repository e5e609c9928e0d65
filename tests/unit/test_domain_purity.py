"""The domain stands alone, and only one file of the product reads a clock or draws a number."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src"
PRODUCT = ROOT / "payagg"
CLOCK_OR_CHANCE = re.compile(
    r"datetime\.(?:now|utcnow|today)\(|date\.today\(|time\.time(?:_ns)?\(|uuid[147]\("
    r"|\bimport (?:random|secrets|uuid)\b|from (?:random|secrets|uuid) import|os\.urandom|\bdefault_rng\b"
)
# The adapter that may, the clock and chance of tests, and encryption, whose nonces must never repeat; and what judges a
# service from outside, which lives in real time.
MAY = ("adapters/system.py", "adapters/security.py", "testing/clocks.py", "testing/conformance/")


def offences(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    return [
        f"{path.relative_to(PRODUCT)}:{n}: {line.strip()}"
        for n, line in enumerate(lines, 1)
        if CLOCK_OR_CHANCE.search(line)
    ]


def test_only_the_system_adapter_reads_a_clock_or_draws_a_number() -> None:
    files = [path for path in PRODUCT.rglob("*.py") if not path.relative_to(PRODUCT).as_posix().startswith(MAY)]
    assert len(files) > 20
    assert [offence for path in files for offence in offences(path)] == []


@pytest.mark.parametrize(
    "line",
    [
        "now = datetime.now(UTC)",
        "started = time.time()",
        "import random",
        "from secrets import token_hex",
        "key = uuid.uuid4()",
        "salt = os.urandom(8)",
    ],
)
def test_the_search_finds_what_it_is_for(line: str) -> None:
    assert CLOCK_OR_CHANCE.search(line)


def test_the_domain_imports_with_the_standard_library_alone() -> None:
    modules = sorted(f"payagg.domain.{path.stem}" for path in (PRODUCT / "domain").glob("[a-z]*.py"))
    assert "payagg.domain.payment" in modules
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + "".join(f"import {name}\n" for name in modules)
    # -S leaves site-packages out, so anything from a third party would fail to import.
    program += "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert set(ran.stdout.split()) <= {"__main__", "payagg"}


@pytest.mark.parametrize("name", sorted(path.name for path in (PRODUCT / "domain").glob("*.py")))
def test_the_domain_is_plain_functions_of_its_arguments(name: str) -> None:
    source = (PRODUCT / "domain" / name).read_text()
    assert not re.search(
        r"\basync\b|\bawait\b|\bopen\(|\bimport (?:os|socket|asyncio|time|logging)\b|\bprint\(", source
    )
