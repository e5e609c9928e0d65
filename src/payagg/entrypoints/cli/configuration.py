"""`payagg keygen` and `config`: new secrets, and the settings in force."""

import argparse
import base64
import os

from payagg.entrypoints.cli.operators import say
from payagg.entrypoints.process.interpreter import interpreter
from payagg.entrypoints.settings import Settings, fields_of, find_setting, variable


def keygen(_: argparse.Namespace, settings: Settings) -> int:
    """Lines of an environment file. A PEM stands on one line with `\\n` for its line breaks, in single quotes, which
    shells, systemd and Compose all read alike."""
    from payagg.adapters.system import SystemClock, SystemEntropy

    entropy = SystemEntropy(settings.reference_prefix)
    secret, public = new_jwt_keys()
    say("# Signs tokens and verifies them.")
    say("PAYAGG_JWT_ALGORITHM=EdDSA")
    say(f"PAYAGG_JWT_KEY={_one_line(secret)}")
    say("# The same key for servers that only verify; then `payagg token` needs the one above.")
    say(f"# PAYAGG_JWT_KEY={_one_line(public)}")
    say("# Seals stored secrets. Keep it as carefully as the database: without it they do not open again.")
    say(f"PAYAGG_ENCRYPTION_KEYS=k{SystemClock().now():%Y%m%d}:{base64.b64encode(entropy.bytes(32)).decode()}")
    say("# Prometheus presents it to read /metrics.")
    say(f"PAYAGG_METRICS_TOKEN={entropy.hex(32)}")
    return 0


def config(_: argparse.Namespace, settings: Settings) -> int:
    """Each setting in force and its source, secrets masked. The first line is the Python that runs. Raises
    SettingsError at the end where a server that has its secrets would not start."""
    from payagg.entrypoints.bootstrap import check_for_serving

    say(f"{'Python':32} {interpreter()}")
    for one in fields_of(settings.extensions):
        text, source = find_setting(os.environ, one)
        shown = _mask(one.name, settings) if one.metadata["secret"] and text is not None else text
        value = shown if shown is not None else one.metadata["default"] or one.metadata["unset"]
        say(f"{variable(one):32} {value}  ({'environment' if source == variable(one) else source})")
    if settings.encryption_keys and (settings.jwt_key or settings.jwt_jwks):
        check_for_serving(settings)
    return 0


def new_jwt_keys() -> tuple[str, str]:
    """A new EdDSA key that signs, and the one that verifies, as PEM."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private, text = Ed25519PrivateKey.generate(), serialization.Encoding.PEM
    secret = private.private_bytes(text, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return secret.decode(), private.public_key().public_bytes(
        text, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def _one_line(pem: str) -> str:
    return "'" + pem.strip().replace("\n", "\\n") + "'"


def _mask(name: str, settings: Settings) -> str:
    if name == "database_url" and settings.database_url is not None:
        from payagg.adapters.postgres.connections import where

        return where(settings.database_url)
    if name == "encryption_keys":
        return f"set: {', '.join(kid for kid, _ in settings.encryption_keys)}"
    return "set"
