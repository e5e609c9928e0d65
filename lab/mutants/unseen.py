"""Of the mutants of what decides about a payment those that survived the harness and that no request can tell from the
product by a sentence of the interface. What no request reaches is not drawn, see reach.py."""

_WORKER = (
    "when and with what end the worker asks a provider by itself: no request makes it, and the interface is silent"
)
_BESIDE = "kept or told beside the status: refunds, fees, disputes, second transactions; the interface shows none of it"
_OPERATORS = "kept for operators alone"
_CONFLICT = "only two writers of a database meet there"
_DRAWN = "a reference that was drawn twice, of two thousand million"
_PAGE = "the hosted page, which is no part of the API"
_CELLS = "only where there are several cells"
_GUARD = "refuses a value that no request brings so far: the route or the application did before"
_SILENT = "how often a provider is asked: the interface is silent"
_STOOD = "a claim is lost during its own call only where a process stood still for longer than its lease"
_ARCHIVED = "a report about a payment in the archive, years later, or about none, which is acknowledged either way"
_UNKNOWN = "fees, of which the interface shows nothing; an event about no payment is acknowledged either way"
_INSIDE = "an event that can be read is acknowledged, whatever fails inside"
_BETWEEN = "a change between two statements of one request"
# By file: a line, what the mutant makes of it, and why that cannot be told.
UNSEEN: dict[str, dict[tuple[str, str], str]] = {
    "application/payments/payments.py": {
        ("REFERENCE_DRAWS = 8", "REFERENCE_DRAWS = 9"): _DRAWN,
        ("except ReferenceTaken:", "except CosmicRayTestingException:"): _DRAWN,
        (
            "unsigned = command.webhook_url is not None and not await self._has_endpoint(business.id, environment)",
            "unsigned = command.webhook_url is not None or not await self._has_endpoint(business.id, environment)",
        ): "a warning of ours in a header",
    },
    "application/payments/checkout.py": {
        ("if not task.cancelled():", "if  task.cancelled():"): _OPERATORS,
        (
            "is_paid_late=seen.status is Status.FAILED and seen.has_adjustments and await self._is_paid(seen),",
            "is_paid_late=seen.status is Status.FAILED and seen.has_adjustments or await self._is_paid(seen),",
        ): _PAGE,
        (
            "return _processed_view(payment, stored, stored.hand_off) if stored.hand_off else None",
            "return _processed_view(payment, stored, stored.hand_off) if not stored.hand_off else None",
        ): _STOOD,
    },
    "application/payments/settlement.py": {
        (
            "if payment is not None and payment.is_final and not attempts:",
            "if payment is not None and payment.is_final or not attempts:",
        ): _ARCHIVED,
        (
            "attempts, paid = archived[0].charges(), [archived[0].paid] if archived[0].paid else []",
            "attempts, paid = archived[0].charges(), [archived[ -1].paid] if archived[0].paid else []",
        ): _ARCHIVED,
        ("if payment is not None:", "if not payment is not None:"): _BESIDE,
        ("if event_type is None:", "if event_type is not None:"): _BESIDE,
        ("@retry_on_conflict", ""): _CONFLICT,
        ("if found is None:", "if not found is None:"): _CELLS,
        (
            "if payment is not None and payment.is_final and not attempts:",
            "if payment is not None or payment.is_final and not attempts:",
        ): _ARCHIVED,
        (
            "if payment is not None and verdict.facts is not None:",
            "if payment is None and verdict.facts is not None:",
        ): _UNKNOWN,
    },
    "application/payments/expiry.py": {
        (
            "if not payment.is_expired(now):",
            "if  payment.is_expired(now):",
        ): "what a payment is that nobody began within its hour, the interface leaves open",
        (
            "return await self.expire(payment.reference) or payment.as_of(now)",
            "return await self.expire(payment.reference) and payment.as_of(now)",
        ): _BETWEEN,
    },
    "application/payments/verification.py": {
        (
            'if payment.callback_url is None or not payment.callback_url.lower().startswith(("https://", "http://")):',
            'if payment.callback_url is None or  payment.callback_url.lower().startswith(("https://", "http://")):',
        ): "an address of ours beside `callbackUrl`",
        (
            "if seen.is_final and (attempt.gateway == SANDBOX_SLUG or (asked_at and now < asked_at + every)):",
            "if seen.is_final and (attempt.gateway == SANDBOX_SLUG and (asked_at and now < asked_at + every)):",
        ): _SILENT,
        (
            "if seen.is_final and (attempt.gateway == SANDBOX_SLUG or (asked_at and now < asked_at + every)):",
            "if seen.is_final and (attempt.gateway == SANDBOX_SLUG or (asked_at and now == asked_at + every)):",
        ): _SILENT,
    },
    "application/payments/provider_events.py": {
        ("if self.elsewhere is not NOWHERE:", "if self.elsewhere == NOWHERE:"): _CELLS,
        ("for other in Environment:", "for other in []:"): _OPERATORS,
        (
            "except Exception as problem:  # noqa: BLE001 - the event is stored and its next attempt scheduled",
            "except CosmicRayTestingException as problem:  # noqa: BLE001 - the event is stored and its next attempt scheduled",
        ): _CONFLICT,
        ("@retry_on_conflict", ""): _CONFLICT,
        ("is_handled = False", "is_handled = True"): _INSIDE,
    },
    "application/gateways/payment_options.py": {
        (
            "credentials: Mapping[str, str] = field(repr=False)",
            "credentials: Mapping[str, str] = field(repr=True)",
        ): "how a value is written in a debugger",
        (
            "raise Refusal(ErrorCode.NO_GATEWAY_AVAILABLE, retry_after=60)",
            "raise Refusal(ErrorCode.NO_GATEWAY_AVAILABLE, retry_after= 61)",
        ): "when to come again, the interface leaves open",
        ("if gateway is None:", "if not gateway is None:"): _PAGE,
        (
            "gateway = next((one for one in found.gateways if one.slug == payment.gateway), None)",
            "gateway = next((one for one in found.gateways if one.slug <= payment.gateway), None)",
        ): _PAGE,
        (
            "return sorted(listed, key=lambda option: not option.available)",
            "return sorted(listed, key=lambda option:  option.available)",
        ): _PAGE,
    },
    "domain/attempt.py": {
        (
            'check_text(self.checkout_url, "checkoutUrl", CHECKOUT_URL_MAX, 1)',
            'check_text(self.checkout_url, "checkoutUrl", CHECKOUT_URL_MAX, 0)',
        ): _GUARD,
        ("asks: int = 0  # the number of checks so far", "asks: int = 1  # the number of checks so far"): _WORKER,
        ("timedelta(hours=48),", "timedelta(hours= 47),"): _WORKER,
        ("if self.gateway == SANDBOX_SLUG:", "if not self.gateway == SANDBOX_SLUG:"): _BESIDE,
        (
            'return reference if number == 1 else f"{reference}.{number}"',
            'return reference if not number == 1 else f"{reference}.{number}"',
        ): "the name of a charge at the provider, about which the interface is silent",
    },
    "domain/report.py": {
        (
            "if is_own and not report.is_known_status and payment.is_final:",
            "if not is_own and not report.is_known_status and payment.is_final:",
        ): _OPERATORS,
        (
            'more["reason"] = "CURRENCY_MISMATCH" if fact == "currency" else "UNDERPAID" if is_short else "OVERPAID"',
            'more["reason"] = "CURRENCY_MISMATCH" if fact != "currency" else "UNDERPAID" if is_short else "OVERPAID"',
        ): _BESIDE,
        ("and now < fact.at + REPEATED_FOR", "and now < fact.at << REPEATED_FOR"): _BESIDE,
    },
    "domain/simulator.py": {
        (
            "return now - handed_off_at if handed_off_at and now else timedelta(0)",
            "return now - handed_off_at if handed_off_at and now else timedelta( 1)",
        ): "a payment that was handed off has the instant",
        (
            "return now - handed_off_at if handed_off_at and now else timedelta(0)",
            "return now - handed_off_at if handed_off_at or now else timedelta(0)",
        ): "a payment that was handed off has the instant",
    },
    "domain/payment.py": {
        (
            "if (self.settled_at is not None) is not (self.status in PAYMENT.final):",
            "if (self.settled_at is not None) < (self.status in PAYMENT.final):",
        ): _GUARD,
        (
            "if not -(2**63) <= value < 2**63:",
            "if not -(2** 64) <= value < 2**63:",
        ): "a bound that the interface does not name",
    },
    "domain/machine.py": {
        (
            'object.__setattr__(self, "final", frozenset(self.states) - leaving)',
            'object.__setattr__(self, "final", frozenset(self.states) ^ leaving)',
        ): "what leads on is a part of the states, so both are the rest",
    },
    "domain/gateway.py": {
        ("rename: bool = False,", "rename: bool = True,"): "whoever calls it says it",
        (
            'check_text(self.logo_path, "logoPath", LOGO_PATH_MAX, 1)',
            'check_text(self.logo_path, "logoPath", LOGO_PATH_MAX, 0)',
        ): _GUARD,
        ("for name, value in credentials.items():", "for name, value in []:"): _GUARD,
        (
            "created_at=self.created_at or now,",
            "created_at=self.created_at and now,",
        ): "of what a merchant's `createdAt` is, the interface does not say",
    },
}
