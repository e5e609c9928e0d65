"""What must happen in some of many histories: a search that never meets one of these proves less than it says."""

from collections import Counter
from typing import Final

from lab.simulation.invariants import MOVES
from lab.simulation.later_money import TOLD_BY

DISPUTES = ("opened", "won", "lost", "accepted")
KILLED = (
    *("before a transaction", "before COMMIT", "after COMMIT", "at a call", "in mid-call", "at a try"),
    "between two turns",
)
SOMETIMES: Final = frozenset(
    {
        *(f"{before} moves to {after}" for before, after in MOVES),
        *(f"anomaly {kind}" for kind in (*TOLD_BY, "LATE_FAILURE", "UNKNOWN_STATUS")),
        *(f"a dispute is {state}" for state in DISPUTES),
        *(f"a process is killed {where}" for where in KILLED),
        "a COMMIT has no answer",
        "a client gives up waiting",
        "a delivery arrives twice",
        "a delivery is given up",
        "a delivery that may kill its workers is sent alone",
        "a delivery's lease runs out",
        "a drain ends with a payment in flight",
        "a gateway is pointed at another account",
        "a payment expires while its charge is begun",
        "a process freezes",
        "a process is stopped in order",
        "a provider is away for a while",
        "a provider is paused after faults",
        "a provider's event is lost",
        "a reference is paid twice",
        "a sparse ask finds that money went back",
        "a stale claim is taken over",
        "a transaction is rolled back and done again",
        "an answer to a client is lost",
        "an event is acknowledged twice",
        "an event of a deleted gateway is proved",
        "an idempotency key is replayed",
        "an idempotency key is used after completion",
        "another account is asked about a charge",
        "events arrive out of order",
        "money goes back before its success is known",
        "money of a FAILED payment goes back",
        "the database is down for a while",
    }
)


def never(sometimes: Counter[str]) -> list[str]:
    """Which of them did not happen."""
    return sorted(what for what in SOMETIMES if not sometimes[what])
