"""The comparison build: the same two operations on plain FastAPI and the SQLAlchemy ORM, tuned as one would tune it.

One process, uvloop and httptools, a warm pool, one session per request, expire_on_commit off, orjson answers, the key
looked up and the payment inserted in one transaction. It writes the same rows into the same schema.
"""

import hashlib
import json
import os
import secrets
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Response
from pydantic import BaseModel, EmailStr, Field, HttpUrl
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase

from payagg.adapters.postgres.schema import tables


class Base(DeclarativeBase):
    metadata = tables.metadata


class BusinessRow(Base):
    __table__ = tables.businesses


class ApiKeyRow(Base):
    __table__ = tables.api_keys


class IdempotencyKeyRow(Base):
    __table__ = tables.idempotency_keys


class PaymentRow(Base):
    __table__ = tables.payments
    __mapper_args__ = {"exclude_properties": ["metadata"], "properties": {"extra": tables.payments.c.metadata}}  # noqa: RUF012


engine = create_async_engine(os.environ["BENCH_DATABASE_URL"], pool_size=16, max_overflow=0)
sessions = async_sessionmaker(engine, expire_on_commit=False)
app = FastAPI(openapi_url=None)


class Initiate(BaseModel):
    amount: Annotated[int, Field(strict=True, ge=100, le=2**53 - 1)]
    customerEmail: EmailStr | None = None  # noqa: N815
    customerName: Annotated[str, Field(max_length=200)] | None = None  # noqa: N815
    callbackUrl: HttpUrl | None = None  # noqa: N815
    metadata: dict[str, Any] | None = None
    idempotencyKey: Annotated[str, Field(min_length=1, max_length=255)] | None = None  # noqa: N815


async def session() -> Any:
    async with sessions() as held:
        yield held


async def authenticated(held: AsyncSession, authorization: str) -> tuple[ApiKeyRow, BusinessRow]:
    digest = hashlib.sha256(authorization.removeprefix("Bearer ").encode()).digest()
    found = await held.execute(
        select(ApiKeyRow, BusinessRow)
        .join(BusinessRow, BusinessRow.id == ApiKeyRow.business_id)
        .where(ApiKeyRow.secret_hash == digest)
    )
    row = found.first()
    if row is None or row[0].status != "ACTIVE" or row[1].status != "ACTIVE":
        raise HTTPException(401)
    return row[0], row[1]


Held = Annotated[AsyncSession, Depends(session)]
Authorization = Annotated[str, Header()]


@app.get("/readyz")
async def ready() -> bool:
    return True


@app.post("/api/v1/payments/initiate", status_code=201)
async def initiate(command: Initiate, held: Held, authorization: Authorization, response: Response) -> dict[str, Any]:
    key, business = await authenticated(held, authorization)
    now = datetime.now(UTC)
    reference = f"PAY-{now:%Y%m%d}-" + "".join(secrets.choice("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(6))
    if command.idempotencyKey is not None:
        won = await held.execute(
            insert(IdempotencyKeyRow)
            .values(
                business_id=business.id, environment=key.environment, key=command.idempotencyKey, reference=reference
            )
            .on_conflict_do_nothing()
            .returning(IdempotencyKeyRow.reference)
        )
        if won.scalar() is None:
            held_by = await held.get(IdempotencyKeyRow, (business.id, key.environment, command.idempotencyKey))
            payment = await held.get(PaymentRow, held_by.reference if held_by else "")
            response.status_code = 200
            return view(payment)
    payment = PaymentRow(
        reference=reference,
        business_id=business.id,
        environment=key.environment,
        amount=command.amount,
        currency="NGN",
        status="INITIATED",
        customer_email=command.customerEmail,
        customer_name=command.customerName,
        callback_url=str(command.callbackUrl) if command.callbackUrl else None,
        extra=command.metadata,
        idempotency_key=command.idempotencyKey,
        fingerprint=hashlib.sha256(json.dumps(command.model_dump(mode="json"), sort_keys=True).encode()).digest(),
        sequence=0,
        created_at=now,
        updated_at=now,
        expires_at=now + timedelta(hours=1),
    )
    held.add(payment)
    await held.commit()
    return view(payment)


@app.get("/api/v1/payments/{reference}")
async def read(reference: str, held: Held, authorization: Authorization) -> dict[str, Any]:
    key, business = await authenticated(held, authorization)
    payment = await held.get(PaymentRow, reference)
    if payment is None or payment.business_id != business.id or payment.environment != key.environment:
        raise HTTPException(404)
    return view(payment)


def view(payment: Any) -> dict[str, Any]:
    return {
        "success": True,
        "data": {
            "reference": payment.reference,
            "amount": payment.amount,
            "currency": payment.currency,
            "status": payment.status,
            "environment": payment.environment,
            "gateway": payment.gateway,
            "customerEmail": payment.customer_email,
            "customerName": payment.customer_name,
            "callbackUrl": payment.callback_url,
            "metadata": payment.extra,
            "createdAt": payment.created_at,
            "updatedAt": payment.updated_at,
            "expiresAt": payment.expires_at,
        },
    }
