"""The code that decides about money, and the unit tests that are to notice when it decides otherwise."""

# By module: tests/unit/FOLDER/test_NAME.py, as FOLDER/NAME.
_NAMED = {
    "application/payments/payments.py": "application/payments/payments application/payments/conflicts",
    "application/payments/checkout.py": (
        "application/payments/checkout application/gateways/payment_options application/payments/conflicts application/cells/moved_meanwhile"
    ),
    "application/payments/settlement.py": (
        "application/payments/settlement application/payments/conflicts application/cells/moved_meanwhile application/archive/writer"
    ),
    "application/payments/verification.py": "application/payments/verification application/payments/conflicts application/cells/moved_meanwhile",
    "application/payments/provider_calls.py": "application/payments/checkout application/payments/verification application/payments/conflicts",
    "application/payments/provider_events.py": "application/payments/provider_events application/payments/conflicts application/cells/moved_meanwhile",
    "application/payments/status_checks.py": "application/payments/status_checks application/payments/conflicts application/cells/moved_meanwhile",
    "application/gateways/payment_options.py": (
        "application/gateways/payment_options application/payments/checkout application/payments/payments application/upkeep/catch_up"
    ),
    "application/webhooks/dispatcher.py": "application/webhooks/webhook_deliveries",
    "application/accounts/api_keys.py": "application/accounts/api_keys application/payments/conflicts",
    "application/accounts/access.py": "application/accounts/access",
    "domain/payment.py": "domain/payment domain/guards domain/machines application/payments/settlement application/upkeep/retention",
    "domain/attempt.py": (
        "domain/attempt domain/next_step domain/report domain/guards application/payments/checkout application/payments/status_checks"
    ),
    "domain/report.py": (
        "domain/attempt domain/next_step domain/report domain/guards application/payments/settlement "
        "application/webhooks/webhook_deliveries application/upkeep/catch_up"
    ),
    "domain/machine.py": "domain/machines",
    "domain/api_key.py": "domain/api_key domain/guards",
    "domain/gateway.py": "domain/gateway domain/guards application/gateways/gateways",
    "domain/business.py": "domain/guards domain/api_key domain/machines application/accounts/businesses",
    "domain/health.py": "domain/attempt",
    "domain/simulator.py": "domain/attempt",
    "domain/signing.py": "domain/signing",
    "domain/webhook.py": "domain/webhook domain/guards application/payments/settlement",
    "domain/values.py": "domain/values domain/guards",
    "domain/checks.py": "domain/guards domain/bounds",
    "domain/rate_limit.py": "domain/rate_limit",
}
MODULES: dict[str, tuple[str, ...]] = {
    module: tuple("unit/{}/test_{}.py".format(*name.rsplit("/", 1)) for name in names.split())
    for module, names in _NAMED.items()
}
