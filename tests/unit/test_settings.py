"""Settings that decide who may come in: a wrong one is one line that names it."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from payagg.adapters.security import AesVault, Tokens
from payagg.entrypoints.dev.secrets import with_dev_secrets
from payagg.entrypoints.settings import SettingsError, read_settings
from payagg.testing.clocks import SeededEntropy
from tests.unit.test_security_tokens import ED, pem, public_pem

ENTROPY = SeededEntropy()
KEY = "k1:" + "MTEx" * 10 + "MTE="


def test_origins_are_named_as_browsers_send_them() -> None:
    good = "https://shop.example, http://localhost:3000,https://[::1]:8443"
    assert read_settings({"PAYAGG_CORS_ORIGINS": good}).cors_origins == (
        "https://shop.example",
        "http://localhost:3000",
        "https://[::1]:8443",
    )
    assert read_settings({}).cors_origins == ()
    for bad in ("*", "null", "shop.example", "https://shop.example/", "https://Shop.example", "https://*.example",
                "https://shop.example:443", "ftp://shop.example", "https://a@shop.example", "https://"):  # fmt: skip
        with pytest.raises(SettingsError, match="PAYAGG_CORS_ORIGINS"):
            read_settings({"PAYAGG_CORS_ORIGINS": bad})


def test_name_servers_are_addresses() -> None:
    given = read_settings({"PAYAGG_NAME_SERVERS": "9.9.9.9, [2620:fe::fe],127.0.0.1:5353,[::1]:5353"}).name_servers
    assert given == (("9.9.9.9", 53), ("2620:fe::fe", 53), ("127.0.0.1", 5353), ("::1", 5353))
    assert read_settings({}).name_servers == ()
    for bad in ("dns.example", "9.9.9", "9.9.9.9:0", "9.9.9.9:65536", "2620:fe::fe", "[9.9.9.9", "https://9.9.9.9"):
        with pytest.raises(SettingsError, match="PAYAGG_NAME_SERVERS"):
            read_settings({"PAYAGG_NAME_SERVERS": bad})


def test_dev_uses_the_keys_it_is_given_and_makes_the_rest(tmp_path: Path) -> None:
    own = with_dev_secrets(read_settings({"PAYAGG_STATE_DIR": str(tmp_path)}, dev=True), ENTROPY)
    sealed = AesVault(own.encryption_keys).seal(b"before", "x")
    environ = {"PAYAGG_STATE_DIR": str(tmp_path), "PAYAGG_JWT_KEY": pem(ED), "PAYAGG_ENCRYPTION_KEYS": KEY}
    given = with_dev_secrets(read_settings(environ, dev=True), ENTROPY)
    assert given.jwt_key == pem(ED)
    assert [kid for kid, _ in given.encryption_keys] == ["k1", "dev"]
    # What dev sealed before the setting was made still opens.
    assert AesVault(given.encryption_keys).open(sealed, "x") == b"before"
    hmac = environ | {"PAYAGG_JWT_KEY": "s" * 32, "PAYAGG_JWT_ALGORITHM": "HS256"}
    shared = with_dev_secrets(read_settings(hmac, dev=True), ENTROPY)
    token = Tokens("s" * 32, "HS256").issue({"sub": "u"}, 60, 4_000_000_000)
    assert (shared.jwt_algorithm, token.count(".")) == ("HS256", 2)
    assert with_dev_secrets(read_settings({"PAYAGG_STATE_DIR": str(tmp_path)}, dev=True), ENTROPY) == own


@pytest.mark.parametrize("key", [public_pem(Ed25519PrivateKey.generate()), "no key at all"])
def test_dev_refuses_a_key_that_cannot_sign(tmp_path: Path, key: str) -> None:
    settings = read_settings({"PAYAGG_STATE_DIR": str(tmp_path), "PAYAGG_JWT_KEY": key}, dev=True)
    with pytest.raises(SettingsError, match="PAYAGG_JWT_KEY must be a"):
        with_dev_secrets(settings, ENTROPY)
