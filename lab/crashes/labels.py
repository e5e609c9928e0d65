"""The steps at which something dies, and what dies."""

from dataclasses import dataclass
from enum import Enum


class CrashKind(Enum):
    """Our own process, the whole database server, or every connection to it."""

    PROCESS = "our process killed"
    POSTGRES = "Postgres killed"
    CONNECTION = "connections cut"


@dataclass(frozen=True)
class Label:
    """`verb` is what the process does that meets the step; `step` is how its ports call that moment."""

    name: str
    at: str
    verb: str
    step: str


LABELS = (
    Label("I1", "initiate: the request is valid, nothing is inserted", "initiate", "add"),
    Label("I2", "initiate: inserted, before COMMIT", "initiate", "commit"),
    Label("I3", "initiate: committed, before the reply", "initiate", "reply"),
    Label("P1", "process: before the claim", "process", "claim"),
    Label("P2", "process: claim committed, before the provider's call", "process", "P2"),
    Label("P3", "process: the provider has the charge, its answer is not noted", "process", "answered"),
    Label("P4", "process: the answer is noted, before the hand-off's COMMIT", "process", "P4"),
    Label("P5", "process: committed, before the reply", "process", "P5"),
    Label("W1", "inbound event: signature proven, nothing kept", "receive", "W1"),
    Label("W2", "inbound event: kept in the inbox", "receive", "W2"),
    Label("W3", "inbound event: payment moved, before COMMIT", "receive", "commit"),
    Label("W4", "inbound event: committed, before the 200", "receive", "W4"),
    Label("V1", "verify: the provider has answered", "verify", "V1"),
    Label("V2", "verify: committed, before the reply", "verify", "V2"),
    Label("O1", "outbox: delivery claimed", "deliver", "claimed"),
    Label("O2", "outbox: sent, the merchant's answer not read", "deliver", "unread"),
    Label("O3", "outbox: answer read, before it is recorded", "deliver", "sent"),
    Label("J1", "reconciler: the provider has answered, nothing is noted", "reconcile", "answered"),
    Label("J2", "reconciler: payment moved, before COMMIT", "reconcile", "commit"),
    Label("J3", "worker: the event of that sent, the merchant's answer not read", "reconcile", "unread"),
    Label("L1", "logo: file written, before the row", "logo", "put"),
    Label("L2", "logo: row committed, before the old file goes", "logo", "delete"),
)
