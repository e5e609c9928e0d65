"""One module writes a payment's status. Import rules cannot see calls, so this reads the source."""

import ast
from pathlib import Path

import pytest

PRODUCT = Path(__file__).parents[2] / "src" / "payagg"
# Where calls are not those of the product: the repositories themselves, and the suites that try them.
APART = {"adapters", "testing"}
# The other repositories with a `save`. One that is reached by any other name counts as that of payments.
OTHERS = {"businesses", "api_keys", "gateways", "inbox", "health", "anomalies"}


def saves_a_payment(source: str) -> bool:
    receivers = [
        node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute) and node.attr == "save"
    ]
    return any(not (isinstance(one, ast.Attribute) and one.attr in OTHERS) for one in receivers)


def test_settlement_alone_saves_a_payment() -> None:
    files = [path for path in PRODUCT.rglob("*.py") if path.relative_to(PRODUCT).parts[0] not in APART]
    writers = {path.relative_to(PRODUCT).as_posix() for path in files if saves_a_payment(path.read_text())}
    assert writers == {"application/settlement.py"}


@pytest.mark.parametrize(
    "source",
    [
        "await tx.payments.save(payment, transition)",
        "payments = tx.payments\nawait payments.save(payment, transition)",
        "save = tx.payments.save\nawait save(payment, transition)",
        "class Other:\n    async def work(self):\n        await self.repository.save(payment, transition)",
    ],
)
def test_the_search_finds_each_way_to_save_a_payment(source: str) -> None:
    assert saves_a_payment(source)


def test_saving_something_else_is_not_saving_a_payment() -> None:
    assert not saves_a_payment("await tx.gateways.save(gateway)")
