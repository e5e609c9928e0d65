"""The code that decides about money, the unit tests that are to notice when it decides otherwise, and where they need
not."""

from pathlib import Path

from tests.support.extensions import is_removed

# By module: tests/unit/FOLDER/test_NAME.py, as FOLDER/NAME, or as NAME where the folder is the module's.
_NAMED = {
    "application/payments/payments.py": "payments conflicts",
    "application/payments/checkout.py": (
        "checkout application/gateways/payment_options conflicts extensions/cells/moved_meanwhile"
    ),
    "application/payments/settlement.py": (
        "settlement conflicts extensions/cells/moved_meanwhile extensions/archive/writer"
    ),
    "application/payments/verification.py": "verification conflicts extensions/cells/moved_meanwhile",
    "application/payments/provider_calls.py": "checkout verification conflicts",
    "application/payments/provider_events.py": "provider_events conflicts extensions/cells/moved_meanwhile",
    "application/payments/status_checks.py": "status_checks conflicts extensions/cells/moved_meanwhile",
    "application/gateways/payment_options.py": (
        "payment_options application/payments/checkout application/payments/payments extensions/catchup/catch_up"
    ),
    "application/webhooks/dispatcher.py": "webhook_deliveries",
    "application/accounts/api_keys.py": "api_keys application/payments/conflicts",
    "application/accounts/access.py": "access",
    "domain/payment.py": "payment guards machines application/payments/settlement application/upkeep/retention",
    "domain/attempt.py": (
        "attempt next_step report guards application/payments/checkout application/payments/status_checks"
    ),
    "domain/report.py": (
        "attempt next_step report report_product guards application/payments/settlement "
        "application/webhooks/webhook_deliveries extensions/catchup/catch_up"
    ),
    "domain/machine.py": "machines",
    "domain/api_key.py": "api_key guards application/accounts/access",
    "domain/gateway.py": "gateway guards application/gateways/gateways",
    "domain/business.py": "guards api_key machines application/accounts/businesses",
    "domain/health.py": "attempt",
    "domain/simulator.py": "attempt",
    "domain/signing.py": "signing",
    "domain/webhook.py": "webhook guards application/payments/settlement",
    "domain/values.py": "values guards",
    "domain/checks.py": "guards bounds",
    "domain/rate_limit.py": "rate_limit",
}
MODULES: dict[str, tuple[str, ...]] = {
    module: tuple(
        "unit/{}/test_{}.py".format(*(name if "/" in name else f"{Path(module).parent}/{name}").rsplit("/", 1))
        for name in names.split()
        if not is_removed(name)
    )
    for module, names in _NAMED.items()
}

_WAITING = "how often a waiting caller looks is another; the hand-off that it gets is the same"
_CHOICE = "the number is a choice, and the test counts by its name"
_WORDS = "words for a person; the refusal and its field are tested"

_SCHEDULE = (
    "when and with what end the worker asks a provider by itself: no request makes it, and the interface is silent"
)
_BESIDE = "kept or told beside the status: refunds, fees, disputes, second transactions; the interface shows none of it"
_OPERATORS = "kept for operators alone"
_CONFLICT = "only two writers of a database meet there"
_RANDOM = "a random word of another length, which nobody is shown"
_BOUND = "a bound that the interface does not name"
_DRAWN = "a reference that was drawn twice, of two thousand million"
_ARCHIVED = "a report about a payment in the archive, years later"
_PAGE = "the hosted page, which is no part of the API"
# Of the mutants of what decides about a payment: those that no request can tell by a sentence of the interface. What no
# request reaches stands in none of them, see reach.py.
UNSEEN: dict[str, dict[str, str]] = {
    "application/payments/payments.py": {
        "REFERENCE_DRAWS = 8": _DRAWN,
        "except ReferenceTaken:": _DRAWN,
        "unsigned = command.webhook_url is not None and not await self._has_endpoint(business.id, environment)": "a warning of ours in a header",
        "continue": _DRAWN,
        "if payment.has_adjustments:": _BESIDE,
        "if original is None:": _CONFLICT,
        "return original, False": _CONFLICT,
    },
    "application/payments/checkout.py": {
        "if not task.cancelled():": _OPERATORS,
        "is_paid_late=seen.status is Status.FAILED and seen.has_adjustments and await self._is_paid(seen),": _PAGE,
        "token = self.entropy.hex(16)": _RANDOM,
        "LONGEST_PAUSE_SECONDS = 1.0": _WAITING,
        "@retry_on_conflict": _CONFLICT,
        "renewed = claimed.attempt.take_over(self.entropy.hex(16), self.clock.now())": _RANDOM,
        "return scenario_of(command.card_number) if slug == SANDBOX_SLUG else None": "no provider's slug comes after the simulator's",
    },
    "application/payments/settlement.py": {
        "if payment is not None:": _BESIDE,
        "if event_type is None:": _BESIDE,
        "attempts, paid = archived[0].charges(), [archived[0].paid] if archived[0].paid else []": _ARCHIVED,
        "if found is None and asked is not None:": "a payment that moved to another cell during a call",
        "paid_before = payment is not None and was_paid(payment, known)": _BESIDE,
        "if after != before:": _BESIDE,
        "if known is None:": _BESIDE,
        "if told.event_sequence is not None:": _BESIDE,
        "facts = [told if one.id == fact.id else one for one in known]": _BESIDE,
        "if payment is not None and not paid_before and was_paid(payment, known):": _BESIDE,
        "if attempts and not (found is not None and found.attempts):": _ARCHIVED,
        "if not payment.is_expired(now):": "the same answer for a statement more",
    },
    "application/payments/verification.py": {
        "decline = (report.reason or DECLINED) if settled.effect is ReportEffect.DECLINED else None": (
            "why a card was declined: a word of ours"
        ),
        'if payment.callback_url is None or not payment.callback_url.lower().startswith(("https://", "http://")):': (
            "an address of ours beside `callbackUrl`"
        ),
        "may_ask = attempt.gateway == SANDBOX_SLUG or await self.store.begin_check(reference, attempt.number, now, every)": (
            "how often a provider is asked: the interface is silent"
        ),
        "seen = current.as_of(self.clock.now()) if current is not None else None": "a change between two statements of one request",
    },
    "application/payments/provider_calls.py": {
        "if attempt.gateway == SANDBOX_SLUG:": _OPERATORS,
        "duration_ms=int(seconds * 1000),": _OPERATORS,
        "await self._note(operation, actor, payment, attempt, answer, fault, clock() - started, tells=tells)": _OPERATORS,
    },
    "application/payments/provider_events.py": {
        "except Exception as problem:  # noqa: BLE001 - the event is stored and its next attempt scheduled": _CONFLICT,
        "if report is not None:": "only where there are several cells",
        "FIRST_RETRY = timedelta(seconds=30)": "a pause after a crash",
        "for other in Environment:": _OPERATORS,
        "if other is not route.environment and any(": _OPERATORS,
        "@retry_on_conflict": _CONFLICT,
        "if report.outcome is Outcome.REVERSED and not is_named(report.details):": _BESIDE,
    },
    "application/gateways/payment_options.py": {
        "if gateway is None:": _PAGE,
    },
    "domain/payment.py": {
        "return self.status is Status.INITIATED and now >= self.expires_at": "the very instant at which the hour ends",
        "CHECKOUT_TTL = timedelta(hours=1)  # interface, Limits": "a default; the service sets its own hour",
        "FINGERPRINT_BYTES = 32": _OPERATORS,
        "SEQUENCE_MAX = 2**15 - 1  # the column is a 16-bit integer": _BOUND,
        "paid = self.amount if received is None else received": _BESIDE,
    },
    "domain/attempt.py": {
        "timedelta(hours=12),": _SCHEDULE,
        "CHECK_JITTER = 0.1": _SCHEDULE,
        "asks: int = 0  # the number of checks so far": _SCHEDULE,
        "return self.account is not None and account is not None and self.account != account": (
            "which account of a provider is asked: the interface is silent"
        ),
        "return since + after + min(after * CHECK_JITTER, CHECK_SPREAD_MAX) * chance if after is not None else None": _SCHEDULE,
        "return self.provider_id is not None and provider_id is not None and self.provider_id != provider_id": _BESIDE,
    },
    "domain/machine.py": {
        'object.__setattr__(self, "final", frozenset(self.states) - leaving)': "what leads on is a part of the states, so both are the rest",
    },
    "domain/report.py": {
        "if is_own and not report.is_known_status and payment.is_final:": _OPERATORS,
        'if "eventDigest" in report.details and before.kobo >= came:': _BESIDE,
        "if not is_named(report.details) and before.kobo and kind is AnomalyKind.LATE_REVERSAL:": _BESIDE,
        "fact.source == RECONCILIATION": _BESIDE,
        "and now < fact.at + REPEATED_FOR": _BESIDE,
        "is_own = payment.environment is environment and attempt is not None": _OPERATORS,
        'more["reason"] = "CURRENCY_MISMATCH" if fact == "currency" else "UNDERPAID" if is_short else "OVERPAID"': _BESIDE,
        "if is_same_charge and not attempt.is_other_transaction(report.facts.provider_id):": _BESIDE,
        "left = max(0, payment.amount - before.kobo)": _BESIDE,
        "if before.is_unnamed and max(report.amounts, default=payment.amount) > left:": _BESIDE,
    },
    "domain/gateway.py": {
        "ORDER_MAX = 2**31 - 1  # the column is a 32-bit integer": _BOUND,
        'for instant, field in ((self.created_at, "createdAt"), (self.updated_at, "updatedAt")):': "no request brings an instant",
    },
    "domain/simulator.py": {
        "return now - handed_off_at if handed_off_at and now else timedelta(0)": "a payment that was handed off has the instant",
    },
}

EXPLAINED: dict[tuple[str, str], str] = {
    ("application/payments/checkout.py", "pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)"): _WAITING,
    (
        "application/accounts/access.py",
        'issued_at = datetime.fromtimestamp(max(0, int(claims.get("iat", 0))), UTC)',
    ): "nothing is before 1970: what is less than 0 becomes 0",
    (
        "application/payments/provider_events.py",
        "pause = min(FIRST_RETRY * 2 ** min(event.attempts, 10), LONGEST_RETRY)",
    ): "the tenth doubling is far beyond the longest pause",
    ("application/payments/status_checks.py", "raise failures[0]"): "any of them tells that the database went away",
    ("application/payments/provider_calls.py", "*,"): "arguments that may be given by place as well; nobody does",
    (
        "application/webhooks/dispatcher.py",
        "if len(claimed) < room or not room:",
    ): "after a claim that took all the room there is none to look for, until a try that ends says so",
    ("application/webhooks/dispatcher.py", "if len(self._keys) >= KEYS_CACHED_MAX:"): "it grows by one at a time",
    (
        "domain/machine.py",
        'object.__setattr__(self, "final", frozenset(self.states) - leaving)',
    ): "what leads on is a part of the states, so both are the rest",
    (
        "domain/values.py",
        "if found is None or not 0 < int(found[2] or 1) < 2**16:",
    ): "it stands for a port that is not named, and any good one does",
    ("domain/values.py", "@lru_cache(maxsize=256)  # a shop sends the same few with every payment"): _CHOICE,
    (
        "domain/api_key.py",
        'raise invalid("secretKey", f"Must have {2 * SECRET_BYTES} lower-case hexadecimal digits.")',
    ): _WORDS,
    (
        "domain/business.py",
        "if text != text.strip() or not text.isprintable():",
    ): "where there is nothing to strip it is the same object",
    (
        "domain/checks.py",
        'raise invalid(field, "Must be bytes." if length is None else f"Must be {length} bytes.")',
    ): _WORDS,
}
