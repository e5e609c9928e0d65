"""Providers' amounts to integer kobo, exactly: from the text of the number, never through a float."""

import re
from decimal import Decimal

import msgspec

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
