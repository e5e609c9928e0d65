"""What a network may do to a TCP connection, for `FaultProxy` to impose. Standard library alone."""

from dataclasses import dataclass
from enum import Enum

# How Postgres says that a COMMIT is done: a CommandComplete message with this tag (PostgreSQL documentation, "Message
# Formats"). A text value holds no zero byte, so no row of text reads like it.
COMMITTED = b"C\x00\x00\x00\x0bCOMMIT\x00"


class Direction(Enum):
    TO_SERVER = "to the server"
    TO_CLIENT = "to the client"


class Peer(Enum):
    CLIENT = "client"
    SERVER = "server"


class Then(Enum):
    """What follows a lost answer: RST to both sides, or silence."""

    RESET = "reset"
    SILENCE = "silence"


@dataclass(frozen=True)
class Delay:
    """Passes everything on, each piece `seconds` later."""

    seconds: float


@dataclass(frozen=True)
class Drip:
    """Passes everything on, `size` bytes at a time, each after `seconds`."""

    size: int
    seconds: float


@dataclass(frozen=True)
class Blackhole:
    """Accepts connections and swallows every byte of both directions. The other side hears nothing, not even of a
    client that hangs up."""


@dataclass(frozen=True)
class Reset:
    """RST to both sides once `after` bytes of one direction have passed, counted per connection."""

    after: int = 0
    direction: Direction = Direction.TO_CLIENT


@dataclass(frozen=True)
class HalfOpen:
    """The request is delivered; at the first byte of its answer one side is closed, and the other is not told."""

    closed: Peer = Peer.SERVER


@dataclass(frozen=True)
class DropReply:
    """The request is delivered and its answer lost, from its first byte or from where `at` begins.

    With `after`, only the answer to a request that holds these bytes. `DropReply(at=COMMITTED)` loses the answers of
    COMMIT on an unencrypted connection to Postgres, wherever in a pipeline they come.
    """

    after: bytes = b""
    at: bytes = b""
    then: Then = Then.RESET


NetworkFault = Delay | Drip | Blackhole | Reset | HalfOpen | DropReply
