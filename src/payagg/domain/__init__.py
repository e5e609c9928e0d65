"""The rules of the service as pure functions and frozen values, on the standard library alone.

>>> from datetime import UTC, datetime, timedelta
>>> from payagg.domain import Environment, Payment, Refusal, Trigger
>>> noon = datetime(2025, 1, 31, 12, tzinfo=UTC)
>>> payment = Payment.initiate(
...     reference="PAY-20250131-7K2M9X", business_id="biz_1", environment=Environment.SANDBOX, amount=150_000, now=noon
... )
>>> paid, transition = payment.move(Trigger.SUCCEED, noon + timedelta(minutes=1), actor="simulator")
>>> paid.status.value, transition.sequence
('SUCCESS', 1)
>>> try:
...     paid.move(Trigger.FAIL, noon + timedelta(minutes=2), actor="simulator")
... except Refusal as refusal:
...     refusal.code.name
'PAYMENT_ALREADY_FINAL'

Money is integer kobo, instants are aware and in UTC, and every rule raises `Refusal` alone. These names are what
tools begin with; everything else is in the module of its name.
"""

from payagg.domain.api_key import ApiKey
from payagg.domain.attempt import Attempt, next_step
from payagg.domain.business import Business, BusinessStatus, KycStatus
from payagg.domain.business_gateway import BusinessGateway, ensure_selectable, is_offered
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import Gateway, GatewayStatus
from payagg.domain.machine import Machine
from payagg.domain.payment import Payment, Status, Trigger
from payagg.domain.report import Outcome, ProviderReport, judge
from payagg.domain.values import Environment, parse_reference

__all__ = [
    "ApiKey",
    "Attempt",
    "Business",
    "BusinessGateway",
    "BusinessStatus",
    "Environment",
    "ErrorCode",
    "Gateway",
    "GatewayStatus",
    "KycStatus",
    "Machine",
    "Outcome",
    "Payment",
    "ProviderReport",
    "Refusal",
    "Status",
    "Trigger",
    "ensure_selectable",
    "is_offered",
    "judge",
    "next_step",
    "parse_reference",
]
