"""What is read of a provider's values: references, ids, words and instants of the right form; amounts as integer kobo,
exactly, from the text of the number and never through a float; failure reasons in our own few words."""

import re
from datetime import UTC, datetime
from decimal import Decimal

import msgspec

from payagg.domain.payment import DECLINED
from payagg.domain.values import REFERENCE_SHAPE

_OURS = re.compile(REFERENCE_SHAPE.pattern + r"(?:\.[0-9]{1,3})?")
_WORD_MAX = 40
_UNSAFE = re.compile(r"[^A-Za-z0-9 _.:-]")


def ours(text: object) -> str | None:
    """The text when it has the form of an attempt's reference, else None: the account may serve others too."""
    return text if isinstance(text, str) and _OURS.fullmatch(text) else None


def word(text: object) -> str:
    """A provider's status word, safe to store and to show to an operator."""
    return _UNSAFE.sub("?", text)[:_WORD_MAX] if isinstance(text, str) else ""


def identity(value: object) -> str | None:
    """A provider's own id, a number or text, safe to store; None for anything else and for what is a reference of ours,
    which one provider sends in the same place."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    text = word(str(value))
    return text if text and ours(text) is None else None


def instant(value: object) -> datetime | None:
    """A date and time with its zone; None for anything else, as one without a zone may be hours off."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at.astimezone(UTC) if at.utcoffset() is not None and 2000 < at.year < 3000 else None


# Java writes 15000000.0 as 1.5E7, so an exponent is legal; its size is bounded before anything is computed.
_NUMBER = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?")
_KOBO_MAX = 2**63 - 1


def kobo_of(raw: msgspec.Raw, unit: int) -> int | None:
    """The amount a JSON number (or a string holding one) names, in kobo; `unit` = kobo per unit of the number.

    None when absent, not a number, negative, or not a whole number of kobo: no proof of any payment.
    """
    text = bytes(raw).decode("utf-8", "replace").strip()
    if text.startswith('"') and text.endswith('"') and len(text) >= 2:
        text = text[1:-1].strip()
    if not _NUMBER.fullmatch(text):
        return None
    kobo = (int(text) if text.isdigit() else Decimal(text)) * unit
    if not 0 <= kobo <= _KOBO_MAX or kobo != int(kobo):
        return None
    return int(kobo)


def naira_text(kobo: int) -> str:
    """Kobo as naira with exactly two decimals, for a JSON number: 150000 gives `1500.00`."""
    return f"{kobo // 100}.{kobo % 100:02d}"


# The first row whose needle occurs in the provider's text wins; it may hold anything, so none of it is passed on.
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
