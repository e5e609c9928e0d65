"""Every registered provider runs the shipped contract, whose tests are what makes an adapter complete."""

import ast

from payagg.adapters.providers.registry import providers_of
from payagg.domain.gateway import SANDBOX_SLUG
from tests.support.machine import ROOT

CONTRACTS = ROOT / "tests" / "integration" / "http" / "providers" / "test_contract.py"


def test_every_provider_but_the_simulator_runs_the_contract() -> None:
    classes = [node for node in ast.parse(CONTRACTS.read_text()).body if isinstance(node, ast.ClassDef)]
    held = {node.name for node in classes if "ProviderContract" in [ast.unparse(base) for base in node.bases]}
    providers = providers_of(allow_loopback=False)
    named = {f"Test{type(provider).__name__}" for slug, provider in providers.items() if slug != SANDBOX_SLUG}
    # The third provider of the guide, which a test adds, holds it too.
    assert held == named | {"TestAcme"}
