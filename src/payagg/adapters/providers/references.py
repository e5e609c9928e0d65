"""References, ids, statuses and instants in provider bodies: only values of the right form are passed on."""

import re
from datetime import UTC, datetime

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
