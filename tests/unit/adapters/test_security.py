"""Forged and odd tokens (reliability.md A1 to A4): every one is the same UNAUTHORIZED. And encryption at rest (E7):
bound to its place, readable after the key was rotated."""

import base64
import hashlib
import hmac
import json
import socket
import time
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from payagg_testing.clocks import START, ManualClock

from payagg.adapters.security import TOKEN_MAX, AesVault, Tokens
from payagg.domain.errors import ErrorCode
from tests.support.refusals import refusal_of

SECRET = "0123456789abcdef0123456789abcdef"


def pem(private: Any) -> str:
    form = serialization.PrivateFormat.PKCS8
    return str(private.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode())


def public_pem(private: Any) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return str(private.public_key().public_bytes(serialization.Encoding.PEM, form).decode())


ED = ed25519.Ed25519PrivateKey.generate()
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
KEYS: dict[str, Any] = {"EdDSA": ED, "RS256": RSA, "ES256": EC}


def now() -> int:
    return int(time.time())


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims(**more: Any) -> dict[str, Any]:
    return {"sub": "user-1", "type": "merchant", "emailVerified": True, "exp": now() + 600} | more


def by_hand(header: dict[str, Any], payload: bytes, key: bytes | None) -> str:
    """A token as an attacker writes one; `key` None leaves the signature empty."""
    signed = f"{b64(json.dumps(header).encode())}.{b64(payload)}"
    signature = hmac.new(key, signed.encode(), hashlib.sha256).digest() if key else b""
    return f"{signed}.{b64(signature)}"


def ed_signed(payload: bytes, header: dict[str, Any] | None = None) -> str:
    head = {"alg": "EdDSA", "typ": "JWT"} | (header or {})
    signed = f"{b64(json.dumps(head).encode())}.{b64(payload)}"
    return f"{signed}.{b64(ED.sign(signed.encode()))}"


def assert_unauthorized(tokens: Tokens, token: str) -> None:
    refused, code = refusal_of(tokens.read, token), ErrorCode.UNAUTHORIZED
    assert (refused.code, refused.field, refused.message) == (code, None, code.message)


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_token_is_read_with_the_private_and_with_the_public_key(algorithm: str) -> None:
    issuer = Tokens(pem(KEYS[algorithm]), algorithm)
    one, other = (issuer.issue({"sub": "user-1", "type": "admin"}, 60, now()) for _ in range(2))
    for tokens in (issuer, Tokens(public_pem(KEYS[algorithm]), algorithm)):
        assert tokens.read(one)["sub"] == "user-1"
        assert tokens.read(one)["jti"] != tokens.read(other)["jti"], "each can be revoked by its name"


def test_a_public_key_cannot_issue_and_without_a_key_no_token_is_accepted() -> None:
    with pytest.raises(ValueError, match="cannot sign"):
        Tokens(public_pem(ED), "EdDSA").issue({"sub": "x"}, 60, now())
    assert_unauthorized(Tokens(None, "EdDSA"), jwt.encode(claims(), ED, "EdDSA"))


PAYLOAD = json.dumps({"sub": "user-1", "type": "admin", "role": "SUPER_ADMIN", "exp": 9_999_999_999}).encode()
ALGORITHMS = ["none", "None", "nOnE", None, ["EdDSA"], "EdDSA"]
FORGED = {
    **{f"alg {alg}, nothing signed": by_hand({"alg": alg}, PAYLOAD, None) for alg in ALGORITHMS},
    "no alg": by_hand({"typ": "JWT"}, PAYLOAD, None),
    "public key as hmac secret": by_hand({"alg": "HS256"}, PAYLOAD, public_pem(ED).encode()),
    "empty hmac secret": by_hand({"alg": "HS256"}, PAYLOAD, b"x"),
    "another key": jwt.encode(claims(), ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
    "another family": jwt.encode(claims(), RSA, "RS256"),
    "unknown crit": ed_signed(PAYLOAD, {"crit": ["b64x"], "b64x": True}),
    **{f"the text {text}": text for text in ("a.b", "a.b.c.d", "", "..", "!!!.???.###", "é.é.é")},
    "overlong": "a" * (TOKEN_MAX + 1),
    **{f"payload {payload!r}": ed_signed(payload) for payload in (b'"text"', b"{", b'{"sub":"\xff"}')},
    "payload deep": ed_signed(b"[" * 3000 + b"]" * 3000),
}


@pytest.mark.rule("access.19")
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_is_unauthorized(name: str) -> None:
    assert_unauthorized(Tokens(public_pem(ED), "EdDSA"), FORGED[name])


ABSENT = "not there"


# What differs from good claims: no time of its end, no name, one for later or for somebody else.
BAD_CLAIMS: list[dict[str, Any]] = [
    *({"exp": exp} for exp in (ABSENT, 1, "9999999999", True, None, float("inf"), float("nan"), [2**33])),
    *({"sub": sub} for sub in (ABSENT, None, 7, {"$ne": ""}, "", "a\x00b", "a\nb", "a\ud800", "a" * 256)),
    *({time: when} for time in ("nbf", "iat") for when in (9999999998, "1", True, None, float("nan"))),
    {"aud": "somewhere-else"},
]


@pytest.mark.parametrize("bad", BAD_CLAIMS, ids=ascii)
def test_a_well_signed_token_with_bad_claims_is_unauthorized(bad: dict[str, Any]) -> None:
    tokens, good = Tokens(public_pem(ED), "EdDSA"), {"sub": "u", "exp": 9999999999}
    assert tokens.read(ed_signed(json.dumps(good).encode()))["sub"] == "u"
    payload = {field: value for field, value in (good | bad).items() if value is not ABSENT}
    assert_unauthorized(tokens, ed_signed(json.dumps(payload).encode()))


def test_headers_that_name_a_key_are_not_followed() -> None:
    tokens = Tokens(public_pem(ED), "EdDSA")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/keys"
        own = ed25519.Ed25519PrivateKey.generate()
        jwk = {"kty": "OKP", "crv": "Ed25519", "x": b64(own.public_key().public_bytes_raw())}
        for header in ({"jku": url}, {"x5u": url}, {"jwk": jwk}, {"kid": "../../dev/null"}, {"kid": url}):
            assert_unauthorized(tokens, jwt.encode(claims(), own, "EdDSA", headers=header))
        with pytest.raises(BlockingIOError):  # nobody has called
            listener.accept()
    beside = jwt.encode(claims(), ED, "EdDSA", headers={"kid": "whatever"})
    assert tokens.read(beside)["sub"] == "user-1"


# Far enough from the edge that a slow machine does not cross it.
@pytest.mark.rule("access.6", "access.13")
@pytest.mark.parametrize(
    ("times", "is_read"),
    [
        # Clocks may be thirty seconds apart.
        *(({"exp": -20}, True), ({"exp": -31}, False), ({"nbf": 25}, True), ({"nbf": 60}, False)),
        *(({"iat": 25}, True), ({"iat": 60}, False)),
        # A token lives for an hour at most, from now where it does not say when it was issued.
        *(({"iat": 0, "exp": 3600}, True), ({"iat": 0, "exp": 3601}, False), ({"iat": -7200, "exp": 60}, False)),
        *(({"iat": -3000, "exp": 600}, True), ({"exp": 3590}, True), ({"exp": 3700}, False)),
        *(({"iat": 0, "exp": 10**400}, False), ({"exp": 10**400}, False)),
        # A fraction of a second is a time, too (RFC 7519, 2).
        *(({"iat": -0.5, "nbf": -0.5, "exp": 60.5}, True), ({"exp": -31.5}, False), ({"iat": 60.5}, False)),
    ],
    ids=lambda one: str(one)[:30],
)
def test_a_token_counts_within_its_times(times: dict[str, float], is_read: bool) -> None:
    """In seconds from now."""
    start = now()
    token = jwt.encode(claims(**{claim: start + seconds for claim, seconds in times.items()}), SECRET, "HS256")
    tokens = Tokens(SECRET, "HS256", lifetime_max=timedelta(hours=1))
    if is_read:
        assert tokens.read(token)["sub"] == "user-1"
    else:
        assert_unauthorized(tokens, token)


def test_a_token_ends_by_the_clock_of_the_rules_and_not_by_the_machines() -> None:
    tokens, token = Tokens(SECRET, "HS256", clock=ManualClock()), {"sub": "u", "exp": int(START.timestamp()) + 60}
    assert tokens.read(jwt.encode(token, SECRET, "HS256"))["sub"] == "u"
    assert_unauthorized(tokens, jwt.encode(claims(nbf=now()), SECRET, "HS256"))


OLD = ("k1", b"1" * 32)
NEW = ("k2", b"2" * 32)


def test_a_ciphertext_swapped_to_another_gateway_does_not_open() -> None:
    vault = AesVault((OLD,))
    blob = vault.seal(b"secret", "gateway-1")
    assert vault.open(blob, "gateway-1") == b"secret"
    with pytest.raises(ValueError, match="does not open here"):
        vault.open(blob, "gateway-2")
    with pytest.raises(ValueError, match="does not open"):  # nor under the same kid with other bytes
        AesVault((("k1", b"9" * 32),)).open(blob, "gateway-1")
    for at in range(len(blob)):
        for altered in (blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :], blob[:at]):
            with pytest.raises(ValueError):  # noqa: PT011 - which of the three it is depends on the byte
                vault.open(altered, "gateway-1")


@pytest.mark.rule("gateways.13")
def test_the_first_key_seals_and_every_key_opens() -> None:
    before = AesVault((OLD,)).seal(b"secret", "g")
    rotated = AesVault((NEW, OLD))
    assert rotated.open(before, "g") == b"secret"
    after = rotated.seal(b"secret", "g")
    assert AesVault((NEW,)).open(after, "g") == b"secret"
    with pytest.raises(ValueError, match="not configured"):
        AesVault((OLD,)).open(after, "g")


def test_two_seals_of_one_plaintext_differ_and_do_not_show_it() -> None:
    vault = AesVault((OLD,))
    first, second = vault.seal(b"secret", "g"), vault.seal(b"secret", "g")
    assert first != second
    assert b"secret" not in first
    with pytest.raises(ValueError, match="no encryption key"):
        AesVault(()).seal(b"secret", "g")
