"""One module writes a payment's status. Import rules cannot see calls, so this reads the source."""

import ast
from pathlib import Path

PRODUCT = Path(__file__).parents[3] / "src" / "payagg"
# The repositories themselves.
APART = {"adapters"}
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
