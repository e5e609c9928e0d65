"""A payment as a row, and the one statement that adds payments, each with its idempotency key."""

# ruff: noqa: S608 - only our own column names are put into the texts

from functools import lru_cache

import msgspec

from payagg.adapters.postgres.errors import UNSTORABLE
from payagg.adapters.postgres.repositories.rows import RowMap
from payagg.adapters.postgres.schema.payments import payments
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.accounts import KeyHolder
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import Payment, Status
from payagg.domain.values import Environment

PAYMENT = RowMap(Payment, payments, environment=Environment, status=Status)
# What `note` may add, to a final one too.
NOTED = ("sequence", "fee", "net_amount", "has_adjustments")

_TYPES = {"amount": "bigint", "metadata": "jsonb", "sequence": "smallint", "is_test": "boolean"}
# A new payment's columns; the rest is set later.
_NEW = tuple(name for name in PAYMENT.names if name not in NOTED or name == "sequence")
_GIVEN = ", ".join(f"{name} {'timestamptz' if name.endswith('_at') else _TYPES.get(name, 'text')}" for name in _NEW)
_CACHED = ("key_id", "key_status", "business_status", "kyc_status")
_NAMES = ", ".join(_NEW)
_STORED = {"fingerprint": "decode(fingerprint, 'base64')"} | {
    name: f"{name} + waited" for name in ("created_at", "updated_at", "expires_at")
}
_DATED = ", ".join(_STORED.get(name, name) for name in _NEW)

AMOUNT_DIGEST = "substr(sha256(convert_to(reference || ' ' || amount, 'UTF8')), 1, 8)"

# Who won comes back with its dates, a reference that exists already without: no idempotency key may stay behind without
# its payment, so such a row is left out from the start. One that another transaction adds at this moment breaks the
# whole statement instead. Rows go in by key, so that two processes never wait for each other in a circle. What a caller
# cached of its key is compared and never judged here: the rule is the domain's alone.
#
# `dates`: the clock of those who initiate is the database's, and the database has the last word: the payment is dated
# as it is stored, after its transaction got a number, by which lists see that something earlier may still come (see
# docs/decisions/postgres.md). LIMIT keeps the look-up of a reference a look-up, however few payments there are.
ADD = Statement(f"""
WITH asked AS MATERIALIZED (
    SELECT *, CASE WHEN CAST(:dates AS boolean) THEN clock_timestamp() - created_at ELSE interval '0' END AS waited
    FROM json_to_recordset(CAST(:rows AS json)) AS row ({_GIVEN}, {" text, ".join(_CACHED)} text)
    LEFT JOIN LATERAL (
        SELECT true AS is_taken FROM payments p WHERE p.reference = row.reference LIMIT 1
    ) AS known ON true
    WHERE (NOT CAST(:dates AS boolean) OR pg_current_xact_id() IS NOT NULL)
    AND (key_id IS NULL OR (key_status, business_status, kyc_status) = (
        SELECT k.status, b.status, b.kyc_status FROM api_keys k JOIN businesses b ON b.id = k.business_id
        WHERE k.id = key_id
    ))
), given AS (
    SELECT * FROM asked WHERE is_taken IS NULL
), keyed AS (
    INSERT INTO idempotency_keys (business_id, environment, key, reference)
    SELECT business_id, environment, idempotency_key, reference FROM given WHERE idempotency_key IS NOT NULL
    ORDER BY business_id, environment, idempotency_key
    ON CONFLICT DO NOTHING RETURNING reference
), added AS (
    INSERT INTO payments ({_NAMES}, amount_digest)
    SELECT {_DATED}, {AMOUNT_DIGEST} FROM given
    WHERE idempotency_key IS NULL OR reference IN (SELECT reference FROM keyed)
    ORDER BY reference
    RETURNING reference, created_at, expires_at
)
SELECT reference, created_at, expires_at FROM added
UNION ALL SELECT reference, NULL, NULL FROM asked WHERE is_taken
""")


def encode_row(payment: Payment, cached: KeyHolder | None = None) -> bytes:
    """The row of `given` as a JSON object; raises VALIDATION_ERROR for text that is not Unicode."""
    try:
        row = msgspec.json.encode(payment)
    except (UnicodeEncodeError, OverflowError):
        raise Refusal(ErrorCode.VALIDATION_ERROR, UNSTORABLE) from None
    if cached is None:
        return row
    return row[:-1] + _standing(cached.key.id, *cached.key_state)


@lru_cache(maxsize=1024)
def _standing(*values: str) -> bytes:
    return b"," + msgspec.json.encode(dict(zip(_CACHED, values, strict=True)))[1:]
