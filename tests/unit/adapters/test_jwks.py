"""Several keys by `kid`, from a file or a URL of this machine: each with its own algorithm and nobody else's."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from payagg.adapters.jwks import KeySet, parse_keys
from payagg.adapters.security import Tokens
from payagg.entrypoints.bootstrap import _load
from payagg.entrypoints.settings import SettingsError, read_settings
from tests.unit.adapters.test_security import EC, ED, RSA, SECRET, assert_unauthorized, by_hand, claims, public_pem

OTHER = ed25519.Ed25519PrivateKey.generate()


def jwk(private: Any, **more: Any) -> dict[str, Any]:
    writer = {ed25519.Ed25519PrivateKey: OKPAlgorithm, rsa.RSAPrivateKey: RSAAlgorithm}
    kind = next((write for cls, write in writer.items() if isinstance(private, cls)), ECAlgorithm)
    return dict(json.loads(kind.to_jwk(private.public_key()))) | more  # type: ignore[attr-defined]


SET = {"keys": [jwk(ED, kid="ed"), jwk(EC, kid="ec"), jwk(RSA, kid="rsa")]}


@pytest.fixture
async def keys(tmp_path: Path) -> KeySet:
    path = tmp_path / "keys.json"
    await asyncio.to_thread(path.write_text, json.dumps(SET))
    loaded = KeySet(str(path))
    await loaded.load()
    return loaded


def token(key: Any, algorithm: str, kid: Any = None, **more: Any) -> str:
    return jwt.encode(claims(**more), key, algorithm, headers={"kid": kid} if kid is not None else None)


@pytest.mark.rule("access.11")
async def test_each_key_reads_its_own_tokens_and_nothing_else(keys: KeySet) -> None:
    tokens = Tokens(None, "EdDSA", keys=keys)
    for kid, key, algorithm in (("ed", ED, "EdDSA"), ("ec", EC, "ES256"), ("rsa", RSA, "RS256")):
        assert tokens.read(token(key, algorithm, kid))["sub"] == "user-1"
    payload = json.dumps(claims()).encode()
    for forged in (
        token(ED, "EdDSA"),
        token(ED, "EdDSA", "ec"),
        token(OTHER, "EdDSA", "ed"),
        token(RSA, "PS256", "rsa"),
        by_hand({"alg": "HS256", "kid": "rsa"}, payload, public_pem(RSA).encode()),
        by_hand({"alg": "none", "kid": "ed"}, payload, None),
        jwt.encode(claims(), OTHER, "EdDSA", headers={"kid": "own", "jwk": jwk(OTHER, kid="own")}),
    ):
        assert_unauthorized(tokens, forged)
    for unknown in ("new", "../../dev/null", "' OR 1=1 --", "", 7, ["ed"], {"ed": 1}):
        assert_unauthorized(tokens, by_hand({"alg": "EdDSA", "kid": unknown}, payload, b"x"))


async def test_beside_a_set_the_single_key_is_for_tokens_without_a_kid(keys: KeySet) -> None:
    tokens = Tokens(SECRET, "HS256", keys=keys)
    assert tokens.read(tokens.issue({"sub": "user-1"}, 60, int(time.time())))["sub"] == "user-1"
    assert_unauthorized(tokens, token(SECRET, "HS256", "other"))
    assert_unauthorized(tokens, token(SECRET, "HS256", "ed"))


@pytest.mark.rule("access.15")
def test_issuer_and_audience_are_checked_when_set() -> None:
    tokens = Tokens(SECRET, "HS256", issuer="https://id.example", audience="payagg")
    good = {"iss": "https://id.example", "aud": "payagg"}
    assert tokens.read(token(SECRET, "HS256", **good))["sub"] == "user-1"
    assert tokens.read(token(SECRET, "HS256", **good | {"aud": ["other", "payagg"]}))["sub"] == "user-1"
    assert tokens.read(tokens.issue({"sub": "user-1"}, 60, int(time.time())))["aud"] == "payagg"
    wrong: list[dict[str, Any]] = [{}, {"iss": good["iss"]}, {"aud": "payagg"}]
    wrong += [good | {"iss": issuer} for issuer in ("https://evil.example", ["https://id.example"])]
    wrong += [good | {"aud": audience} for audience in ("other", ["payagg2"])]
    for one in wrong:
        payload = json.dumps(claims(**one)).encode()
        assert_unauthorized(tokens, by_hand({"alg": "HS256"}, payload, SECRET.encode()))


def test_keys_that_cannot_verify_here_are_passed_over() -> None:
    weak, small = rsa.generate_private_key(65537, 1024), rsa.generate_private_key(3, 2048)
    listed: list[Any] = [jwk(ED, kid="ed"), jwk(OTHER), jwk(OTHER, kid=7), jwk(OTHER, kid=""), jwk(weak, kid="weak")]
    listed += [jwk(RSA, kid="pss", alg="PS256"), jwk(RSA, kid="none", alg="none"), jwk(RSA, kid="enc", use="enc")]
    listed += [jwk(RSA, kid="wraps", key_ops=["wrapKey"]), jwk(RSA, kid="odd", key_ops="verify")]
    listed += [
        jwk(small, kid="small"),
        {"kty": "oct", "k": "A" * 43, "kid": "shared"},
        {"kty": "oct", "kid": "half"},
        {"kty": "new", "kid": "x"},
    ]
    listed += [{"kid": "y"}, "text", None]
    assert set(parse_keys(json.dumps({"keys": listed}).encode())) == {"ed"}


def test_what_is_no_key_set_is_refused_whole() -> None:
    sets = [jwk(ED, kid="a"), jwk(OTHER, kid="a")], [jwk(ED, kid=str(n)) for n in range(101)]
    forms = [b"", b"null", b"[]", b"{", b"{}", b'{"keys": {}}', b'{"keys": []}', b"\xff", b"[" * 9_000]
    for told in (*forms, *(json.dumps({"keys": keys}).encode() for keys in sets)):
        with pytest.raises(ValueError, match=r"[Kk](?:ey|id)"):
            parse_keys(told)


class Issuer:
    """A server on loopback that gives out what it is told to."""

    def __init__(self) -> None:
        self.body = json.dumps(SET).encode()
        self.head = "200 OK"
        self.asked = 0
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        writer.write(f"HTTP/1.1 {self.head}\r\nContent-Length: {len(self.body)}\r\n\r\n".encode() + self.body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def an_issuer() -> AsyncIterator[Issuer]:
    issuer = Issuer()
    async with await asyncio.start_server(issuer.answer, "127.0.0.1", 0) as server:
        issuer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
        yield issuer


async def test_a_new_key_is_fetched_when_a_token_names_it_and_not_at_each_token() -> None:
    async with an_issuer() as issuer:
        keys = KeySet(issuer.url)
        await keys.load()
        tokens = Tokens(None, "EdDSA", keys=keys)
        keeping = asyncio.create_task(keys.keep(pause=0.2))
        issuer.body = json.dumps({"keys": [jwk(OTHER, kid="next")]}).encode()
        fresh = token(OTHER, "EdDSA", "next")
        for _ in range(50):
            assert_unauthorized(tokens, fresh)
        async with asyncio.timeout(30):
            while keys.find("next") is None:  # noqa: ASYNC110 - nobody is told of a loaded set
                await asyncio.sleep(0.01)
        assert tokens.read(fresh)["sub"] == "user-1"
        assert_unauthorized(tokens, token(ED, "EdDSA", "ed"))  # which the issuer has withdrawn
        assert issuer.asked <= 3
        keeping.cancel()


@pytest.mark.parametrize(
    ("head", "body"),
    [("500 Oops", b"{}"), ("404 Not Found", b"{}"), ("302 Found\r\nLocation: http://127.0.0.1:1/", b""),
     ("200 OK", b"{}"), ("200 OK", b" " * 300_000)],
)  # fmt: skip
async def test_a_set_that_cannot_be_loaded_leaves_the_keys_as_they_were(head: str, body: bytes) -> None:
    async with an_issuer() as issuer:
        keys = KeySet(issuer.url)
        await keys.load()
        issuer.head, issuer.body = head, body
        with pytest.raises(ValueError, match=r"was answered|was not answered|is not"):
            await keys.load()
        assert keys.find("ed") is not None


async def test_a_key_set_is_named_by_a_file_or_a_safe_url_whose_issuer_may_be_away(tmp_path: Path) -> None:
    for good in ("keys.json", "/etc/keys.json", "https://id.example/jwks", "http://127.0.0.1:9/k", "http://[::1]:9/k"):
        assert read_settings({"PAYAGG_JWT_JWKS": good}).jwt_jwks == good
    for bad in ("http://id.example/jwks", "ftp://id.example/", "file:///etc/keys.json", "https://a@id.example/"):
        with pytest.raises(SettingsError, match="PAYAGG_JWT_JWKS"):
            read_settings({"PAYAGG_JWT_JWKS": bad})
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(SettingsError, match="PAYAGG_JWT_JWKS cannot be read"):
            await _load(KeySet(str(path)))
    await _load(KeySet("http://127.0.0.1:1/keys"))
