"""The code that decides about money, and the unit tests that are to notice when it decides otherwise."""

# By module: tests/unit/AREA/test_NAME.py, as AREA/NAME.
_NAMED = {
    "application/payments/payments.py": "application/payments application/conflicts",
    "application/payments/checkout.py": (
        "application/checkout application/payment_options application/conflicts application/moved_meanwhile"
    ),
    "application/payments/settlement.py": (
        "application/settlement application/conflicts application/moved_meanwhile application/archive"
    ),
    "application/payments/verification.py": "application/verification application/conflicts application/moved_meanwhile",
    "application/payments/provider_calls.py": "application/checkout application/verification application/conflicts",
    "application/payments/provider_events.py": "application/provider_events application/conflicts application/moved_meanwhile",
    "application/payments/status_checks.py": "application/reconciliation application/conflicts application/moved_meanwhile",
    "application/gateways/payment_options.py": (
        "application/payment_options application/checkout application/payments application/catch_up"
    ),
    "application/webhooks/dispatcher.py": "application/webhook_deliveries",
    "application/accounts/api_keys.py": "application/api_keys application/conflicts",
    "application/accounts/access.py": "application/access",
    "domain/payment.py": "domain/payment domain/guards domain/machines application/settlement application/retention",
    "domain/attempt.py": (
        "domain/attempt domain/next_step domain/report domain/guards application/checkout application/reconciliation"
    ),
    "domain/report.py": (
        "domain/attempt domain/next_step domain/report domain/guards application/settlement "
        "application/webhook_deliveries application/catch_up"
    ),
    "domain/machine.py": "domain/machines",
    "domain/api_key.py": "domain/api_key domain/guards",
    "domain/gateway.py": "domain/gateway domain/guards application/gateways",
    "domain/business.py": "domain/guards domain/api_key domain/machines application/businesses",
    "domain/health.py": "domain/attempt",
    "domain/simulator.py": "domain/attempt",
    "domain/signing.py": "domain/signing",
    "domain/webhook.py": "domain/webhook domain/guards application/settlement",
    "domain/values.py": "domain/values domain/guards",
    "domain/checks.py": "domain/guards domain/bounds",
    "domain/rate_limit.py": "domain/rate_limit",
}
MODULES: dict[str, tuple[str, ...]] = {
    module: tuple("unit/{}/test_{}.py".format(*name.split("/")) for name in names.split())
    for module, names in _NAMED.items()
}
