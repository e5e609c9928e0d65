"""Standard Webhooks signatures: HMAC-SHA256 over `id.timestamp.body`, so any of its libraries verifies ours."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable

SECRET_PREFIX = "whsec_"  # noqa: S105 - the form, not a secret


def secret_text(key: bytes) -> str:
    """A signing key as shown to a merchant."""
    return SECRET_PREFIX + b64encode(key).decode()


def secret_key(text: str) -> bytes:
    """The key behind `whsec_...`; raises ValueError."""
    return b64decode(text.removeprefix(SECRET_PREFIX), validate=True)


def signature(keys: Iterable[bytes], id: str, timestamp: int, body: bytes) -> str:
    """One `v1,<base64>` per key, separated by spaces: a receiver needs only one of them."""
    signed = f"{id}.{timestamp}.".encode() + body
    return " ".join("v1," + b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys)


def signed_headers(keys: Iterable[bytes], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt. `timestamp` is the attempt's Unix time: receivers refuse one minutes old."""
    value = signature(keys, id, timestamp, body)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": value,
        "x-service-signature": value,
    }


def keys_that_sign(secrets: Iterable[tuple[str, bytes]], unseal: Callable[[str, bytes], list[bytes]]) -> list[bytes]:
    """The keys of every endpoint whose newest secret opens; a replaced one that does not open is left out. `secrets`
    are endpoints' ids and what is sealed, an endpoint's newest first; `unseal` raises ValueError. Raises ValueError
    where there is no key."""
    keys: dict[str, list[bytes]] = {}
    for endpoint_id, sealed in secrets:
        try:
            opened = unseal(endpoint_id, sealed)
        except ValueError:
            opened = []
        newer = keys.get(endpoint_id)
        if newer is None or newer:
            keys[endpoint_id] = [*(newer or ()), *opened]
    signing = [key for own in keys.values() for key in own]
    if not signing:
        raise ValueError("no secret opens")
    return signing
