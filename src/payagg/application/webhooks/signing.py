"""The keys that sign a delivery."""

from collections.abc import Callable, Iterable


def keys_that_sign(secrets: Iterable[tuple[str, bytes]], unseal: Callable[[str, bytes], list[bytes]]) -> list[bytes]:
    """The keys of every endpoint whose newest secret opens; a replaced one that does not open is left out. `secrets`
    are endpoints' ids and what is sealed, an endpoint's newest first; `unseal` raises ValueError. Raises ValueError
    where there is no key."""
    keys: dict[str, list[bytes]] = {}
    for endpoint_id, sealed in secrets:
        try:
            opened = unseal(endpoint_id, sealed)
        except ValueError:
            opened = []
        newer = keys.get(endpoint_id)
        if newer is None or newer:
            keys[endpoint_id] = [*(newer or ()), *opened]
    signing = [key for own in keys.values() for key in own]
    if not signing:
        raise ValueError("no secret opens")
    return signing
