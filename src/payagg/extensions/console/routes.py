"""Every page and form of the console."""

from litestar.types import ControllerRouterHandler

from payagg.entrypoints.bootstrap import Services
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


def routes(_: Services) -> list[ControllerRouterHandler]:
    return [route for area in (sign_in, issuer_sign_in, own_sessions, *MERCHANT, *ADMIN) for route in area.routes]
