"""The pure domain as a service under test: the machines' requests, answered by the domain's own functions."""

from payagg_testing.conformance.domain.rules import DomainRules
from payagg_testing.conformance.domain.service import DomainService, domain_target

__all__ = ["DomainRules", "DomainService", "domain_target"]
