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
        "a dispute is accepted",
        "a dispute is lost",
        "a dispute is opened",
        "a dispute is won",
        "a drain ends with a payment in flight",
        "a gateway is pointed at another account",
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
        "a reference is paid twice",
        "a sparse ask finds that money went back",
        "a stale claim is taken over",
        "a transaction is rolled back and done again",
        "an answer to a client is lost",
        "an event is acknowledged twice",
        "an event of a deleted gateway is proved",
        "an idempotency key is replayed",
        "an idempotency key is used after completion",
        "anomaly DISPUTE",
        "anomaly LATE_FAILURE",
        "anomaly LATE_REVERSAL",
        "anomaly LATE_SUCCESS",
        "anomaly MISMATCH",
        "anomaly NO_EVIDENCE",
        "anomaly PARTIAL_REFUND",
        "anomaly SECOND_CHARGE",
        "anomaly UNKNOWN_STATUS",
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
