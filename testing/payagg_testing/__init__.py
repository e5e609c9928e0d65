"""Judges any service that keeps payagg's interface: state machines by its URL, strategies, a receiver kit, faults.

The names below are the public ones, imported when they are first used: a clock need not wait for Hypothesis.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from payagg_testing.clocks import ManualClock, SeededEntropy
    from payagg_testing.conformance.access import AccessError, ServiceAccess
    from payagg_testing.conformance.inbox import Inbox
    from payagg_testing.conformance.over import open_target
    from payagg_testing.conformance.provider import ProviderAccount
    from payagg_testing.conformance.receiver import ReceiverFinding, check_receiver
    from payagg_testing.conformance.run import MACHINES, Effort, MachineVerdict, run_machine
    from payagg_testing.conformance.service import Service
    from payagg_testing.conformance.target import ConformanceTarget, MerchantAccess
    from payagg_testing.conformance.violation import Violation
    from payagg_testing.fault_proxy import FaultProxy
    from payagg_testing.network_faults import Blackhole, Delay, Drip, DropReply, HalfOpen, Reset
    from payagg_testing.provider_faults import Fault, serve_fakes
    from payagg_testing.state_machine.domain import DomainRules, DomainSystem
    from payagg_testing.state_machine.machine import payment_machine

_PLACES = {
    ".clocks": ("ManualClock", "SeededEntropy"),
    ".conformance.access": ("ServiceAccess", "AccessError"),
    ".conformance.inbox": ("Inbox",),
    ".conformance.over": ("open_target",),
    ".conformance.provider": ("ProviderAccount",),
    ".conformance.receiver": ("ReceiverFinding", "check_receiver"),
    ".conformance.run": ("MACHINES", "Effort", "MachineVerdict", "run_machine"),
    ".conformance.service": ("Service",),
    ".conformance.target": ("ConformanceTarget", "MerchantAccess"),
    ".conformance.violation": ("Violation",),
    ".fault_proxy": ("FaultProxy",),
    ".provider_faults": ("Fault", "serve_fakes"),
    ".network_faults": ("Blackhole", "Delay", "Drip", "DropReply", "HalfOpen", "Reset"),
    ".state_machine.domain": ("DomainRules", "DomainSystem"),
    ".state_machine.machine": ("payment_machine",),
}

__all__ = [
    "MACHINES",
    "AccessError",
    "Blackhole",
    "ConformanceTarget",
    "Delay",
    "DomainRules",
    "DomainSystem",
    "Drip",
    "DropReply",
    "Effort",
    "Fault",
    "FaultProxy",
    "HalfOpen",
    "Inbox",
    "MachineVerdict",
    "ManualClock",
    "MerchantAccess",
    "ProviderAccount",
    "ReceiverFinding",
    "Reset",
    "SeededEntropy",
    "Service",
    "ServiceAccess",
    "Violation",
    "check_receiver",
    "open_target",
    "payment_machine",
    "run_machine",
    "serve_fakes",
]


def __getattr__(name: str) -> Any:
    for place, names in _PLACES.items():
        if name in names:
            return getattr(import_module(place, __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
