"""How badly things go in one history: each fault is off in many of them, so that faults meet in every mix."""

from dataclasses import dataclass, fields, replace

from payagg_testing.clocks import Chance


@dataclass(frozen=True)
class Weather:
    """Shares of 0 to 1 of what may go wrong, each drawn anew whenever it could."""

    # A client's request to us.
    lost_request: float = 0.0
    lost_answer: float = 0.0
    # Our processes: killed at a port, killed at any turn of the loop, frozen for longer than any lease.
    crash: float = 0.0
    crash_anywhere: float = 0.0
    freeze: float = 0.0
    # The database: a transaction rolled back, one whose COMMIT had no answer.
    conflict: float = 0.0
    unknown_commit: float = 0.0
    # Our calls to providers and merchants.
    lost_call: float = 0.0
    lost_reply: float = 0.0
    slow: float = 0.0
    provider_error: float = 0.0
    # Providers' events, and merchants' answers to ours.
    event_lost: float = 0.0
    event_twice: float = 0.0
    event_late: float = 0.0
    merchant_error: float = 0.0

    @classmethod
    def drawn(cls, chance: Chance) -> "Weather":
        names = [each.name for each in fields(cls)]
        if chance.happens(0.4):
            # A few faults and no other: what they lead to is then not hidden by what comes later.
            shares = {name: WORST[name] * (0.5 + chance.random()) for name in chance.sample(names, 2)}
        else:
            shares = {name: WORST[name] * chance.random() if chance.happens(0.5) else 0.0 for name in names}
        return replace(CALM, **shares)

    def latency(self, chance: Chance) -> float:
        """Seconds that a message travels."""
        return 4.0 + chance.random() * 8.0 if chance.happens(self.slow) else chance.random() * 0.3


CALM = Weather()
WORST = {
    "lost_request": 0.15,
    "lost_answer": 0.2,
    "crash": 0.03,
    "crash_anywhere": 0.004,
    "freeze": 0.05,
    "conflict": 0.1,
    "unknown_commit": 0.05,
    "lost_call": 0.2,
    "lost_reply": 0.3,
    "slow": 0.3,
    "provider_error": 0.3,
    "event_lost": 0.65,
    "event_twice": 0.5,
    "event_late": 0.5,
    "merchant_error": 0.5,
}
