"""Ports beside the database: clock, randomness, keys and images; and the errors of a store."""

from datetime import datetime
from typing import Any, Protocol


class Unavailable(Exception):
    """The database is unreachable or lost the connection; the request itself may be right."""


class Conflict(Exception):
    """The transaction was rolled back through no fault of the request (serialisation, deadlock, a connection lost
    before COMMIT): run all of it again."""


class ReferenceTaken(Exception):
    """A drawn reference already exists; draw another. Expect about two a day at 100,000 payments a day."""


class KeyStateChanged(Exception):
    """The state of a key or its business differs from the cached one; nothing was written."""


class Clock(Protocol):
    def now(self) -> datetime:
        """The present instant in UTC, the same clock for every process (the database's)."""


class Entropy(Protocol):
    """The only source of randomness: the operating system's generator."""

    def reference(self, now: datetime) -> str:
        """A fresh payment reference for the UTC day of `now`."""

    def id(self, prefix: str, now: datetime) -> str:
        """`<prefix>_` + 12 hex digits of the instant in ms + 20 random ones: unique, and ordered by time."""

    def hex(self, size: int) -> str:
        """`size` random bytes as hex."""

    def bytes(self, size: int) -> bytes: ...

    def chance(self) -> float:
        """A number in [0, 1)."""


class TokenReader(Protocol):
    def read(self, token: str) -> dict[str, Any]:
        """The verified claims, a text `sub` among them; raises UNAUTHORIZED."""


class Vault(Protocol):
    """Encryption at rest (AES-GCM). `context` is bound to the ciphertext: it opens only where it was sealed."""

    def seal(self, plain: bytes, context: str) -> bytes: ...

    def open(self, sealed: bytes, context: str) -> bytes: ...


class KeyedVault(Vault, Protocol):
    """A vault of several keys, one of which seals."""

    @property
    def sealing_key(self) -> str:
        """The id of the key that seals."""

    def key_id(self, sealed: bytes) -> str:
        """The id of the key that sealed a blob; a distinct word for what is no sealed blob."""


class Images(Protocol):
    async def kind(self, content: bytes) -> str:
        """`png` or `jpg`, detected from the content and verified by decoding; raises VALIDATION_ERROR on `file`."""


class ObjectStore(Protocol):
    """Files by path, each whole or absent. Each call raises Unavailable when the store cannot be reached."""

    async def put(self, path: str, content: bytes) -> None: ...

    async def get(self, path: str) -> bytes | None: ...

    async def delete(self, path: str) -> None: ...
