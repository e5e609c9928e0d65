"""The pure domain as a system of the payment machine: its own functions over rows in dictionaries."""

from payagg_testing.state_machine.domain.rules import DomainRules
from payagg_testing.state_machine.domain.system import DomainSystem

__all__ = ["DomainRules", "DomainSystem"]
