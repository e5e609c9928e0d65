"""The environment's text of a setting, from its variable or from a file. Imports nothing, as every command reads it."""

from collections.abc import Mapping
from pathlib import Path

PREFIX = "PAYAGG_"


class SettingsError(Exception):
    """What the operator can mend, each fault one line that names its setting."""


def text_of(environ: Mapping[str, str], name: str, *, may_be_empty: bool = True) -> tuple[str | None, str]:
    """The text under `name`, or in the file that `name` with `_FILE` gives, and where it comes from. None where it is
    not set; an empty one counts as not set where it `may_be_empty`. Raises SettingsError."""
    text = environ.get(name, "").strip()
    path = environ.get(f"{name}_FILE", "").strip()
    if text and path:
        raise SettingsError(f"{name} and {name}_FILE are both set: leave one of them out.")
    if not path:
        if name in environ and not may_be_empty:
            return text, name
        return text or None, name if text else "default"
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"{name}_FILE names {path}, which cannot be read ({why}).") from None
    if not text:
        raise SettingsError(f"{name}_FILE names {path}, which is empty.")
    return text, path
