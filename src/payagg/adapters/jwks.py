"""An issuer's public keys as a JSON Web Key Set (RFC 7517), from a file or a URL, kept fresh. PyJWT's `PyJWKClient`
fetches them within the request that names an unknown key, blocks the loop until the issuer answers, reads an answer of
any length, and accepts weak keys; its parser of one key, `PyJWK`, is used."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import structlog
from jwt import PyJWK

from payagg.adapters.providers.transport import Transport
from payagg.adapters.security import RSA_BITS_MIN, RSA_EXPONENT_MIN
from payagg.domain.report import ProviderFault

ALGORITHMS = frozenset({"EdDSA", "RS256", "ES256"})  # a public set cannot hold a shared secret
KEYS_MAX = 100
FETCH_SECONDS = 5.0
FRESH_SECONDS = 300.0
PAUSE_SECONDS = 10.0  # between two loads, whatever unknown keys tokens name
_log = structlog.get_logger("payagg.jwks")


class VerifyingKey(NamedTuple):
    """A key and its one algorithm."""

    key: Any
    algorithm: str


class KeySet:
    """The keys by `kid`, as last loaded. A failed load keeps them."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._keys: Mapping[str, VerifyingKey] = {}
        self._wanted = asyncio.Event()

    @property
    def is_remote(self) -> bool:
        return "://" in self._source

    def find(self, kid: str) -> VerifyingKey | None:
        """The key of that name. An unknown name brings the next load forward: the key may be new."""
        found = self._keys.get(kid)
        if found is None:
            self._wanted.set()
        return found

    async def load(self) -> None:
        """Reads the set again; raises ValueError without its content."""
        self._keys = parse_keys(await self._fetch() if self.is_remote else await asyncio.to_thread(self._read))

    async def keep(self, pause: float = PAUSE_SECONDS, fresh: float = FRESH_SECONDS) -> None:
        """Loads for ever: when an unknown key is wanted, and every `fresh` seconds, at most once within `pause`."""
        while True:
            await asyncio.sleep(pause)
            if self._keys:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wanted.wait(), fresh)
            self._wanted.clear()
            try:
                await self.load()
            except ValueError as error:
                _log.warning("the key set could not be loaded; its keys stay as they were", reason=str(error))

    def _read(self) -> bytes:
        try:
            return Path(self._source).read_bytes()
        except OSError as error:
            raise ValueError(f"cannot be read ({error.strerror})") from None

    async def _fetch(self) -> bytes:
        try:
            answer = await Transport(deadline=FETCH_SECONDS).exchange("GET", self._source, {})
        except ProviderFault as fault:
            raise ValueError(f"was not answered ({fault.kind.value})") from None
        if answer.status != 200:
            raise ValueError(f"was answered with status {answer.status}")
        return answer.body


def parse_keys(body: bytes) -> dict[str, VerifyingKey]:
    """The keys that may verify tokens; others are skipped, as the RFC requires. Raises ValueError."""
    try:
        listed = msgspec.json.decode(body, type=dict[str, Any]).get("keys")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        listed = None
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise ValueError("is not a JSON Web Key Set")
    keys: dict[str, VerifyingKey] = {}
    for one in listed:
        kid = one.get("kid") if isinstance(one, dict) else None
        key = _usable(one) if isinstance(kid, str) else None
        if not kid or key is None:
            continue
        if kid in keys:
            raise ValueError("names one kid twice")
        keys[kid] = key
    if not keys:
        raise ValueError("holds no usable key")
    return keys


def _usable(jwk: dict[str, Any]) -> VerifyingKey | None:
    """None for a key meant for another use (RFC 7517, 4.2 and 4.3), and for a weak one."""
    uses = jwk.get("key_ops", ["verify"])
    if jwk.get("use", "sig") != "sig" or not isinstance(uses, list) or "verify" not in uses:
        return None
    try:
        key = PyJWK(jwk)
    except Exception:  # noqa: BLE001 - PyJWT fails in many ways, and each means a key that is of no use here
        return None
    is_weak = jwk.get("kty") == "RSA" and (
        key.key.key_size < RSA_BITS_MIN or key.key.public_numbers().e < RSA_EXPONENT_MIN
    )
    return VerifyingKey(key.key, key.algorithm_name) if key.algorithm_name in ALGORITHMS and not is_weak else None
