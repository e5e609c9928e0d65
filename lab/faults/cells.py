"""The faults of a network, and the places where they strike."""

import random
from dataclasses import dataclass
from enum import Enum

from payagg_testing.network_faults import (
    COMMITTED,
    Blackhole,
    Delay,
    Direction,
    Drip,
    DropReply,
    HalfOpen,
    NetworkFault,
    Peer,
    Reset,
    Then,
)


class Neighbour(Enum):
    """The other end of the connections that fail."""

    POSTGRES = "Postgres"
    PROVIDER_A = "provider_a"
    PROVIDER_B = "provider_b"
    MERCHANT = "the merchant"


@dataclass(frozen=True)
class NetworkFaultKind:
    name: str
    words: str
    fault: NetworkFault
    places: tuple[Neighbour, ...] = tuple(Neighbour)


POSTGRES = (Neighbour.POSTGRES,)
KINDS = (
    NetworkFaultKind("delay", "every piece 20 ms late", Delay(0.02)),
    NetworkFaultKind("drip", "16 bytes every 10 ms", Drip(16, 0.01)),
    NetworkFaultKind("blackhole", "every byte swallowed, nobody told", Blackhole()),
    NetworkFaultKind("reset-there", "RST after 20 bytes of a request", Reset(20, Direction.TO_SERVER)),
    NetworkFaultKind("reset-back", "RST after 20 bytes of answers", Reset(20)),
    NetworkFaultKind("half-open", "the other end closed at its answer, we are not told", HalfOpen(Peer.SERVER)),
    NetworkFaultKind("half-open-us", "our end closed at an answer, the other is not told", HalfOpen(Peer.CLIENT)),
    NetworkFaultKind("reply-reset", "the request delivered, its answer lost by RST", DropReply()),
    NetworkFaultKind("reply-silence", "the request delivered, its answer never comes", DropReply(then=Then.SILENCE)),
    NetworkFaultKind("commit-reset", "the answer of COMMIT lost by RST", DropReply(at=COMMITTED), POSTGRES),
    NetworkFaultKind(
        "commit-silence", "the answer of COMMIT never comes", DropReply(at=COMMITTED, then=Then.SILENCE), POSTGRES
    ),
)
CELLS = tuple((kind, place) for kind in KINDS for place in kind.places)
# Ends of statements, as Postgres reports them in the middle of a transaction.
TAGS = (b"INSERT 0 1", b"UPDATE 1", b"SELECT 1")


def drawn(seed: int) -> tuple[NetworkFaultKind, Neighbour]:
    """A fault at bytes that nobody chose, mostly on the way to Postgres; it may be one that never strikes."""
    chance = random.Random(seed)
    neighbour = chance.choice([*Neighbour, Neighbour.POSTGRES, Neighbour.POSTGRES])
    is_postgres = neighbour is Neighbour.POSTGRES
    after = chance.randrange(8_000 if is_postgres else 1_000)
    faults: list[NetworkFault] = [
        Reset(after),
        Reset(after, Direction.TO_SERVER),
        HalfOpen(chance.choice(list(Peer))),
        Drip(chance.randrange(8, 512), 0.005),
        DropReply(at=chance.choice(TAGS) if is_postgres else b"", then=chance.choice(list(Then))),
    ]
    fault = chance.choice(faults)
    return NetworkFaultKind(f"seed {seed}", str(fault), fault, (neighbour,)), neighbour
