"""Payer data for providers that require what merchants may omit: safe placeholders that belong to nobody."""

import re

from payagg.domain.values import ascii_email

# Reserved by RFC 2606: no mailbox is ever there, and every provider's pattern takes it.
ALIAS_DOMAIN = "example.com"
ALIAS_PHONE = "+2348000000000"  # the toll-free range: nobody's own number
ALIAS_NAME = ("Guest", "Payer")
_NAME_MAX = 100


def alias(reference: str) -> str:
    return f"payer.{reference.replace('-', '').replace('.', 'n').lower()}@{ALIAS_DOMAIN}"


def email_of(email: str | None, reference: str) -> str:
    """The address as a provider accepts it. Its pattern allows only ASCII, and a refused address would cost the payer
    the payment."""
    return (ascii_email(email) if email else None) or alias(reference)


def names_of(name: str | None) -> tuple[str, str]:
    """First and last name, neither of them blank; a single word serves as both."""
    words = (name or "").split()
    if not words:
        return ALIAS_NAME
    return words[0][:_NAME_MAX], (" ".join(words[1:]) or words[0])[:_NAME_MAX]


def phone_of(phone: str | None) -> str:
    """The number in international form, Nigeria assumed where it has no country."""
    digits = re.sub(r"[^0-9]", "", phone or "")
    if digits.startswith("0") and not digits.startswith("00"):
        digits = "234" + digits[1:]
    digits = digits.removeprefix("00")
    return f"+{digits}" if 8 <= len(digits) <= 15 else ALIAS_PHONE
