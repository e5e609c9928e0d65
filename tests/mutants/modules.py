"""The code that decides about money, and the unit tests that are to notice when it decides otherwise."""

_USED, _MOVED, _LIMITS = "unit/test_conflicts.py", "unit/test_moved_meanwhile.py", "unit/test_domain_limits.py"
_NUMBERS = "unit/test_use_case_limits.py"
_PAYMENT = ("unit/test_domain_payment.py", "unit/test_domain_guards.py", "unit/test_domain_machines.py")
_ATTEMPT = ("unit/test_domain_attempt.py", "unit/test_domain_next_step.py", "unit/test_domain_report.py")

MODULES: dict[str, tuple[str, ...]] = {
    "application/payments.py": (_NUMBERS, "unit/test_payments.py", _USED),
    "application/checkout.py": (_NUMBERS, "unit/test_checkout.py", "unit/test_checkout_options.py", _USED, _MOVED),
    "application/settlement.py": (_NUMBERS, "unit/test_settlement.py", _USED, _MOVED, "unit/test_archive.py"),
    "application/verification.py": ("unit/test_verification.py", _USED, _MOVED),
    "application/provider_calls.py": (_NUMBERS, "unit/test_checkout.py", "unit/test_verification.py", _USED),
    "application/provider_events.py": (_NUMBERS, "unit/test_provider_events.py", _USED, _MOVED),
    "application/reconciliation.py": (_NUMBERS, "unit/test_reconciliation.py", _USED, _MOVED),
    "application/payment_options.py": (
        "unit/test_checkout_options.py",
        "unit/test_checkout.py",
        "unit/test_payments.py",
        "unit/test_catch_up.py",
    ),
    "application/dispatcher.py": (
        _NUMBERS,
        "unit/test_webhook_deliveries.py",
    ),
    "application/api_keys.py": ("unit/test_api_keys.py", _USED),
    "application/access.py": (
        _NUMBERS,
        "unit/test_access.py",
    ),
    "domain/payment.py": (_LIMITS, *_PAYMENT, "unit/test_settlement.py", "unit/test_retention.py"),
    "domain/attempt.py": (
        _LIMITS,
        *_ATTEMPT,
        "unit/test_domain_guards.py",
        "unit/test_checkout.py",
        "unit/test_reconciliation.py",
    ),
    "domain/report.py": (
        *_ATTEMPT,
        "unit/test_domain_guards.py",
        "unit/test_settlement.py",
        "unit/test_webhook_deliveries.py",
        "unit/test_catch_up.py",
    ),
    "domain/machine.py": ("unit/test_domain_machines.py",),
    "domain/api_key.py": (_LIMITS, "unit/test_domain_api_key.py", "unit/test_domain_guards.py"),
    "domain/gateway.py": (
        _LIMITS,
        "unit/test_domain_gateway.py",
        "unit/test_domain_guards.py",
        "unit/test_gateways.py",
    ),
    "domain/business.py": (
        _LIMITS,
        "unit/test_domain_api_key.py",
        "unit/test_domain_machines.py",
        "unit/test_businesses.py",
    ),
    "domain/health.py": (
        _LIMITS,
        "unit/test_domain_attempt.py",
    ),
    "domain/simulator.py": (
        _LIMITS,
        "unit/test_domain_attempt.py",
    ),
    "domain/signing.py": (
        _LIMITS,
        "unit/test_webhook_signatures.py",
    ),
    "domain/webhook.py": (
        _LIMITS,
        "unit/test_domain_webhook.py",
        "unit/test_domain_guards.py",
        "unit/test_settlement.py",
    ),
    "domain/values.py": (_LIMITS, "unit/test_domain_values.py", "unit/test_domain_guards.py"),
    "domain/checks.py": (_LIMITS, "unit/test_domain_guards.py", "unit/test_domain_bounds.py"),
    "domain/rate_limit.py": ("unit/test_domain_rate_limit.py",),
}
