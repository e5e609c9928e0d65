"""Shipped test equipment: conformance of services and of webhook receivers, strategies, state machines, contract
suites, fake providers, clocks. `pip install 'payagg[testing]'` has what it needs; builders and clocks need the domain
alone.

The names below are the public ones. They are imported when they are first used, as `payagg dev` needs the fake
providers where Hypothesis is not installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from payagg.testing.clocks import ManualClock, SeededEntropy
    from payagg.testing.conformance.access import AccessError, ServiceAccess
    from payagg.testing.conformance.domain import DomainRules, DomainService, domain_target
    from payagg.testing.conformance.inbox import Inbox
    from payagg.testing.conformance.over import open_target
    from payagg.testing.conformance.provider import ProviderAccount
    from payagg.testing.conformance.receiver import ReceiverFinding, check_receiver
    from payagg.testing.conformance.run import MACHINES, Effort, MachineVerdict, run_machine, run_machines
    from payagg.testing.conformance.service import Service
    from payagg.testing.conformance.target import ConformanceTarget, MerchantAccess
    from payagg.testing.conformance.violation import Violation
    from payagg.testing.fake_providers import Fault, serve_fakes
    from payagg.testing.fault_proxy import FaultProxy
    from payagg.testing.network_faults import Blackhole, Delay, Drip, DropReply, HalfOpen, Reset

_PLACES = {
    "clocks": ("ManualClock", "SeededEntropy"),
    "conformance.access": ("ServiceAccess", "AccessError"),
    "conformance.domain": ("DomainRules", "DomainService", "domain_target"),
    "conformance.inbox": ("Inbox",),
    "conformance.over": ("open_target",),
    "conformance.provider": ("ProviderAccount",),
    "conformance.receiver": ("ReceiverFinding", "check_receiver"),
    "conformance.run": ("MACHINES", "Effort", "MachineVerdict", "run_machine", "run_machines"),
    "conformance.service": ("Service",),
    "conformance.target": ("ConformanceTarget", "MerchantAccess"),
    "conformance.violation": ("Violation",),
    "fake_providers": ("Fault", "serve_fakes"),
    "fault_proxy": ("FaultProxy",),
    "network_faults": ("Blackhole", "Delay", "Drip", "DropReply", "HalfOpen", "Reset"),
}

__all__ = [
    "MACHINES",
    "AccessError",
    "Blackhole",
    "ConformanceTarget",
    "Delay",
    "DomainRules",
    "DomainService",
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
    "domain_target",
    "open_target",
    "run_machine",
    "run_machines",
    "serve_fakes",
]


def __getattr__(name: str) -> Any:
    for place, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"payagg.testing.{place}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
