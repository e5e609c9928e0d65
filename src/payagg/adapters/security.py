"""Bearer tokens and encryption at rest."""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

import jwt
from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from payagg.adapters.system import SystemClock
from payagg.application.ports.outside import Clock
from payagg.domain.business import SUBJECT_MAX
from payagg.domain.errors import ErrorCode, Refusal

TOKEN_MAX = 8192  # characters
LEEWAY = 30  # seconds of clock difference allowed for `exp`, `nbf` and `iat`
HMAC_BYTES_MIN = 32  # shorter keys can be guessed offline from one token
RSA_BITS_MIN = 2048
RSA_EXPONENT_MIN = 65537  # FIPS 186-5, A.1.1; smaller ones were forged where a verifier was lax
FITTING = {
    "EdDSA": (Ed25519PublicKey, Ed448PublicKey),
    "RS256": (RSAPublicKey,),
    "ES256": (EllipticCurvePublicKey,),
}
_NONCE_BYTES = 12
_VERSION = 1


class VerifyingKeys(Protocol):
    def find(self, kid: str) -> tuple[Any, str] | None:
        """The key of that name, and its one algorithm."""


class UnfitKey(ValueError):
    """A key that must not verify tokens; its words follow the name of the setting."""


class Tokens:
    """Reads admin and merchant JWTs, each key with exactly one algorithm.

    The PEM may be public or private; only a private one (or an HMAC key) can also issue. With `keys`, a token's `kid`
    chooses among them, and `key` is for tokens without one; otherwise `kid` is not looked at. Headers that bring or
    point to a key (`jku`, `x5u`, `jwk`) never are. `issuer` and `audience`, where given, must be the token's. A token
    that lives longer than `lifetime_max`, from its `iat` or, where it has none, from now, is refused. Now is what
    `clock` says: for a server the database's, as for every other rule.
    """

    def __init__(
        self,
        key: str | None,
        algorithm: str,
        *,
        keys: VerifyingKeys | None = None,
        issuer: str | None = None,
        audience: str | None = None,
        lifetime_max: timedelta | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises UnfitKey for a key that is weak or not of the algorithm."""
        self._algorithm = algorithm
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._seconds_max = lifetime_max.total_seconds() if lifetime_max is not None else None
        self._now = (clock or SystemClock()).now
        self._required = ["exp", "sub", *(["iss"] if issuer else []), *(["aud"] if audience else [])]
        self._signing: Any = None
        self._verifying: Any = None
        if key is None:
            return
        if algorithm == "HS256":
            self._signing = self._verifying = _shared_secret(key)
            return
        self._signing, self._verifying = _pair(key.encode(), algorithm)

    def read(self, token: str) -> dict[str, Any]:
        """The verified claims, `exp` and a text `sub` among them, times in whole seconds; raises UNAUTHORIZED for every
        other token."""
        if len(token) > TOKEN_MAX:
            raise Refusal(ErrorCode.UNAUTHORIZED)
        try:
            key, algorithm = self._key_of(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=self._issuer,
                audience=self._audience,
                # PyJWT would check these by the machine's clock.
                options={"require": self._required, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
            claims |= _whole_seconds(claims)
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            raise Refusal(ErrorCode.UNAUTHORIZED) from None
        subject = claims["sub"]
        if not self._is_timely(claims) or not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_MAX:
            raise Refusal(ErrorCode.UNAUTHORIZED)
        if self._seconds_max is not None and self._life(claims) > self._seconds_max:
            raise Refusal(ErrorCode.UNAUTHORIZED)
        # The subject is stored and logged, so NUL, line breaks and lone surrogates must not get that far.
        if not subject.isprintable():
            raise Refusal(ErrorCode.UNAUTHORIZED)
        return claims

    def _is_timely(self, claims: Mapping[str, Any]) -> bool:
        now = self._now().timestamp()
        begins = max((claims[name] for name in ("nbf", "iat") if name in claims), default=now)
        return bool(begins <= now + LEEWAY and claims["exp"] > now - LEEWAY)

    def _life(self, claims: Mapping[str, Any]) -> int:
        """Seconds from the issue of a verified token to its end, which may be too far for a float."""
        return int(claims["exp"] - (claims["iat"] if "iat" in claims else int(self._now().timestamp())))

    def _key_of(self, token: str) -> tuple[Any, str]:
        """Raises UNAUTHORIZED where no key of ours is the token's, and PyJWTError for what is no token."""
        kid = jwt.get_unverified_header(token).get("kid") if self._keys is not None else None
        if self._keys is None or kid is None:
            found = (self._verifying, self._algorithm) if self._verifying is not None else None
        else:
            found = self._keys.find(kid) if isinstance(kid, str) else None
        if found is None:
            raise Refusal(ErrorCode.UNAUTHORIZED)
        return found

    @property
    def can_issue(self) -> bool:
        return self._signing is not None

    def issue(self, claims: Mapping[str, Any], ttl: int, now: int) -> str:
        """A token for `ttl` seconds from `now` (Unix seconds); raises ValueError without a key that can sign."""
        if self._signing is None:
            raise ValueError("this key verifies tokens and cannot sign them")
        named = {"iss": self._issuer, "aud": self._audience, "jti": secrets.token_hex(16)}
        own = {name: value for name, value in named.items() if value is not None}
        return jwt.encode({**claims, **own, "iat": now, "exp": now + ttl}, self._signing, algorithm=self._algorithm)


def _whole_seconds(claims: Mapping[str, Any]) -> dict[str, int]:
    """The claims that are times. A JSON number is one, with or without a fraction (RFC 7519, 2); raises ValueError or
    OverflowError for what is none."""
    times = {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
    if not all(type(time) in (int, float) for time in times.values()):
        raise ValueError("not a time")
    return {name: int(time) for name, time in times.items()}


def _shared_secret(key: str) -> bytes:
    if "-----BEGIN" in key:
        raise UnfitKey("is a PEM key, and HS256 takes a shared secret: set PAYAGG_JWT_ALGORITHM to what the key is for")
    secret = key.encode()
    if len(secret) < HMAC_BYTES_MIN:
        raise UnfitKey(f"must be at least {HMAC_BYTES_MIN} bytes for HS256")
    if len(set(secret)) < 8:
        raise UnfitKey("is too regular to be a secret: `payagg keygen` makes good ones")
    return secret


def _pair(pem: bytes, algorithm: str) -> tuple[Any, Any]:
    """The private key, None where there is only a public one, and the public key."""
    private: Any = None
    try:
        if b"PRIVATE KEY" in pem:
            private = serialization.load_pem_private_key(pem, None)
        public: Any = private.public_key() if private is not None else serialization.load_pem_public_key(pem)
    except TypeError:
        raise UnfitKey("must not be locked by a password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise UnfitKey(f"must be a PEM key for {algorithm}") from None
    kind = type(public).__name__.strip("_").removesuffix("PublicKey")
    if not isinstance(public, FITTING[algorithm]):
        raise UnfitKey(f"must be a PEM key for {algorithm}, and this is one of {kind}")
    if isinstance(public, RSAPublicKey):
        if public.key_size < RSA_BITS_MIN:
            raise UnfitKey(f"must have at least {RSA_BITS_MIN} bits, and this RSA key has {public.key_size}")
        if (exponent := public.public_numbers().e) < RSA_EXPONENT_MIN:
            raise UnfitKey(f"must have an exponent of at least {RSA_EXPONENT_MIN}, and this RSA key has {exponent}")
    if isinstance(public, EllipticCurvePublicKey) and not isinstance(public.curve, SECP256R1):
        raise UnfitKey(f"must be on the curve secp256r1 (P-256) for {algorithm}, and this is on {public.curve.name}")
    return private, public


class AesVault:
    """AES-GCM under named keys: the first seals, all open. A blob is version, length of kid, kid, nonce, ciphertext;
    the context is associated data, so a blob opens only where it was sealed."""

    def __init__(self, keys: tuple[tuple[str, bytes], ...]) -> None:
        self._ciphers = {kid: AESGCM(key) for kid, key in keys}
        self._first = keys[0][0] if keys else None

    def seal(self, plain: bytes, context: str) -> bytes:
        if self._first is None:
            raise ValueError("no encryption key is configured")
        nonce = secrets.token_bytes(_NONCE_BYTES)
        kid = self._first.encode()
        ciphertext = self._ciphers[self._first].encrypt(nonce, plain, context.encode())
        return bytes([_VERSION, len(kid)]) + kid + nonce + ciphertext

    @property
    def sealing_key(self) -> str:
        if self._first is None:
            raise ValueError("no encryption key is configured")
        return self._first

    def key_id(self, sealed: bytes) -> str:
        if len(sealed) < 2 or sealed[0] != _VERSION:
            return "(unreadable)"
        return sealed[2 : 2 + sealed[1]].decode("ascii", "replace")

    def open(self, sealed: bytes, context: str) -> bytes:
        """Raises ValueError for a blob that was altered, sealed elsewhere or under a key that is gone."""
        if len(sealed) < 2 or sealed[0] != _VERSION:
            raise ValueError("not a sealed blob")
        rest = sealed[2 + sealed[1] :]
        kid = self.key_id(sealed)
        cipher = self._ciphers.get(kid)
        if cipher is None:
            raise ValueError("sealed under an encryption key that is not configured")
        try:
            return cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context.encode())
        except (InvalidTag, ValueError):
            raise ValueError("the sealed blob does not open here") from None
