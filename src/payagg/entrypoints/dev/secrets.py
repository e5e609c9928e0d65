"""The secrets that `dev` makes for itself, once, under the state folder; `token` signs with its key too."""

import base64
import os
from dataclasses import replace
from pathlib import Path

from payagg.application.ports.outside import Entropy
from payagg.entrypoints.cli.configuration import new_jwt_keys
from payagg.entrypoints.cli.tokens import DEV_JWT_KEY
from payagg.entrypoints.settings import Settings, SettingsError

FOLDER = DEV_JWT_KEY.parent.name
DEV_KEY_ID = "dev"


def with_dev_secrets(settings: Settings, entropy: Entropy) -> Settings:
    """The settings, completed with the state folder's own keys, made at the first call. Files are 0600.

    Raises SettingsError for a key that cannot sign, as `dev` issues tokens.
    """
    from payagg.entrypoints.bootstrap import tokens_of

    folder = settings.state_dir / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    jwt_key, encryption_key = settings.state_dir / DEV_JWT_KEY, folder / "encryption.key"
    if not jwt_key.exists():
        write_private(jwt_key, new_jwt_keys()[0])
    if not encryption_key.exists():
        write_private(encryption_key, base64.b64encode(entropy.bytes(32)).decode())
    # After the given keys, as it sealed data in the folder's database.
    own = (DEV_KEY_ID, base64.b64decode(encryption_key.read_text()))
    operators_keys = settings.encryption_keys
    keys = operators_keys if DEV_KEY_ID in dict(operators_keys) else (*operators_keys, own)
    if settings.jwt_key is None:
        settings = replace(settings, jwt_key=jwt_key.read_text(), jwt_algorithm="EdDSA")
    elif not tokens_of(settings).can_issue:
        raise SettingsError("PAYAGG_JWT_KEY must be a private key for `dev`, which issues tokens; or leave it out.")
    return replace(settings, encryption_keys=keys)


def write_private(path: Path, text: str) -> None:
    """Replaces the file in one step, readable by its owner alone from the first byte."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(fresh, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
