"""What the values of settings may be: each kind reads text and has the words for what that text must be."""

import base64
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from payagg.domain.errors import Refusal
from payagg.domain.values import LOOPBACK, OPTION_SLUG_PATTERN, ascii_url, parse_url

DISTINCT_BYTES_MIN = 8  # of 32; chance gives fewer than 16 once in 10^16 keys
ENCRYPTION_KEY_BYTES = 32
Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
EncryptionKeys = tuple[tuple[str, bytes], ...]
OidcRoles = tuple[str, tuple[tuple[str, str], ...]]  # a claim, and roles by its values, the highest first
ROLES = ("SUPER_ADMIN", "ADMIN", "SUPPORT")


class Unfit(ValueError):
    """A value whose fault has words of its own, to follow the setting's name."""


@dataclass(frozen=True)
class SettingKind:
    """`must` follows "PAYAGG_... must be"; `read` raises ValueError for anything else."""

    must: str
    read: Callable[[str], Any]
    may_be_empty: bool = True  # as if it were not set


def whole(least: int, most: int, unit: str = "") -> SettingKind:
    number = Annotated[int, Meta(ge=least, le=most)]
    words = f"a whole number{unit and f' of {unit}'} from {least} to {most}"
    return SettingKind(words, partial(msgspec.convert, type=number, strict=False))


def lasting(unit: str, most: int, least: int = 1) -> SettingKind:
    number = whole(least, most, unit)
    return SettingKind(number.must, lambda text: timedelta(**{unit: number.read(text)}))


def one_of(*words: str) -> SettingKind:
    return SettingKind(f"one of {', '.join(words)}", partial(msgspec.convert, type=Literal[words]))


def matching(pattern: str, must: str) -> SettingKind:
    return SettingKind(must, partial(msgspec.convert, type=Annotated[str, Meta(pattern=rf"\A(?:{pattern})\Z")]))


def several(item: Callable[[str], Any], must: str) -> SettingKind:
    """A comma list of what `item` reads."""
    return SettingKind(
        f"a comma list of {must}", lambda text: tuple(item(part.strip()) for part in text.split(",") if part)
    )


def _url(text: str, schemes: tuple[str, ...]) -> str:
    try:
        parse_url(text, "url", schemes)
    except Refusal as refusal:
        raise Unfit(f"is no web address: {refusal.message.rstrip('.')}") from None
    return ascii_url(text.rstrip("/"))


def _base_url(text: str) -> str:
    """Paths are put behind it."""
    if "?" in text or "#" in text:
        raise ValueError
    return _url(text, ("http", "https"))


def _key_set(text: str) -> str:
    return _issuer(text) if "://" in text else text


def _issuer(text: str) -> str:
    """As it is given: an issuer's name is compared whole, a slash at its end too."""
    parts = urlsplit(_url(text, ("http", "https")))
    if parts.scheme != "https" and (parts.hostname or "") not in LOOPBACK:
        raise ValueError
    return text


def _oidc_roles(text: str) -> OidcRoles:
    """The highest role stands first."""
    claim, _, listed = text.partition(" ")
    pairs = [part.strip().rpartition("=") for part in listed.split(",")]
    if not claim or not all(value and role in ROLES for value, _, role in pairs):
        raise ValueError
    if any(re.search(rf"=(?:{'|'.join(ROLES)})\s", value) for value, _, _ in pairs):  # a space where a comma belongs
        raise ValueError
    return claim, tuple(sorted(((value, role) for value, _, role in pairs), key=lambda pair: ROLES.index(pair[1])))


def origin(text: str) -> str:
    """As browsers send them, so that comparing them whole is right: no path, no wildcard, no default port."""
    scheme, _, host = text.partition("://")
    port = {"http": ":80", "https": ":443"}.get(scheme)
    is_host = re.fullmatch(r"(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?", host)
    if port is None or host.endswith(port) or not is_host:
        raise ValueError
    return text


def _encryption_keys(text: str) -> EncryptionKeys:
    keys = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        kid, _, encoded = item.partition(":")
        key = base64.b64decode(encoded, validate=True)
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", kid) or len(key) != ENCRYPTION_KEY_BYTES:
            raise ValueError
        if len(set(key)) < DISTINCT_BYTES_MIN:
            raise Unfit(f"has a weak key under {kid}: 32 random bytes are needed, as `payagg keygen` makes them")
        keys.append((kid, key))
    if len(dict(keys)) != len(keys):
        raise Unfit("must not name one kid twice")
    return tuple(keys)


def _jwt_key(text: str) -> str:
    """PEM may stand on one line with `\\n` for its line breaks, in quotes or not, as environment files need it."""
    text.encode()  # bytes that are no text cannot be a key
    bare = text.strip("'\"")
    return bare.replace("\\n", "\n") if bare.startswith("-----BEGIN") else text


TEXT = SettingKind("text", str)
PATH = SettingKind("a path", Path)
YES_OR_NO = SettingKind("true or false", partial(msgspec.convert, type=bool, strict=False))
COUNT = whole(1, 1_000_000_000)
BYTES = whole(100_000, 1_000_000_000_000_000)
PREFIX = matching("[A-Z]{3}", "three letters A-Z")
# Also a path segment and a header's middle, so an underscore is allowed.
SLUG = matching(
    rf"(?=.{{2,50}}\Z){OPTION_SLUG_PATTERN.strip('^$')}", "2 to 50 of a-z, 0-9 and single hyphens or underscores"
)
BASE_URL = SettingKind("an http or https address without a query or fragment", _base_url)
NETWORKS = several(ipaddress.ip_network, "networks, for example 10.0.0.0/8")
ORIGINS = several(origin, "origins as browsers send them, for example https://shop.example,http://localhost:3000")
ENCRYPTION_KEYS = SettingKind("a comma list of kid:base64 with 32 bytes each", _encryption_keys)
JWT_KEY = SettingKind("a PEM key, or 32 bytes or more for HS256", _jwt_key)
KEY_SET = SettingKind("a path, an https address, or an http one of this machine", _key_set)
ISSUER = SettingKind("an https address, or an http one of this machine", _issuer)
OIDC_ROLES = SettingKind(
    f"a claim, a space and a comma list of value=role, of {', '.join(ROLES)}, for example"
    " groups pay-admins=ADMIN,pay-support=SUPPORT",
    _oidc_roles,
)
METRICS_TOKEN = matching(r"[\x21-\x7e]{16,}", "16 or more printable characters without spaces")
# A folder whose first part has a colon is a URL that misses a slash.
OBJECT_STORE = matching(r"s3://[^/?#].*|file:///.*|[^/:]*(?:/.*)?", "a folder, file:///FOLDER or s3://BUCKET/PREFIX")
DATABASE_URL = matching(r"postgres(?:ql)?(?:\+[a-z]+)?://.*", "a postgresql:// address")
