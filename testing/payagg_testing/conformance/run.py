"""Runs the machines against a target, and says what came of each."""

import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.errors import Flaky, Unsatisfiable
from hypothesis.stateful import run_state_machine_as_test

from payagg_testing.conformance.api_keys import ApiKeyConformance
from payagg_testing.conformance.base import ConformanceMachine
from payagg_testing.conformance.businesses import BusinessConformance
from payagg_testing.conformance.gateways import GatewayConformance
from payagg_testing.conformance.idempotency import IdempotencyConformance
from payagg_testing.conformance.payments import PaymentConformance
from payagg_testing.conformance.settlement import SettlementConformance, SettlementOfProviderB
from payagg_testing.conformance.statements import Coverage, statements_of
from payagg_testing.conformance.target import ConformanceTarget
from payagg_testing.conformance.violation import Violation
from payagg_testing.conformance.webhooks import WebhookConformance

MACHINES: dict[str, type[ConformanceMachine]] = {
    "payments": PaymentConformance,
    "idempotency": IdempotencyConformance,
    "api-keys": ApiKeyConformance,
    "businesses": BusinessConformance,
    "gateways": GatewayConformance,
    "webhooks": WebhookConformance,
    "settlement": SettlementConformance,
    "settlement-b": SettlementOfProviderB,
}


@dataclass(frozen=True)
class Effort:
    """How long to search: histories, actions in each at most, and the seed (None: another each time)."""

    histories: int = 30
    actions: int = 20
    seed: int | None = None
    shrinks: bool = True  # whether a counterexample is made small
    kinds: int = 1  # of violations, after which a machine stops; each is searched for anew


@dataclass(frozen=True)
class MachineVerdict:
    """What came of one machine: `violations`, one of each kind that was found, break the interface or differ from what
    payagg does where it is silent; `skipped` says what the target lacks. `tried` are statements, routes and error
    codes; `not_tried` says why of the machine's own."""

    machine: str
    requests: int = 0
    seconds: float = 0.0
    violations: tuple[Violation, ...] = ()
    skipped: str | None = None
    tried: frozenset[str] = frozenset()
    not_tried: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None  # which repeats the search

    @property
    def violation(self) -> Violation | None:
        return self.violations[0] if self.violations else None

    @property
    def breaks(self) -> tuple[Violation, ...]:
        """Of the interface itself."""
        return tuple(violation for violation in self.violations if violation.assumption is None)

    @property
    def words(self) -> str:
        if self.skipped is not None:
            return f"skipped: it needs {self.skipped}"
        if self.breaks:
            return "BROKEN: " + "; ".join(violation.headline for violation in self.breaks)
        if self.violations:
            assumed = "; ".join(dict.fromkeys(str(violation.assumption) for violation in self.violations))
            return f"differs from payagg, which the interface allows: {assumed}"
        if not self.not_tried:
            return "keeps the interface"
        count = len(self.not_tried)
        return f"keeps what was tried; {count} statement{'s were' if count > 1 else ' was'} not tried"


def run_machine(name: str, target: ConformanceTarget, effort: Effort | None = None) -> MachineVerdict:
    """One machine of MACHINES against the target. Raises httpx.TransportError when the service cannot be reached."""
    effort, machine = effort or Effort(), MACHINES[name]
    target.with_keys()
    target.with_providers()
    lacking = next((need for need in machine.needs if not need.is_met(target)), None)
    if lacking is not None:
        return _skip(name, lacking.words)
    steps, tried, began = [0], set[str](), time.monotonic()
    chosen = effort.seed if effort.seed is not None else secrets.randbelow(2**32)
    facts = {"target": target, "steps_taken": steps, "tried": tried, "gone": set()}
    found: list[Violation] = []
    while len(found) < effort.kinds:
        facts |= {"last": list[Violation](), "known": {one.kind for one in found}}
        facts["differs"] = frozenset(one.assumption for one in found)
        bound = seed(chosen + len(found))(type(machine.__name__, (machine,), facts))
        violation = _search(bound, effort)
        if violation is None:
            break
        found.append(violation)
    not_tried = {}
    for one in sorted(statements_of(machine).keys() - tried):
        lacking = next((need for need in statements_of(machine)[one] if not need.is_met(target)), None)
        not_tried[one] = f"it needs {lacking.words}" if lacking is not None else "no history came to it"
    took = time.monotonic() - began
    return MachineVerdict(name, steps[0], took, tuple(found), None, frozenset(tried), not_tried, chosen)


def _skip(name: str, lacking: str) -> MachineVerdict:
    return MachineVerdict(
        name, skipped=lacking, not_tried=dict.fromkeys(statements_of(MACHINES[name]), f"it needs {lacking}")
    )


def coverage(verdicts: Iterable[MachineVerdict]) -> Coverage:
    """What all of them tried together, and why not the rest."""
    verdicts, not_tried = list(verdicts), dict[str, str]()
    for verdict in verdicts:
        not_tried |= verdict.not_tried
    for name in [name for name in MACHINES if all(verdict.machine != name for verdict in verdicts)]:
        not_tried = dict.fromkeys(statements_of(MACHINES[name]), f"the machine {name} was left out") | not_tried
    return Coverage.of({one for verdict in verdicts for one in verdict.tried}, not_tried)


def _search(bound: type[ConformanceMachine], effort: Effort) -> Violation | None:
    """What the search comes upon; None where nothing but what is known breaks."""
    try:
        run_state_machine_as_test(bound, settings=_settings(effort))
    except Violation as violation:
        return violation
    except Unsatisfiable:
        return None  # every history met what is known
    except Flaky:
        # A service remembers: what one history did may break the next one. The last break seen is told as it was.
        if not bound.last:
            raise
        return bound.last[-1]
    return None


def _settings(effort: Effort) -> settings:
    phases = [Phase.generate, Phase.shrink] if effort.shrinks else [Phase.generate]
    return settings(
        max_examples=effort.histories,
        stateful_step_count=effort.actions,
        deadline=None,
        database=None,
        derandomize=False,
        phases=phases,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
