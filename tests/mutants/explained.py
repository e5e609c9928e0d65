"""Lines where a mutant may survive, and why no test need notice it: by module and line, without its indentation."""

_WAITING = "how often a waiting caller looks is another; the hand-off that it gets is the same"
_CHOICE = "the number is a choice, and the test counts by its name"
_UNNAMED = "nobody names it when a dispatcher is made"
_WORDS = "words for a person; the refusal and its field are tested"

EXPLAINED: dict[tuple[str, str], str] = {
    ("application/checkout.py", "pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)"): _WAITING,
    (
        "application/access.py",
        'issued_at = datetime.fromtimestamp(max(0, int(claims.get("iat", 0))), UTC)',
    ): "nothing is before 1970: what is less than 0 becomes 0",
    ("application/payments.py", "REFERENCE_DRAWS = 8"): _CHOICE,
    ("application/provider_calls.py", "*,"): "arguments that may be given by place as well; nobody does",
    ("application/settlement.py", "EXPIRE_BATCH = 200"): _CHOICE,
    (
        "application/settlement.py",
        "has_cells: bool = False",
    ): "the service says which; with True an unknown reference costs a statement more",
    ("application/reconciliation.py", "HOLD = timedelta(minutes=2)"): _CHOICE,
    ("application/reconciliation.py", "AT_ONCE = 10"): _CHOICE,
    (
        "application/dispatcher.py",
        "_recorded: asyncio.Event = field(default_factory=asyncio.Event, init=False)  # no result waits",
    ): _UNNAMED,
    (
        "domain/machine.py",
        'object.__setattr__(self, "final", frozenset(self.states) - leaving)',
    ): "what leads on is a part of the states, so both are the rest",
    ("domain/values.py", "@lru_cache(maxsize=256)  # a shop sends the same few with every payment"): _CHOICE,
    (
        "application/dispatcher.py",
        "_crowded: set[str] = field(default_factory=set, init=False)"
        "  # and these partitions may have as many as they get",
    ): _UNNAMED,
    (
        "domain/api_key.py",
        'raise invalid("secretKey", f"Must have {2 * SECRET_BYTES} lower-case hexadecimal digits.")',
    ): _WORDS,
}
