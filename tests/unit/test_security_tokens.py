"""Forged and odd tokens (reliability.md A1 to A4): every one is the same UNAUTHORIZED."""

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

from payagg.adapters.security import TOKEN_MAX, Tokens
from payagg.domain.errors import ErrorCode, Refusal

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
KEYS = {"EdDSA": ED, "RS256": RSA, "ES256": EC}


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
    with pytest.raises(Refusal) as refused:
        tokens.read(token)
    assert refused.value.code is ErrorCode.UNAUTHORIZED
    assert refused.value.message == ErrorCode.UNAUTHORIZED.message
    assert refused.value.field is None


@pytest.mark.parametrize("algorithm", KEYS)
@pytest.mark.parametrize("form", [pem, public_pem])
def test_a_token_is_read_with_the_private_and_with_the_public_key(algorithm: str, form: Any) -> None:
    token = Tokens(pem(KEYS[algorithm]), algorithm).issue({"sub": "user-1", "type": "admin"}, 60, now())
    assert Tokens(form(KEYS[algorithm]), algorithm).read(token)["sub"] == "user-1"


def test_an_hmac_key_reads_what_it_issues() -> None:
    tokens = Tokens(SECRET, "HS256")
    assert tokens.read(tokens.issue({"sub": "user-1"}, 60, now()))["sub"] == "user-1"


def test_a_public_key_cannot_issue() -> None:
    with pytest.raises(ValueError, match="cannot sign"):
        Tokens(public_pem(ED), "EdDSA").issue({"sub": "x"}, 60, now())


def test_without_a_key_no_token_is_accepted() -> None:
    assert_unauthorized(Tokens(None, "EdDSA"), jwt.encode(claims(), ED, "EdDSA"))


PAYLOAD = json.dumps({"sub": "user-1", "type": "admin", "role": "SUPER_ADMIN", "exp": 9_999_999_999}).encode()
FORGED = {
    "alg none": by_hand({"alg": "none"}, PAYLOAD, None),
    "alg None": by_hand({"alg": "None"}, PAYLOAD, None),
    "alg nOnE": by_hand({"alg": "nOnE"}, PAYLOAD, None),
    "no alg": by_hand({"typ": "JWT"}, PAYLOAD, None),
    "alg null": by_hand({"alg": None}, PAYLOAD, None),
    "alg a list": by_hand({"alg": ["EdDSA"]}, PAYLOAD, None),
    "empty signature": by_hand({"alg": "EdDSA"}, PAYLOAD, None),
    "public key as hmac secret": by_hand({"alg": "HS256"}, PAYLOAD, public_pem(ED).encode()),
    "empty hmac secret": by_hand({"alg": "HS256"}, PAYLOAD, b"x"),
    "another key": jwt.encode(claims(), ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
    "another family": jwt.encode(claims(), RSA, "RS256"),
    "unknown crit": ed_signed(PAYLOAD, {"crit": ["b64x"], "b64x": True}),
    "two parts": "a.b",
    "four parts": "a.b.c.d",
    "empty": "",
    "dots": "..",
    "not base64": "!!!.???.###",
    "not ascii": "é.é.é",
    "payload no object": ed_signed(b'"text"'),
    "payload no json": ed_signed(b"{"),
    "payload invalid utf-8": ed_signed(b'{"sub":"\xff"}'),
    "payload deep": ed_signed(b"[" * 3000 + b"]" * 3000),
    "overlong": "a" * (TOKEN_MAX + 1),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_is_unauthorized(name: str) -> None:
    assert_unauthorized(Tokens(public_pem(ED), "EdDSA"), FORGED[name])


BAD_CLAIMS = {
    "no exp": {"sub": "u"},
    "exp in the past": {"sub": "u", "exp": 1},
    "exp text": {"sub": "u", "exp": "9999999999"},
    "exp float": {"sub": "u", "exp": 9999999999.5},
    "exp true": {"sub": "u", "exp": True},
    "exp null": {"sub": "u", "exp": None},
    "exp infinite": {"sub": "u", "exp": float("inf")},
    "exp nan": {"sub": "u", "exp": float("nan")},
    "exp a list": {"sub": "u", "exp": [9999999999]},
    "nbf in the future": {"sub": "u", "exp": 9999999999, "nbf": 9999999998},
    "iat in the future": {"sub": "u", "exp": 9999999999, "iat": 9999999998},
    "no sub": {"exp": 9999999999},
    "sub null": {"sub": None, "exp": 9999999999},
    "sub number": {"sub": 7, "exp": 9999999999},
    "sub object": {"sub": {"$ne": ""}, "exp": 9999999999},
    "sub empty": {"sub": "", "exp": 9999999999},
    "sub with NUL": {"sub": "a\x00b", "exp": 9999999999},
    "sub with a line break": {"sub": "a\nb", "exp": 9999999999},
    "sub with a lone surrogate": {"sub": "a\ud800", "exp": 9999999999},
    "sub overlong": {"sub": "a" * 256, "exp": 9999999999},
    "for another audience": {"sub": "u", "exp": 9999999999, "aud": "somewhere-else"},
}


@pytest.mark.parametrize("name", BAD_CLAIMS)
def test_a_well_signed_token_with_bad_claims_is_unauthorized(name: str) -> None:
    assert_unauthorized(Tokens(public_pem(ED), "EdDSA"), ed_signed(json.dumps(BAD_CLAIMS[name]).encode()))


def test_the_claims_that_the_bad_ones_vary_are_accepted() -> None:
    token = ed_signed(json.dumps({"sub": "u", "exp": 9999999999}).encode())
    assert Tokens(public_pem(ED), "EdDSA").read(token)["sub"] == "u"


def test_headers_that_name_a_key_are_not_followed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/keys"
        own = ed25519.Ed25519PrivateKey.generate()
        jwk = {"kty": "OKP", "crv": "Ed25519", "x": b64(own.public_key().public_bytes_raw())}
        for header in (
            {"jku": url},
            {"x5u": url},
            {"jwk": jwk},
            {"kid": "../../dev/null"},
            {"kid": "' OR 1=1 --"},
            {"kid": url},
        ):
            token = jwt.encode(claims(), own, "EdDSA", headers=header)
            assert_unauthorized(Tokens(public_pem(ED), "EdDSA"), token)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_kid_beside_a_good_signature_is_ignored() -> None:
    token = jwt.encode(claims(), ED, "EdDSA", headers={"kid": "whatever"})
    assert Tokens(public_pem(ED), "EdDSA").read(token)["sub"] == "user-1"


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("issued", "lives", "is_read"),
    [
        (0, 3600, True),
        (0, 3601, False),
        (-7200, 7260, False),
        (-3000, 3600, True),
        (None, 3590, True),
        (None, 3700, False),
    ],
)
def test_a_token_that_lives_too_long_is_unauthorized(issued: int | None, lives: int, is_read: bool) -> None:
    """`issued` is in seconds from now, None = it does not say; the life of such a token counts from now."""
    start = now() + (issued or 0)
    payload = {"sub": "u", "exp": start + lives} | ({} if issued is None else {"iat": start})
    tokens = Tokens(SECRET, "HS256", lifetime_max=HOUR)
    token = jwt.encode(payload, SECRET, "HS256")
    if is_read:
        assert tokens.read(token)["sub"] == "u"
    else:
        assert_unauthorized(tokens, token)


def test_a_token_names_itself_so_that_it_can_be_revoked() -> None:
    tokens = Tokens(SECRET, "HS256")
    ids = {tokens.read(tokens.issue({"sub": "u"}, 60, now()))["jti"] for _ in range(2)}
    assert len(ids) == 2
