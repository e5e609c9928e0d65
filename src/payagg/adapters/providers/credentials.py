"""What the two adapters share about credentials: names per environment, switches, base addresses."""

import hmac
import re
from collections.abc import Mapping

from payagg.adapters.providers.transport import Transport
from payagg.domain.errors import invalid
from payagg.domain.report import FaultKind, ProviderFault
from payagg.domain.values import Environment

PREFIX = {Environment.SANDBOX: "sandbox", Environment.LIVE: "live"}
_HEADER_SAFE = re.compile(r"[\x21-\x7e]+")


def value(credentials: Mapping[str, str], environment: Environment, name: str) -> str:
    """The credential `sandbox<name>` or `live<name>`, stripped; empty when absent."""
    return credentials.get(PREFIX[environment] + name, "").strip()


def names(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Every name that is read, the sandbox's first."""
    return tuple(prefix + name for prefix in PREFIX.values() for name in (*keys, "BaseUrl", "Enabled"))


def alone(environment: Environment, name: str, secret: str) -> dict[str, str]:
    """Credentials that hold nothing but `secret`; none when it is empty."""
    return {PREFIX[environment] + name: secret} if secret else {}


def account(credentials: Mapping[str, str], environment: Environment, name: str, base_url: str) -> str:
    """A fingerprint of the account that the key under `name` opens at the base address, `base_url` unless another is
    set: the key can neither be read from it nor be the same for two accounts."""
    address = value(credentials, environment, "BaseUrl") or base_url
    return hmac.new(value(credentials, environment, name).encode(), address.encode(), "sha256").hexdigest()[:32]


def base_url(credentials: Mapping[str, str], transport: Transport, environment: Environment, default: str) -> str:
    """Where calls go, without a slash at its end; raises ProviderFault for an address that may not be called."""
    address = value(credentials, environment, "BaseUrl") or default
    if not transport.is_allowed(address):
        raise ProviderFault(FaultKind.BAD_CREDENTIALS, "the base URL may not be called")
    return address.rstrip("/")


def is_switched_on(credentials: Mapping[str, str], environment: Environment) -> bool:
    return value(credentials, environment, "Enabled").lower() != "false"


def ensure_apart(sandbox: Mapping[str, str], live: Mapping[str, str]) -> None:
    """Raises VALIDATION_ERROR where both environments sign with one secret: whoever knows that of the sandbox could
    then write events of real money."""
    for name, secret in live.items():
        if secret in sandbox.values():
            raise invalid(f"credentials.{name}", "Must not be the signing secret of the SANDBOX environment.")


def check(
    credentials: Mapping[str, str],
    transport: Transport,
    keys: tuple[str, ...],
    foreign: Mapping[Environment, tuple[str, ...]],
) -> None:
    """Raises VALIDATION_ERROR on `credentials.<name>` for a key (one of `keys`) that carries the other environment's
    mark or cannot stand in a header, a base address that may not be called, or a switch that is no boolean."""
    for environment, prefix in PREFIX.items():
        for name in keys:
            text = credentials.get(prefix + name)
            if text is None:
                continue
            if not _HEADER_SAFE.fullmatch(text.strip()):
                raise invalid(f"credentials.{prefix}{name}", "Must be printable characters without spaces.")
            if any(mark in text for mark in foreign[environment]):
                raise invalid(f"credentials.{prefix}{name}", f"This key is not of the {environment.value} environment.")
        base_url = credentials.get(f"{prefix}BaseUrl")
        if base_url is not None and not transport.is_allowed(base_url.strip()):
            raise invalid(f"credentials.{prefix}BaseUrl", "Must be an https URL of a public host, without a query.")
        switch = credentials.get(f"{prefix}Enabled")
        if switch is not None and switch.strip().lower() not in ("true", "false"):
            raise invalid(f"credentials.{prefix}Enabled", 'Must be "true" or "false".')
