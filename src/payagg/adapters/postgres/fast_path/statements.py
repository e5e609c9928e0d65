"""The few statements of nearly every request. Concurrent callers share a statement, and with it a commit.

Each is a transaction of its own. Everything else goes through the repositories.
"""

# ruff: noqa: S608 - only our own column names are put into the texts

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from payagg.adapters.postgres.errors import UNSTORABLE, ConnectionLost, RuleBroken, Taken
from payagg.adapters.postgres.fast_path.batching import Batch
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.repositories.accounts import API_KEY, BUSINESS
from payagg.adapters.postgres.repositories.attempts import ATTEMPTS_OF, attempt_of
from payagg.adapters.postgres.repositories.gateways import ALL, GATEWAY, SETTINGS, SETTLING
from payagg.adapters.postgres.repositories.payments import ADD, PAYMENT, encode_row
from payagg.adapters.postgres.repositories.provider_events import ALL_HEALTH, HEALTH
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.gateways import GatewayChoices
from payagg.application.ports.outside import Conflict, KeyStateChanged, ReferenceTaken, Unavailable
from payagg.domain.api_key import LAST_USED_GRAIN
from payagg.domain.attempt import Attempt
from payagg.domain.business import Business
from payagg.domain.business_gateway import BusinessGateway
from payagg.domain.checks import with_changes
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Payment
from payagg.domain.values import REFERENCE_SHAPE, Environment

_PAYMENT = ", ".join(f"p.{name}" for name in PAYMENT.names)
# One row for each question, by position: the cached key's present state, and the payment if any. LIMIT keeps a
# look-up by index, however few rows there are or were when the session planned it.
_STANDING = """LEFT JOIN LATERAL (
    SELECT k.status, b.status, b.kyc_status FROM api_keys k JOIN businesses b ON b.id = k.business_id
    WHERE k.id = key_id LIMIT 1
) AS standing ON true
"""
ORIGINALS = Statement(f"""
SELECT place, standing.*, {_PAYMENT}
FROM unnest(
    CAST(:businesses AS text[]), CAST(:environments AS text[]), CAST(:keys AS text[]), CAST(:key_ids AS text[])
) WITH ORDINALITY AS asked (business_id, environment, key, key_id, place)
LEFT JOIN LATERAL (
    SELECT i.reference FROM idempotency_keys i
    WHERE (i.business_id, i.environment, i.key) = (asked.business_id, asked.environment, asked.key) LIMIT 1
) AS named ON true
LEFT JOIN LATERAL (SELECT * FROM payments WHERE payments.reference = named.reference LIMIT 1) AS p ON true
{_STANDING}""")
PAYMENTS = Statement(f"""
SELECT place, standing.*, {_PAYMENT}
FROM ROWS FROM (json_to_recordset(CAST(:asked AS json)) AS (reference text, key_id text)) WITH ORDINALITY
    AS asked (reference, key_id, place)
LEFT JOIN LATERAL (SELECT * FROM payments WHERE payments.reference = asked.reference LIMIT 1) AS p ON true
{_STANDING}""")
CHECKOUTS = Statement(f"""
SELECT {_PAYMENT}, {", ".join(f"b.{name}" for name in BUSINESS.names)}
FROM payments p JOIN businesses b ON b.id = p.business_id WHERE p.reference = ANY(:references)
""")
# The array is a subquery's, so that how many there are changes no plan, and a session plans it once.
OF_REFERENCES = Statement(f"""
SELECT {_PAYMENT} FROM unnest((SELECT CAST(:references AS text[]))) AS asked (reference)
CROSS JOIN LATERAL (SELECT * FROM payments WHERE payments.reference = asked.reference LIMIT 1) AS p
""")
KEYS = Statement(f"""
SELECT {", ".join(f"k.{name}" for name in API_KEY.names)}, {", ".join(f"b.{name}" for name in BUSINESS.names)}
FROM api_keys k JOIN businesses b ON b.id = k.business_id WHERE k.secret_hash = ANY(:hashes)
""")
# Another transaction is writing this key right now.
TOUCH = Statement("""
WITH stale AS (
    SELECT id FROM api_keys WHERE id = ANY(:ids) AND status = 'ACTIVE'
    AND (last_used_at IS NULL OR last_used_at <= :before)
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE api_keys SET last_used_at = :now WHERE id = ANY(ARRAY(SELECT id FROM stale))
""")
OF_BUSINESSES = SETTINGS.query("WHERE business_id = ANY(:business_ids)")

# What distinguishes our payment from another with the same reference, beside its date: ours cannot be the older one.
OWN = attrgetter("business_id", "environment", "amount", "idempotency_key", "fingerprint")


class _Row(NamedTuple):
    payment: Payment
    cached: KeyHolder | None
    encoded: bytes


class _Question(NamedTuple):
    """Which payment holds this idempotency key."""

    business_id: str
    environment: str
    idempotency_key: str | None
    cached: KeyHolder | None


class FastPath:
    def __init__(self, pool: StatementPool, *, dates_payments: bool = False) -> None:
        self._pool = pool
        self._dates_payments = dates_payments
        self._add: Batch[_Row, tuple[Payment, bool]] = Batch(self._add_batch)
        self._payments: Batch[tuple[str, KeyHolder | None], Payment | None] = Batch(self._payments_of)
        self._checkouts: Batch[str, tuple[Payment, Business] | None] = Batch(self._checkouts_of)
        self._attempts: Batch[str, tuple[Payment, list[Attempt]] | None] = Batch(self._attempts_of)
        self._originals: Batch[_Question, Payment | None] = Batch(self._originals_of)
        self._keys: Batch[bytes, KeyHolder | None] = Batch(self._keys_of)
        self._touched: Batch[tuple[str, datetime], None] = Batch(self._touch)
        self._choices: Batch[str, GatewayChoices] = Batch(self._choices_of)
        self._retiring: Batch[str, list[Gateway]] = Batch(self._retiring_of)
        self.find_choices, self.find_retiring_gateways = self._choices.ask, self._retiring.ask
        self.find_key = self._keys.ask

    async def find_payment(self, reference: str, cached: KeyHolder | None = None) -> Payment | None:
        # Text that the database cannot read is no reference; it must not fail the others in its batch.
        asked = reference if REFERENCE_SHAPE.fullmatch(reference) else ""
        return await self._payments.ask((asked, cached))

    async def find_checkout(self, reference: str) -> tuple[Payment, Business] | None:
        return await self._checkouts.ask(reference) if REFERENCE_SHAPE.fullmatch(reference) else None

    async def find_with_attempts(self, reference: str) -> tuple[Payment, list[Attempt]] | None:
        return await self._attempts.ask(reference) if REFERENCE_SHAPE.fullmatch(reference) else None

    async def add_payment(self, payment: Payment, cached: KeyHolder | None = None) -> tuple[Payment, bool]:
        return await self._add.ask(_Row(payment, cached, encode_row(payment, cached)))

    async def find_original(
        self, business_id: str, environment: Environment, key: str, cached: KeyHolder | None = None
    ) -> Payment | None:
        return await self._originals.ask(_Question(business_id, environment.value, _storable(key), cached))

    async def touch_key(self, key_id: str, now: datetime) -> None:
        await self._touched.ask((key_id, now))

    async def close(self) -> None:
        reads = (self._payments, self._checkouts, self._attempts, self._originals, self._keys)
        for batch in (self._add, *reads, self._touched, self._choices, self._retiring):
            await batch.close()

    async def _payments_of(self, asked: list[tuple[str, KeyHolder | None]]) -> list[Payment | Exception | None]:
        questions = [{"reference": one, "key_id": cached.key.id if cached else None} for one, cached in asked]
        # One JSON document: the driver takes a microsecond per array item.
        rows = await self._pool.read(PAYMENTS, asked=msgspec.json.encode(questions).decode())
        return _check_proofs(rows, [cached for _, cached in asked])

    async def _originals_of(self, asked: list[_Question]) -> list[Payment | Exception | None]:
        cached = [question.cached for question in asked]
        rows = await self._pool.read(
            ORIGINALS,
            businesses=[question.business_id for question in asked],
            environments=[question.environment for question in asked],
            keys=[question.idempotency_key for question in asked],
            key_ids=[holder.key.id if holder is not None else None for holder in cached],
        )
        return _check_proofs(rows, cached)

    async def _checkouts_of(self, references: list[str]) -> list[tuple[Payment, Business] | None]:
        width = len(PAYMENT.names)
        found = {}
        for row in await self._pool.read(CHECKOUTS, references=list(set(references))):
            payment = PAYMENT.load(row[:width])
            found[payment.reference] = (payment, BUSINESS.load(row[width:]))
        return [found.get(reference) for reference in references]

    async def _attempts_of(self, references: list[str]) -> list[tuple[Payment, list[Attempt]] | None]:
        asked = {"references": list(set(references))}
        payments, attempts = await self._pool.all((OF_REFERENCES, asked), (ATTEMPTS_OF, asked))
        found: dict[str, tuple[Payment, list[Attempt]]] = {one.reference: (one, []) for one in PAYMENT.all(payments)}
        for attempt in map(attempt_of, attempts):
            if attempt.reference in found:  # else its payment came between the two statements
                found[attempt.reference][1].append(attempt)
        return [found.get(reference) for reference in references]

    async def _keys_of(self, hashes: list[bytes]) -> list[KeyHolder | None]:
        width = len(API_KEY.names)
        found = {}
        for row in await self._pool.read(KEYS, hashes=list(set(hashes))):
            key = API_KEY.load(row[:width])
            found[key.secret_hash] = KeyHolder(key, BUSINESS.load(row[width:]))
        return [found.get(secret_hash) for secret_hash in hashes]

    async def _choices_of(self, business_ids: list[str]) -> list[GatewayChoices]:
        """Every payer's page reads it. Gateways and health are the same for all."""
        own = {"business_ids": list(set(business_ids))}
        gateways, settings, health = await self._pool.all((ALL, {}), (OF_BUSINESSES, own), (ALL_HEALTH, {}))
        every, standing = GATEWAY.all(gateways), HEALTH.all(health)
        found: dict[str, dict[str, BusinessGateway]] = {}
        for one in SETTINGS.all(settings):
            found.setdefault(one.business_id, {})[one.gateway_id] = one
        return [GatewayChoices(every, found.get(business_id, {}), standing) for business_id in business_ids]

    async def _retiring_of(self, slugs: list[str]) -> list[list[Gateway]]:
        """Every provider's event reads it."""
        asked = list(set(slugs))
        rows = await self._pool.all(*((SETTLING, {"slug": slug}) for slug in asked))
        found = dict(zip(asked, map(GATEWAY.all, rows), strict=True))
        return [found[slug] for slug in slugs]

    async def _touch(self, used: list[tuple[str, datetime]]) -> list[None]:
        now = max(now for _, now in used)
        await self._pool.read(TOUCH, ids=[key_id for key_id, _ in used], before=now - LAST_USED_GRAIN, now=now)
        return [None] * len(used)

    async def _add_batch(self, batch: list[_Row], repeat: bool = False) -> list[tuple[Payment, bool] | Exception]:
        """`repeat`: an earlier attempt got no answer, so our own payment may exist already."""
        try:
            encoded = (b"[" + b",".join(row.encoded for row in batch) + b"]").decode()
            rows = await self._pool.run(ADD, rows=encoded, dates=self._dates_payments)
        except (Conflict, Refusal, RuleBroken) as error:
            if len(batch) > 1:
                # One of them is at fault. Each half runs by itself, until the faulty one is alone.
                half = len(batch) // 2
                return [*await self._add_batch(batch[:half], repeat), *await self._add_batch(batch[half:], repeat)]
            if isinstance(error, Taken):
                return [await self._judge_collision(batch[0].payment, repeat)]
            if isinstance(error, Conflict) and not repeat:
                return await self._add_batch(batch, repeat=True)
            return [error]
        except ConnectionLost:
            if not repeat:
                return await self._add_batch(batch, repeat=True)
            return [Unavailable("the database connection was lost") for _ in batch]
        except Unavailable as error:
            return [error for _ in batch]
        answers: dict[str, tuple[Payment, bool] | Exception] = {}
        by_reference = {row.payment.reference: row.payment for row in batch}
        for reference, created_at, expires_at in rows:
            payment = by_reference[reference]
            if created_at is None:
                answers[reference] = await self._judge_collision(payment, repeat)
            else:
                answers[reference] = _with_dates(payment, created_at, expires_at), True
        answers |= await self._replays_of([row for row in batch if row.payment.reference not in answers], repeat)
        return [answers[row.payment.reference] for row in batch]

    async def _replays_of(self, losers: list[_Row], repeat: bool) -> dict[str, tuple[Payment, bool] | Exception]:
        """By the loser's reference, the payment that holds its idempotency key. It is committed: the insert waited. A
        caller whose cached key state is outdated gets nothing."""
        if not losers:
            return {}
        asked = [
            _Question(payment.business_id, payment.environment.value, payment.idempotency_key, cached)
            for payment, cached, _ in losers
        ]
        try:
            originals = await self._originals_of(asked)
        except Unavailable as error:
            return dict.fromkeys((row.payment.reference for row in losers), error)
        answers: dict[str, tuple[Payment, bool] | Exception] = {}
        for row, original in zip(losers, originals, strict=True):
            reference = row.payment.reference
            if isinstance(original, Payment):
                answers[reference] = (original, repeat and original.reference == reference)
            else:
                answers[reference] = original or KeyStateChanged()
        return answers

    async def _judge_collision(self, payment: Payment, repeat: bool) -> tuple[Payment, bool] | Exception:
        """The reference exists: ours from an attempt whose answer was lost, or another's."""
        if repeat:
            try:
                stored = (await self._payments_of([(payment.reference, None)]))[0]
            except Unavailable as error:
                return error
            if isinstance(stored, Payment) and OWN(stored) == OWN(payment) and stored.created_at >= payment.created_at:
                return stored, True
        return ReferenceTaken(payment.reference)


def _storable(text: str) -> str:
    """`text` itself; raises VALIDATION_ERROR for what would fail the whole batch's statement."""
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Refusal(ErrorCode.VALIDATION_ERROR, UNSTORABLE)
    return text


def _check_proofs(rows: Sequence[Any], cached: Sequence[KeyHolder | None]) -> list[Payment | Exception | None]:
    """The answer to each question, by position; KeyStateChanged when the cached key's state differs now."""
    answers: list[Payment | Exception | None] = [None] * len(cached)
    for place, key, business, kyc, *row in rows:
        holder = cached[place - 1]
        if holder is not None and (key, business, kyc) != holder.key_state:
            answers[place - 1] = KeyStateChanged()
        elif row[0] is not None:
            answers[place - 1] = PAYMENT.load(row)
    return answers


def _with_dates(payment: Payment, created_at: datetime, expires_at: datetime) -> Payment:
    if created_at == payment.created_at:
        return payment
    return with_changes(payment, created_at=created_at, updated_at=created_at, expires_at=expires_at)
