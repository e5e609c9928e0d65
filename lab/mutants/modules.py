"""The code that decides about money, and where no test need notice that it decides otherwise."""

MODULES = tuple(
    f"{folder}/{name}.py"
    for folder, names in (
        (
            "application/payments",
            "payments checkout settlement expiry verification provider_calls provider_events status_checks",
        ),
        ("application/gateways", "payment_options"),
        ("application/webhooks", "dispatcher"),
        ("application/accounts", "api_keys access"),
        ("domain", "payment attempt report machine api_key gateway business_gateway business health simulator signing"),
        ("domain", "webhook delivery values checks rate_limit"),
    )
    for name in names.split()
)

_WAITING = "how often a waiting caller looks is another; the hand-off that it gets is the same"
_CHOICE = "the number is a choice, and the test counts by its name"
_WORDS = "words for a person; the refusal and its field are tested"

EXPLAINED: dict[tuple[str, str], str] = {
    ("application/payments/expiry.py", "BATCH = 200"): _CHOICE,
    ("application/payments/checkout.py", "pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)"): _WAITING,
    ("application/payments/checkout.py", "LONGEST_PAUSE_SECONDS = 1.0"): _WAITING,
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
    (
        "application/webhooks/dispatcher.py",
        "ALONE_WITHIN = 20.0  # seconds for other attempts to end and be recorded; with one attempt within the lease",
    ): _CHOICE,
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
