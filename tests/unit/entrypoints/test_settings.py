"""Settings that decide who may come in: a wrong one is one line that names it."""

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from payagg_testing.clocks import SeededEntropy

from payagg.adapters.security import AesVault, Tokens
from payagg.entrypoints.bootstrap import check_for_serving
from payagg.entrypoints.dev.secrets import with_dev_secrets
from payagg.entrypoints.settings import SettingsError, read_settings
from tests.unit.adapters.test_security import ED, RSA, SECRET, pem, public_pem

ENTROPY = SeededEntropy()
KEY = "k1:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="


def test_origins_are_named_as_browsers_send_them() -> None:
    good = "https://shop.example, http://localhost:3000,https://[::1]:8443"
    named = ("https://shop.example", "http://localhost:3000", "https://[::1]:8443")
    assert read_settings({"PAYAGG_CORS_ORIGINS": good}).cors_origins == named
    assert read_settings({}).cors_origins == ()
    for bad in (
        *("*", "null", "shop.example", "https://shop.example/", "https://Shop.example", "https://*.example"),
        *("https://shop.example:443", "ftp://shop.example", "https://a@shop.example", "https://"),
    ):
        assert "PAYAGG_CORS_ORIGINS" in faults({"PAYAGG_CORS_ORIGINS": bad})[0]


def faults(environ: dict[str, str]) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        read_settings(environ)
    return str(refused.value).splitlines()


@pytest.mark.rule("access.14")
def test_every_fault_is_a_line_of_its_own_that_names_the_setting() -> None:
    told = faults({
        "PAYAGG_POOLSIZE": "3", "PAYAGG_ZEBRA": "1", "PAYAGG_PORT": "tcp://10.0.0.1:8000", "PAYAGG_PGBOUNCER": "yes",
        "PAYAGG_POOL_SIZE": "0", "PAYAGG_CHECKOUT_TTL": "an hour", "PAYAGG_REFERENCE_PREFIX": "pay", "OTHER": "x",
    })  # fmt: skip
    assert told == [
        "PAYAGG_POOLSIZE is not a setting: did you mean PAYAGG_POOL_SIZE?",
        "PAYAGG_PORT is Kubernetes' own for a Service of this name: set enableServiceLinks to false for the pod.",
        "PAYAGG_ZEBRA is not a setting; docs/operating/settings.md lists them.",
        "PAYAGG_REFERENCE_PREFIX must be three letters A-Z.",
        "PAYAGG_CHECKOUT_TTL must be a whole number of seconds from 1 to 2592000.",
        "PAYAGG_POOL_SIZE must be a whole number from 1 to 1000.",
        "PAYAGG_PGBOUNCER must be true or false.",
    ]


def test_a_switch_says_so_in_the_usual_words() -> None:
    for word in ("true", "True", "1", "false", "0"):
        assert read_settings({"PAYAGG_PGBOUNCER": word}).pgbouncer is (word in ("true", "True", "1"))


def test_bounds_are_held_at_both_ends() -> None:
    for name, least, most in (("POOL_SIZE", 1, 1_000), ("TOKEN_LIFETIME_MAX", 1, 7_776_000)):
        for good in (least, most):
            read_settings({f"PAYAGG_{name}": str(good)})
        for bad in (least - 1, most + 1, "1_0", "1.5", "nan", "-1", "0x10"):
            assert len(faults({f"PAYAGG_{name}": str(bad)})) == 1


def test_a_setting_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"  {KEY}\n")
    assert read_settings({"PAYAGG_ENCRYPTION_KEYS_FILE": str(file)}).encryption_keys[0][0] == "k1"
    both = faults({"PAYAGG_ENCRYPTION_KEYS_FILE": str(file), "PAYAGG_ENCRYPTION_KEYS": KEY})
    assert both == ["PAYAGG_ENCRYPTION_KEYS and PAYAGG_ENCRYPTION_KEYS_FILE are both set: leave one of them out."]
    assert "cannot be read" in faults({"PAYAGG_JWT_KEY_FILE": str(tmp_path / "absent")})[0]
    (tmp_path / "empty").write_text("\n")
    assert "is empty" in faults({"PAYAGG_JWT_KEY_FILE": str(tmp_path / "empty")})[0]
    (tmp_path / "bytes").write_bytes(b"\xff")
    assert "is not text" in faults({"PAYAGG_METRICS_TOKEN_FILE": str(tmp_path / "bytes")})[0]


def test_a_pem_on_one_line_is_a_pem() -> None:
    lines = pem(ED).strip()
    for written in (lines, lines.replace("\n", "\\n"), "'" + lines.replace("\n", "\\n") + "'"):
        assert read_settings({"PAYAGG_JWT_KEY": written}).jwt_key == lines


def test_a_regular_encryption_key_is_refused_and_no_fault_repeats_a_secret() -> None:
    for key in (bytes(32), b"k" * 32, b"0123456" * 4 + b"0123"):
        weak = base64.b64encode(key).decode()
        (told,) = faults({"PAYAGG_ENCRYPTION_KEYS": f"good:{KEY.partition(':')[2]},weak:{weak}"})
        assert (told.startswith("PAYAGG_ENCRYPTION_KEYS has a weak key under weak"), weak in told) == (True, False)
    word = "hush-hush-hush"
    assert faults({"PAYAGG_JWT_KEY": "\udcff" * 40}) == [
        "PAYAGG_JWT_KEY must be a PEM key, or 32 bytes or more for HS256.",
    ]
    three = faults({f"PAYAGG_{name}": f"{word}\n" for name in ("DATABASE_URL", "ENCRYPTION_KEYS", "METRICS_TOKEN")})
    assert (len(three), word in "".join(three)) == (3, False)
    assert "hidden" not in repr(read_settings({"PAYAGG_DATABASE_URL": "postgresql://u:hidden@h/d"}))


RSA_E3 = rsa.generate_private_key(3, 2048)
RSA_1024 = rsa.generate_private_key(65537, 1024)
LOCK = serialization.BestAvailableEncryption(b"word")
LOCKED = ED.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, LOCK).decode()
P384 = ec.generate_private_key(ec.SECP384R1())


@pytest.mark.rule("access.14")
@pytest.mark.parametrize(
    ("algorithm", "key", "words"),
    [
        ("RS256", pem(RSA_1024), "at least 2048 bits, and this RSA key has 1024"),
        ("RS256", public_pem(RSA_1024), "at least 2048 bits"),
        ("RS256", public_pem(RSA_E3), "an exponent of at least 65537, and this RSA key has 3"),
        ("EdDSA", pem(RSA), "a PEM key for EdDSA, and this is one of RSA"),
        ("RS256", pem(ED), "a PEM key for RS256, and this is one of Ed25519"),
        ("ES256", pem(P384), "the curve secp256r1 (P-256) for ES256, and this is on secp384r1"),
        ("HS256", pem(ED), "is a PEM key, and HS256 takes a shared secret"),
        ("HS256", public_pem(RSA), "is a PEM key"),
        ("HS256", "short", "at least 32 bytes"),
        ("HS256", "a" * 40, "too regular"),
        ("EdDSA", SECRET, "must be a PEM key for EdDSA."),
        ("EdDSA", LOCKED, "must not be locked by a password"),
        ("EdDSA", pem(ED).replace("M", "!", 1), "must be a PEM key for EdDSA."),
    ],
)
def test_a_server_refuses_a_token_key_that_is_weak_or_not_of_its_algorithm(
    algorithm: str, key: str, words: str
) -> None:
    environ = {"PAYAGG_JWT_KEY": key, "PAYAGG_JWT_ALGORITHM": algorithm, "PAYAGG_ENCRYPTION_KEYS": KEY}
    with pytest.raises(SettingsError, match=r"^PAYAGG_JWT_KEY ") as refused:
        check_for_serving(read_settings(environ))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_server_without_secrets_is_told_of_all_and_where_they_come_from() -> None:
    with pytest.raises(SettingsError) as refused:
        check_for_serving(read_settings({}))
    first, second = str(refused.value).splitlines()
    assert first.startswith("PAYAGG_JWT_KEY or PAYAGG_JWT_JWKS is required")
    assert second.startswith("PAYAGG_ENCRYPTION_KEYS is required")
    assert first.endswith(" `payagg keygen` prints a new one.")


def test_payers_links_are_https_wherever_the_public_can_follow_them() -> None:
    environ = {"PAYAGG_JWT_KEY": pem(ED), "PAYAGG_ENCRYPTION_KEYS": KEY}
    for inside in ("127.0.0.1:8000", "10.1.2.3", "payagg:8000", "pay.internal", "localhost:8000"):
        check_for_serving(read_settings({**environ, "PAYAGG_BASE_URL": f"http://{inside}"}))
    check_for_serving(read_settings({**environ, "PAYAGG_BASE_URL": "https://pay.example.com"}))
    for public in ("pay.example.com", "93.184.216.34", "[2606:4700::1]:8000"):
        with pytest.raises(SettingsError, match="PAYAGG_BASE_URL must be https"):
            check_for_serving(read_settings({**environ, "PAYAGG_BASE_URL": f"http://{public}"}))


def test_an_address_that_paths_are_put_behind_has_no_query_or_fragment() -> None:
    assert read_settings({"PAYAGG_BASE_URL": "https://pay.example.com/a/"}).base_url == "https://pay.example.com/a"
    for end in ("?shop=1", "/a?", "#top", "/#"):
        [told] = faults({"PAYAGG_BASE_URL": f"https://pay.example.com{end}"})
        assert "address without a query or fragment" in told


def test_an_object_store_is_a_folder_or_a_whole_url() -> None:
    must = "must be a folder, file:///FOLDER or s3://BUCKET/PREFIX"
    for good in ("/srv/logos", "logos", "file:///srv/logos", "s3://shop", "s3://shop/logos?region=eu"):
        read_settings({"PAYAGG_LOGO_STORE": good})
    for bad in ("ftp://shop", "https://shop.example", "s3://", "s3:///logos", "s3:/shop", "file://logos"):
        assert faults({"PAYAGG_LOGO_STORE": bad}) == [f"PAYAGG_LOGO_STORE {must}."]


@pytest.mark.rule("access.16")
def test_dev_uses_the_keys_it_is_given_and_makes_the_rest(tmp_path: Path) -> None:
    own = with_dev_secrets(read_settings({"PAYAGG_STATE_DIR": str(tmp_path)}, dev=True), ENTROPY)
    sealed = AesVault(own.encryption_keys).seal(b"before", "x")
    environ = {"PAYAGG_STATE_DIR": str(tmp_path), "PAYAGG_JWT_KEY": pem(ED), "PAYAGG_ENCRYPTION_KEYS": KEY}
    given = with_dev_secrets(read_settings(environ, dev=True), ENTROPY)
    assert given.jwt_key == pem(ED).strip()
    assert [kid for kid, _ in given.encryption_keys] == ["k1", "dev"]
    # What dev sealed before the setting was made still opens.
    assert AesVault(given.encryption_keys).open(sealed, "x") == b"before"
    hmac = environ | {"PAYAGG_JWT_KEY": SECRET, "PAYAGG_JWT_ALGORITHM": "HS256"}
    shared = with_dev_secrets(read_settings(hmac, dev=True), ENTROPY)
    token = Tokens(SECRET, "HS256").issue({"sub": "u"}, 60, 4_000_000_000)
    assert (shared.jwt_algorithm, token.count(".")) == ("HS256", 2)
    assert with_dev_secrets(read_settings({"PAYAGG_STATE_DIR": str(tmp_path)}, dev=True), ENTROPY) == own


@pytest.mark.parametrize("key", [public_pem(Ed25519PrivateKey.generate()), "no key at all"])
def test_dev_refuses_a_key_that_cannot_sign(tmp_path: Path, key: str) -> None:
    settings = read_settings({"PAYAGG_STATE_DIR": str(tmp_path), "PAYAGG_JWT_KEY": key}, dev=True)
    with pytest.raises(SettingsError, match="PAYAGG_JWT_KEY must be a"):
        with_dev_secrets(settings, ENTROPY)
