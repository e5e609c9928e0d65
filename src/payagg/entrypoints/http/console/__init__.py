"""The console for merchants and administrators: pages over our own API."""

from payagg.entrypoints.http.console import (
    adjustments,
    admin_businesses,
    admin_gateways,
    admin_watch,
    audit,
    checkout,
    issuer_sign_in,
    keys,
    overview,
    own_sessions,
    payments,
    sign_in,
    team,
    webhooks,
)
from payagg.entrypoints.http.console.page_request import refused_by_framework

MERCHANT = (overview, payments, adjustments, keys, webhooks, checkout, team)
ADMIN = (admin_gateways, admin_businesses, admin_watch, audit)
routes = [route for area in (sign_in, issuer_sign_in, own_sessions, *MERCHANT, *ADMIN) for route in area.routes]

__all__ = ["refused_by_framework", "routes"]
