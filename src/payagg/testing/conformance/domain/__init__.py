"""The pure domain as a service under test: the machines' requests, answered by the domain's own functions."""

from payagg.testing.conformance.domain.rules import DomainRules
from payagg.testing.conformance.domain.service import DomainService, domain_target

__all__ = ["DomainRules", "DomainService", "domain_target"]
