"""Values parsed once and then trusted: references, slugs, addresses, money bounds."""

import re
from datetime import datetime
from enum import Enum
from functools import lru_cache
from urllib.parse import urlsplit

from payagg.domain.errors import ErrorCode, Refusal, invalid

CURRENCY = "NGN"
MIN_AMOUNT = 100  # kobo; interface, Limits
MAX_AMOUNT = 2**53 - 1  # kobo; the largest integer every JSON reader keeps exact
REFERENCE_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
REFERENCE_SUFFIXES = 36**6
SLUG_PATTERN = "^[a-z0-9]+(?:-[a-z0-9]+)*$"
URL_MAX = 2048
EMAIL_MAX = 254
_PAIRS = [first + second for first in REFERENCE_ALPHABET for second in REFERENCE_ALPHABET]  # two digits of base 36
REFERENCE_SHAPE = re.compile(r"[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}")

# fullmatch with [0-9] and ASCII classes: `$` would let a newline through and `\d` Arabic-Indic digits.
_EMAIL = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])"
)
_URL_CHARACTERS = re.compile(r"[!#$%&'()*+,./0-9:;=?@A-Z\[\]_a-z~-]+")
_HOST = re.compile(
    r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?"
)


class Environment(Enum):
    """SANDBOX and LIVE never meet: every payment, key, endpoint and event belongs to exactly one."""

    SANDBOX = "SANDBOX"
    LIVE = "LIVE"


def make_reference(prefix: str, day: datetime, number: int) -> str:
    """`<PFX>-YYYYMMDD-XXXXXX` from the UTC day and one random number below REFERENCE_SUFFIXES."""
    high, rest = divmod(number, 36**4)
    middle, low = divmod(rest, 36**2)
    date = f"{day.year:04}{day.month:02}{day.day:02}"  # strftime takes longer than all else here
    return f"{prefix}-{date}-{_PAIRS[high]}{_PAIRS[middle]}{_PAIRS[low]}"


def parse_reference(text: str, prefix: str) -> str:
    """The reference itself; raises INVALID_REFERENCE unless the whole string has the interface's form."""
    if not (REFERENCE_SHAPE.fullmatch(text) and text.startswith(prefix + "-")):
        raise Refusal(ErrorCode.INVALID_REFERENCE, field="reference")
    return text


def parse_email(text: str, field: str) -> str:
    """A deliverable-looking address of at most 254 ASCII characters; raises VALIDATION_ERROR naming `field`."""
    local, _, _ = text.rpartition("@")
    if len(text) > EMAIL_MAX or len(local) > 64 or not _EMAIL.fullmatch(text):
        raise invalid(field, "Must be a valid email address.")
    return text


@lru_cache(maxsize=256)  # a shop sends the same few with every payment
def parse_url(text: str, field: str, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """An absolute URL with a host; raises VALIDATION_ERROR naming `field`.

    Only the ASCII characters of RFC 3986 pass (an international name must come as punycode), and no user
    information: readers disagree about which host such a URL names.
    """
    wanted = " or ".join(schemes)
    if len(text) > URL_MAX:
        raise invalid(field, f"Must be at most {URL_MAX} characters.")
    try:
        if not _URL_CHARACTERS.fullmatch(text):
            raise ValueError
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise invalid(field, f"Must be a valid {wanted} URL.") from None
    if parts.scheme not in schemes or not text[len(parts.scheme) :].startswith("://"):
        raise invalid(field, f"Must be a valid {wanted} URL.")
    if "@" in parts.netloc:
        raise invalid(field, "Must not carry user information.")
    bracketed = parts.netloc.startswith("[")
    if port == 0 or (not bracketed and (len(host) > 253 or not _HOST.fullmatch(host))) or not host:
        raise invalid(field, "Must name a valid host.")
    return text
