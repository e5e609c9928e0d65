"""Failure reasons in our own few words: a provider's text may hold anything, so none of it is passed on."""

from payagg.domain.payment import DECLINED

# The first row whose needle occurs in the provider's text wins.
REASONS = (
    ("insufficient", "INSUFFICIENT_FUNDS"),
    ("expired", "EXPIRED_CARD"),
    ("cancel", "CANCELLED"),
    ("timed out", "TIMED_OUT"),
    ("timeout", "TIMED_OUT"),
)


def reason_of(*texts: object) -> str:
    """The reason behind a failure's texts; DECLINED for any other text."""
    said = " ".join(text.lower() for text in texts if isinstance(text, str))
    return next((reason for needle, reason in REASONS if needle in said), DECLINED)
