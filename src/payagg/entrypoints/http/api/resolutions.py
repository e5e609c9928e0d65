"""Ending a payment by hand: one administrator requests, another confirms.

The confirmation has its own path: with one path, the same POST would be a request or a confirmation depending on stored
state, and the sender must choose which.
"""

from payagg.application.accounts.access import Administrator
from payagg.application.schemas.resolutions import ResolutionView, ResolvePayment
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.api.auth import admin_changes, by
from payagg.entrypoints.http.server.routing import KB, Call, route

TAG = "Anomalies"
PATH = "/admin/payments/{reference:str}/resolve"
REFUSED = (ErrorCode.PAYMENT_NOT_FOUND, ErrorCode.PAYMENT_ALREADY_FINAL, ErrorCode.RESOLUTION_NOT_ALLOWED)


@route(
    "POST",
    PATH,
    "requestResolution",
    "Ask to end a payment that no provider will end",
    TAG,
    guard=admin_changes,
    body_max=16 * KB,
    status=201,
    errors=(*REFUSED, ErrorCode.RESOLUTION_ALREADY_REQUESTED),
    description="After `expiresAt`, for a payment that is not final and has an anomaly that is not closed. Nothing "
    "changes until another administrator confirms, within 24 hours.",
)
async def request_resolution(call: Call[Administrator, ResolvePayment]) -> ResolutionView:
    asked = await call.services.resolutions.ask(call.path["reference"], call.body, by=by(call))
    return ResolutionView.of(asked)


@route(
    "POST",
    PATH + "/confirm",
    "confirmResolution",
    "Confirm another administrator's request: the payment is FAILED",
    TAG,
    guard=admin_changes,
    errors=(*REFUSED, ErrorCode.RESOLUTION_NOT_REQUESTED, ErrorCode.SECOND_ADMINISTRATOR_REQUIRED),
    description="The failure reason is `RESOLVED`. Money that comes later is the anomaly LATE_SUCCESS.",
)
async def confirm_resolution(call: Call[Administrator, None]) -> ResolutionView:
    return ResolutionView.of(await call.services.resolutions.confirm(call.path["reference"], by=by(call)))


routes = [request_resolution, confirm_resolution]
