"""The comparison build's whole journey: the hosted page, the charge at the simulator and the outbox, as one would write
them on FastAPI and the ORM. Same tables, same rows, same two commits around the call of the provider."""

import json
import secrets
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any, Literal

from fastapi import HTTPException
from fastapi.responses import HTMLResponse
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from benchmarks.reference import Base, BusinessRow, Held, PaymentRow, app, view
from payagg.adapters.postgres.schema import tables

PUBLIC = "/api/v1/public/payments/{reference}"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Pay {business}</title></head>
<body><main data-reference="{reference}"><h1>Pay {business}</h1><p>{amount}</p><p>{status}</p></main></body></html>"""


class AttemptRow(Base):
    __table__ = tables.attempts


class TransitionRow(Base):
    __table__ = tables.transitions


class EventRow(Base):
    __table__ = tables.events


class DeliveryRow(Base):
    __table__ = tables.deliveries


class EndpointRow(Base):
    __table__ = tables.webhook_endpoints


class GatewayRow(Base):
    __table__ = tables.gateways


class GatewaySettingsRow(Base):
    __table__ = tables.business_gateways


class ChosenCard(BaseModel):
    gatewaySlug: Literal["sandbox"]  # noqa: N815
    cardNumber: Literal["4242 4242 4242 4242"]  # noqa: N815


async def found(held: AsyncSession, reference: str, *, lock: bool = False) -> tuple[Any, Any]:
    """The payment and its business."""
    query = (
        select(PaymentRow, BusinessRow)
        .join(BusinessRow, BusinessRow.id == PaymentRow.business_id)
        .where(PaymentRow.reference == reference)
    )
    row = (await held.execute(query.with_for_update(of=PaymentRow) if lock else query)).first()
    if row is None:
        raise HTTPException(404)
    return row[0], row[1]


@app.get("/readyz")
async def ready() -> bool:
    return True


@app.get("/checkout/{reference}", response_class=HTMLResponse)
async def page(reference: str, held: Held) -> str:
    payment, business = await found(held, reference)
    return PAGE.format(
        business=escape(business.name),
        reference=escape(reference),
        amount=f"₦{payment.amount / 100:,.2f}",
        status=escape(payment.status),
    )


@app.get(PUBLIC)
async def detail(reference: str, held: Held) -> dict[str, Any]:
    payment, business = await found(held, reference)
    shown = ("reference", "amount", "currency", "status", "environment", "gateway", "expiresAt")
    own = view(payment)["data"]
    return {"success": True, "data": {name: own[name] for name in shown} | {"businessName": business.name}}


@app.get(PUBLIC + "/gateways")
async def options(reference: str, held: Held) -> dict[str, Any]:
    payment, _ = await found(held, reference)
    rows = await held.execute(
        select(GatewayRow, GatewaySettingsRow)
        .outerjoin(
            GatewaySettingsRow,
            (GatewaySettingsRow.gateway_id == GatewayRow.id) & (GatewaySettingsRow.business_id == payment.business_id),
        )
        .where(GatewayRow.status == "ACTIVE")
        .order_by(GatewayRow.display_order)
    )
    listed = [
        {"slug": g.slug, "name": (own and own.display_name) or g.name, "available": g.credentials is not None}
        for g, own in rows
        if own is None or own.is_enabled
    ]
    return {"success": True, "data": {"gateways": [*listed, {"slug": "sandbox", "available": True}]}}


@app.post(PUBLIC + "/process")
async def process(reference: str, command: ChosenCard, held: Held) -> dict[str, Any]:
    payment, _ = await found(held, reference, lock=True)
    now = datetime.now(UTC)
    if payment.status != "INITIATED" or payment.expires_at <= now:
        raise HTTPException(409)
    attempt = AttemptRow(
        reference=reference,
        number=1,
        gateway=command.gatewaySlug,
        provider_reference=reference,
        token=secrets.token_hex(16),
        state="CLAIMED",
        lease_until=now + timedelta(seconds=20),
        scenario="success",
        created_at=now,
        asks=0,
        next_ask_at=now + timedelta(seconds=80),
    )
    held.add(attempt)
    await held.commit()
    payment, _ = await found(held, reference, lock=True)
    attempt.state, attempt.hand_off_kind, attempt.handed_off_at = "HANDED_OFF", "SIMULATOR", now
    attempt.hand_off_url = f"https://pay.example/checkout/{reference}"
    payment.gateway = command.gatewaySlug
    await move(held, payment, "PENDING", "PROCESS", "payer")
    await held.commit()
    data = {"reference": reference, "status": payment.status, "gateway": payment.gateway, "handoff": "SIMULATOR"}
    return {"success": True, "data": data | {"checkoutUrl": attempt.hand_off_url}}


@app.get(PUBLIC + "/verify")
async def verify(reference: str, held: Held) -> dict[str, Any]:
    payment, _ = await found(held, reference)
    attempt = await held.get(AttemptRow, (reference, 1))
    if payment.status == "PENDING" and attempt is not None and attempt.scenario == "success":
        await held.refresh(payment, with_for_update=True)
        if payment.status == "PENDING":
            payment.settled_at = datetime.now(UTC)
            await move(held, payment, "SUCCESS", "SUCCEED", "verify")
        await held.commit()
    data = {"reference": reference, "status": payment.status, "amount": payment.amount, "currency": payment.currency}
    return {"success": True, "data": data | {"callbackUrl": payment.callback_url}}


async def move(held: AsyncSession, payment: Any, status: str, trigger: str, actor: str) -> None:
    """The payment's new status with its transition, its event and the deliveries of that."""
    now = datetime.now(UTC)
    before, payment.status = payment.status, status
    payment.sequence, payment.updated_at = payment.sequence + 1, now
    # Written now, as the tables' triggers want the steps of a payment one by one.
    await held.flush()
    own = {"reference": payment.reference, "sequence": payment.sequence}
    held.add(TransitionRow(**own, from_status=before, to_status=status, trigger=trigger, actor=actor, at=now))
    owner = {"business_id": payment.business_id, "environment": payment.environment}
    body = {"type": f"payment.{status.lower()}", "createdAt": now, **view(payment)}
    event = EventRow(
        **own,
        **owner,
        id=f"evt_{secrets.token_hex(16)}",
        type=body["type"],
        body=json.dumps(body, default=str).encode(),
        created_at=now,
    )
    held.add(event)
    endpoints = await held.scalars(
        select(EndpointRow).where(
            EndpointRow.business_id == payment.business_id,
            EndpointRow.environment == payment.environment,
            EndpointRow.is_active,
        )
    )
    for endpoint in endpoints:
        if event.type in endpoint.events:
            held.add(
                DeliveryRow(
                    **own,
                    **owner,
                    id=f"dlv_{secrets.token_hex(16)}",
                    event_id=event.id,
                    event_type=event.type,
                    endpoint_id=endpoint.id,
                    lane=endpoint.id,
                    status="PENDING",
                    attempts=0,
                    next_attempt_at=now,
                    created_at=now,
                )
            )
