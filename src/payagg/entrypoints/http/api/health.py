"""The service's health for administrators; liveness, readiness and metrics stand beside the API."""

from payagg.application.accounts.access import Administrator
from payagg.application.reports.health import ServiceHealth, service_health
from payagg.entrypoints.http.api.auth import admin_reads
from payagg.entrypoints.http.server.routing import Call, Routes

routes = Routes("Health")


@routes.add("GET", "/admin/health", "Show how late the queues are and what waits for a person", guard=admin_reads)
async def get_service_health(call: Call[Administrator, None]) -> ServiceHealth:
    use_cases = call.services
    return await service_health(use_cases.store, use_cases.clock, use_cases.reconciler, use_cases.refused_events)
