"""What must happen in some of many histories: a search that never meets one of these proves less than it says."""

from collections import Counter
from typing import Final

SOMETIMES: Final = frozenset(
    {
        "INITIATED moves to FAILED",
        "INITIATED moves to PENDING",
        "INITIATED moves to REVERSED",
        "INITIATED moves to SUCCESS",
        "PENDING moves to FAILED",
        "PENDING moves to REVERSED",
        "PENDING moves to SUCCESS",
        "a COMMIT has no answer",
        "a client gives up waiting",
        "a delivery arrives twice",
        "a delivery is given up",
        "a delivery that may kill its workers is sent alone",
        "a delivery's lease runs out",
        "a drain ends with a payment in flight",
        "a payment expires while its charge is begun",
        "a process freezes",
        "a process is killed after COMMIT",
        "a process is killed at a call",
        "a process is killed at a try",
        "a process is killed before COMMIT",
        "a process is killed before a transaction",
        "a process is killed between two turns",
        "a process is killed in mid-call",
        "a process is stopped in order",
        "a provider is away for a while",
        "a provider is paused after faults",
        "a provider's event is lost",
        "a stale claim is taken over",
        "a transaction is rolled back and done again",
        "an answer to a client is lost",
        "an event is acknowledged twice",
        "an idempotency key is replayed",
        "an idempotency key is used after completion",
        "anomaly DISPUTE",
        "anomaly LATE_FAILURE",
        "anomaly LATE_REVERSAL",
        "anomaly LATE_SUCCESS",
        "anomaly MISMATCH",
        "anomaly NO_EVIDENCE",
        "anomaly PARTIAL_REFUND",
        "events arrive out of order",
        "the database is down for a while",
    }
)


def never(sometimes: Counter[str]) -> list[str]:
    """Which of them did not happen."""
    return sorted(what for what in SOMETIMES if not sometimes[what])
