"""Values parsed once and then trusted: references, slugs, addresses, money bounds."""

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Any
from urllib.parse import quote

from payagg.domain.checks import check_text
from payagg.domain.errors import ErrorCode, Refusal, invalid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CURRENCY = "NGN"
MIN_AMOUNT = 100  # kobo; interface, Limits
MAX_AMOUNT = 2**53 - 1  # kobo; the largest integer every JSON reader keeps exact
REFERENCE_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
REFERENCE_SUFFIXES = 36**6
REFERENCE_LENGTH = 19
REFERENCE_PATTERN = "^[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}$"
SLUG_MIN, SLUG_MAX = 2, 50  # interface, Limits
SLUG_PATTERN = "^[a-z0-9]+(?:-[a-z0-9]+)*$"
OPTION_SLUG_PATTERN = "^[a-z0-9]+(?:[-_][a-z0-9]+)*$"
URL_MAX = 2048
EMAIL_MAX = 254
LOCAL_MAX = 64  # characters before an address's @; RFC 5321
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
HOST_MAX, LABEL_MAX = 253, 63  # of the ASCII form; RFC 1035
# No two clocks of ours differ by more. An instant that lies further ahead than a rule can have put it was written while
# the database's clock was ahead, and holds nobody up.
CLOCK_SLACK = timedelta(minutes=1)
_PAIRS = [first + second for first in REFERENCE_ALPHABET for second in REFERENCE_ALPHABET]  # two digits of base 36
REFERENCE_SHAPE = re.compile(REFERENCE_PATTERN.strip("^$"))
_OPTION_SLUG = re.compile(OPTION_SLUG_PATTERN.strip("^$"))

# RFC 3339, section 5.6: letters in either case, and a space for the T.
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)

# fullmatch with [0-9] and ASCII classes: `$` would let a newline through and `\d` Arabic-Indic digits.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\x80-\U0010ffff-]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_MAIL_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])"
)
_URL = re.compile(r"([A-Za-z]+)://([^/?#]*)(.*)")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{0,5}))?")
_NEVER_IN_URLS = re.compile(r"[ \"<>\\]")
_HOST = re.compile(
    r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?"
)
# Letters and marks by their category that show nothing: a name with one and a name without look alike.
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_SAFE_IN_URLS = "!#$%&'()*+,/:;=?@[]~"  # with letters, digits and -._ what RFC 3986 lets stand


class Environment(Enum):
    """SANDBOX and LIVE never meet: every payment, key, endpoint and event belongs to exactly one."""

    SANDBOX = "SANDBOX"
    LIVE = "LIVE"


def instant_past(last_id: str | None, now: datetime) -> datetime:
    """What the next id is to begin with so that it sorts behind the last one, though the clock went back since: `now`,
    or a millisecond past the instant that the last one begins with."""
    if last_id is None:
        return now
    return max(now, _EPOCH + timedelta(milliseconds=int(last_id.partition("_")[2][:12], 16) + 1))


def make_reference(prefix: str, day: datetime, number: int) -> str:
    """`<PFX>-YYYYMMDD-XXXXXX` from the UTC day and one random number below REFERENCE_SUFFIXES."""
    high, rest = divmod(number, 36**4)
    middle, low = divmod(rest, 36**2)
    date = f"{day.year:04}{day.month:02}{day.day:02}"  # strftime takes longer than all else here
    return f"{prefix}-{date}-{_PAIRS[high]}{_PAIRS[middle]}{_PAIRS[low]}"


def parse_reference(text: Any) -> str:
    """The reference itself; raises INVALID_REFERENCE unless the whole string has the interface's form.

    Any three letters pass: references outlive the prefix that a deployment uses today.
    """
    if not isinstance(text, str) or not REFERENCE_SHAPE.fullmatch(text):
        raise Refusal(ErrorCode.INVALID_REFERENCE, field="reference")
    return text


def parse_slug(text: Any) -> str:
    """A slug as an administrator may choose it; raises VALIDATION_ERROR on `slug`."""
    check_text(text, "slug", SLUG_MAX, SLUG_MIN)
    # A pattern's `$` lets a trailing newline through; a whole match does not.
    if not re.fullmatch(SLUG_PATTERN.strip("^$"), text):
        raise invalid("slug", "Must be lower-case letters and digits, in groups joined by single hyphens.")
    return str(text)


def is_option_slug(text: Any) -> bool:
    """Whether a payment option may be called so: what a deployment names by itself may hold underscores too."""
    return isinstance(text, str) and SLUG_MIN <= len(text) <= SLUG_MAX and _OPTION_SLUG.fullmatch(text) is not None


def parse_instant(text: str, field: str) -> datetime:
    """An RFC 3339 date-time, in UTC; raises VALIDATION_ERROR naming `field`."""
    try:
        if _INSTANT.fullmatch(text):
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise invalid(field, "Must be an RFC 3339 date-time such as 2025-01-31T12:00:00Z; in a URL its + is %2B.")


def parse_email(text: Any, field: str) -> str:
    """A deliverable-looking address of at most 254 characters, international ones too (RFC 6531); raises
    VALIDATION_ERROR naming `field`."""
    if not isinstance(text, str) or len(text) > EMAIL_MAX or not _is_email(text):
        raise invalid(field, "Must be a valid email address.")
    return text


def parse_url(text: Any, field: str, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """An absolute URL as a browser takes one, itself; raises VALIDATION_ERROR naming `field`.

    It is kept as it came and normalised on use, by `ascii_url`. No user information: readers disagree about which host
    such a URL names.
    """
    if not isinstance(text, str):
        raise invalid(field, "Must be a string.")
    if len(text) > URL_MAX:
        raise invalid(field, f"Must be at most {URL_MAX} characters.")
    if text.partition("://")[0].lower() not in schemes:
        raise invalid(field, f"Must be a valid {' or '.join(schemes)} URL.")
    try:
        ascii_url(text)
    except ValueError as error:
        raise invalid(field, str(error)) from None
    return text


@lru_cache(maxsize=256)  # a shop sends the same few with every payment
def ascii_url(url: str) -> str:
    """`url` as it goes over the wire: an international host in punycode, all else beyond RFC 3986 percent-encoded.

    Raises ValueError, whose words say what is wrong.
    """
    parts = _URL.fullmatch(url)
    if parts is None or not url.isprintable() or _NEVER_IN_URLS.search(url):
        raise ValueError("Must be a valid URL.")
    scheme, authority, rest = parts.groups()
    if "@" in authority:
        raise ValueError("Must not carry user information.")
    found = _AUTHORITY.fullmatch(authority)
    if found is None or not 0 < int(found[2] or 1) < 2**16:
        raise ValueError("Must name a valid host.")
    port = "" if found[2] is None else f":{found[2]}"
    return f"{scheme}://{_url_host(found[1])}{port}{quote(rest, safe=_SAFE_IN_URLS)}"


def ascii_email(email: str) -> str | None:
    """`email` as any mail server takes it, an international host in punycode; None where its own part is not ASCII."""
    local, _, host = email.rpartition("@")
    return f"{local}@{_ascii_host(host)}" if local.isascii() else None


def _is_email(text: str) -> bool:
    local, _, host = text.rpartition("@")
    if len(local) > LOCAL_MAX or not _LOCAL.fullmatch(local) or not (local.isascii() or _is_plain(local)):
        return False
    try:
        host = _ascii_host(host)
    except ValueError:
        return False
    return len(host) <= HOST_MAX and _MAIL_HOST.fullmatch(host) is not None


def _url_host(host: str) -> str:
    try:
        if host.startswith("["):
            IPv6Address(host[1:-1])
            return host
        named = _ascii_host(host)
    except ValueError:
        named = ""
    if len(named) > HOST_MAX or not _HOST.fullmatch(named):
        raise ValueError("Must name a valid host.")
    return named


def _ascii_host(host: str) -> str:
    """Each international label in punycode, as a browser looks it up (RFC 5891); raises ValueError."""
    return host if host.isascii() else ".".join(map(_ascii_label, host.split(".")))


def _ascii_label(label: str) -> str:
    if label.isascii():
        return label
    # `ß` and the final sigma are letters of their own in names, as in browsers; folding would lead to another host.
    folded = "".join(letter.lower() if letter in "ßẞς" else letter.casefold() for letter in label)
    plain = unicodedata.normalize("NFC", folded)
    is_odd = plain.isascii() or len(plain) > LABEL_MAX or plain.startswith("xn--")
    if is_odd or not _is_plain(plain) or not all(map(_is_in_names, plain)):
        raise ValueError("not a label")
    return "xn--" + plain.encode("punycode").decode()


def _is_plain(text: str) -> bool:
    """Whether every character stands for itself (unlike `①`, `Ｇ` and `ﬁ`), and none for a mark on nothing."""
    composed = unicodedata.normalize("NFC", text)
    is_itself = composed == unicodedata.normalize("NFKC", text)
    return is_itself and text.isprintable() and not unicodedata.category(composed[0]).startswith("M")


def _is_in_names(letter: str) -> bool:
    category = unicodedata.category(letter)
    return (category[0] in "LM" or category == "Nd" or letter in "-_") and not _INVISIBLE.match(letter)
