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
    "application/payments/expiry.py": "settlement conflicts application/payments/status_checks",
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
    "domain/business_gateway.py": "business_gateway gateway guards application/payments/payments",
    "domain/business.py": "guards api_key machines application/accounts/businesses",
    "domain/health.py": "attempt",
    "domain/simulator.py": "attempt",
    "domain/signing.py": "signing",
    "domain/webhook.py": "webhook guards application/payments/settlement",
    "domain/delivery.py": "delivery guards",
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
