"""Every page and form of the console."""

from litestar.types import ControllerRouterHandler

from payagg.entrypoints.bootstrap import Services
from payagg.extensions.console import (
    admin_businesses,
    admin_gateways,
    admin_watch,
    audit,
    checkout,
    developers,
    issuer_sign_in,
    overview,
    payments,
    sign_in,
)

MERCHANT = (overview, payments, developers, checkout)
ADMIN = (admin_gateways, admin_businesses, admin_watch, audit)


def routes(_: Services) -> list[ControllerRouterHandler]:
    return [route for area in (sign_in, issuer_sign_in, *MERCHANT, *ADMIN) for route in area.routes]
