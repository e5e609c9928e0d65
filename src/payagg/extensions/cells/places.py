"""Which cell a request is for, as far as its path and headers say: no body is parsed, nothing is looked up."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from payagg.domain.api_key import SECRET_PATTERN, hash_secret
from payagg.domain.values import REFERENCE_SHAPE

API = "/api/v1"
_SECRET = re.compile(SECRET_PATTERN.strip("^$").encode())
_BUSINESS = re.compile("biz_[0-9a-f]{32}")
_SCHEME = b"bearer "


class By(Enum):
    """What names the cell."""

    KEY = "key"
    BUSINESS = "business"
    REFERENCE = "reference"
    OWN_LIST = "own list"  # a merchant user's businesses, which may be in any cell
    CHOICE = "choice"  # an administrator's
    EVENT = "event"  # a provider's: its body names a reference
    HOME = "home"  # nothing


@dataclass(frozen=True)
class Destination:
    """`name` is the key's digest in hex, the business's id, the reference or the cell chosen."""

    by: By
    name: str = ""


def business_context(method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Destination:
    """A key before a reference: whose key it is decides what it may read of any reference. A business before a
    reference for the same reason."""
    if path.startswith(f"{API}/webhooks/"):
        return Destination(By.EVENT)
    if path.startswith("/internal/"):
        return Destination(By.HOME)
    if path.startswith(f"{API}/") and not path.startswith(f"{API}/public/"):
        digest = _key_digest(headers)
        if digest is not None:
            return Destination(By.KEY, digest)
        if path.startswith(f"{API}/payments"):
            return Destination(By.HOME)  # without a key, or with none of ours, it is refused the same everywhere
    if path == f"{API}/merchant/businesses" and method == "GET":
        return Destination(By.OWN_LIST)
    parts = path.split("/")
    for by, form in ((By.BUSINESS, _BUSINESS), (By.REFERENCE, REFERENCE_SHAPE)):
        for part in parts:
            if form.fullmatch(part):
                return Destination(by, part)
    if path.startswith(f"{API}/admin/"):
        chosen = [value for name, value in headers if name == b"x-payagg-cell"]
        if chosen:
            return Destination(By.CHOICE, chosen[0].decode("latin-1"))
    return Destination(By.HOME)


def _key_digest(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1 or values[0][: len(_SCHEME)].lower() != _SCHEME:
        return None
    secret = values[0][len(_SCHEME) :]
    return hash_secret(secret.decode()).hex() if _SECRET.fullmatch(secret) else None
