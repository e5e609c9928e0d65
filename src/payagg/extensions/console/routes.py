"""Every page and form of the console."""

from payagg.extensions.console import (
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

MERCHANT = (overview, payments, adjustments, keys, webhooks, checkout, team)
ADMIN = (admin_gateways, admin_businesses, admin_watch, audit)
routes = [route for area in (sign_in, issuer_sign_in, own_sessions, *MERCHANT, *ADMIN) for route in area.routes]
