"""References in provider bodies: only what could be one of ours goes further."""

import re

from payagg.domain.values import REFERENCE_SHAPE

_OURS = re.compile(REFERENCE_SHAPE.pattern + r"(?:\.[0-9]{1,3})?")
_WORD_MAX = 40


def ours(text: object) -> str | None:
    """The text when it has the form of an attempt's reference, else None: the account may serve others too."""
    return text if isinstance(text, str) and _OURS.fullmatch(text) else None


def word(text: object) -> str:
    """A provider's status word, safe to store and to show to an operator."""
    return re.sub(r"[^A-Za-z0-9 _.:-]", "?", text)[:_WORD_MAX] if isinstance(text, str) else ""
