"""The code that decides about money, and the unit tests that are to notice when it decides otherwise."""

_USED, _MOVED = "unit/application/test_conflicts.py", "unit/application/test_moved_meanwhile.py"
_PAYMENT = ("unit/domain/test_payment.py", "unit/domain/test_guards.py", "unit/domain/test_machines.py")
_ATTEMPT = ("unit/domain/test_attempt.py", "unit/domain/test_next_step.py", "unit/domain/test_report.py")

MODULES: dict[str, tuple[str, ...]] = {
    "application/payments.py": ("unit/application/test_payments.py", _USED),
    "application/checkout.py": (
        "unit/application/test_checkout.py",
        "unit/application/test_payment_options.py",
        _USED,
        _MOVED,
    ),
    "application/settlement.py": (
        "unit/application/test_settlement.py",
        _USED,
        _MOVED,
        "unit/application/test_archive.py",
    ),
    "application/verification.py": ("unit/application/test_verification.py", _USED, _MOVED),
    "application/provider_calls.py": (
        "unit/application/test_checkout.py",
        "unit/application/test_verification.py",
        _USED,
    ),
    "application/provider_events.py": ("unit/application/test_provider_events.py", _USED, _MOVED),
    "application/reconciliation.py": ("unit/application/test_reconciliation.py", _USED, _MOVED),
    "application/payment_options.py": (
        "unit/application/test_payment_options.py",
        "unit/application/test_checkout.py",
        "unit/application/test_payments.py",
        "unit/application/test_catch_up.py",
    ),
    "application/dispatcher.py": ("unit/application/test_webhook_deliveries.py",),
    "application/api_keys.py": ("unit/application/test_api_keys.py", _USED),
    "application/access.py": ("unit/application/test_access.py",),
    "domain/payment.py": (
        *_PAYMENT,
        "unit/application/test_settlement.py",
        "unit/application/test_retention.py",
    ),
    "domain/attempt.py": (
        *_ATTEMPT,
        "unit/domain/test_guards.py",
        "unit/application/test_checkout.py",
        "unit/application/test_reconciliation.py",
    ),
    "domain/report.py": (
        *_ATTEMPT,
        "unit/domain/test_guards.py",
        "unit/application/test_settlement.py",
        "unit/application/test_webhook_deliveries.py",
        "unit/application/test_catch_up.py",
    ),
    "domain/machine.py": ("unit/domain/test_machines.py",),
    "domain/api_key.py": ("unit/domain/test_api_key.py", "unit/domain/test_guards.py"),
    "domain/gateway.py": (
        "unit/domain/test_gateway.py",
        "unit/domain/test_guards.py",
        "unit/application/test_gateways.py",
    ),
    "domain/business.py": (
        "unit/domain/test_guards.py",
        "unit/domain/test_api_key.py",
        "unit/domain/test_machines.py",
        "unit/application/test_businesses.py",
    ),
    "domain/health.py": ("unit/domain/test_attempt.py",),
    "domain/simulator.py": ("unit/domain/test_attempt.py",),
    "domain/signing.py": ("unit/domain/test_signing.py",),
    "domain/webhook.py": (
        "unit/domain/test_webhook.py",
        "unit/domain/test_guards.py",
        "unit/application/test_settlement.py",
    ),
    "domain/values.py": ("unit/domain/test_values.py", "unit/domain/test_guards.py"),
    "domain/checks.py": ("unit/domain/test_guards.py", "unit/domain/test_bounds.py"),
    "domain/rate_limit.py": ("unit/domain/test_rate_limit.py",),
}
