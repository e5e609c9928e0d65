"""What happens to the cluster, and for how long."""

from collections.abc import Callable
from dataclasses import dataclass

from lab.failover.cluster import Cluster, Node


@dataclass(frozen=True)
class ClusterFault:
    """`strike` does it and returns what undoes it, if that comes `seconds` later; the rest is repaired at the end."""

    word: str  # how the command line calls it
    name: str  # and the table
    strike: Callable[[Cluster], Callable[[], None] | None]
    seconds: float = 0.0


def _frozen(node: Node) -> Callable[[], None]:
    node.freeze()
    return node.wake


def _etcd_lost(cluster: Cluster, members: int) -> Callable[[], None]:
    lost = cluster.etcd[:members]
    for member in lost:
        member.kill()

    def found() -> None:
        for member in lost:
            member.start()

    return found


FAULTS = (
    ClusterFault("killed", "leader killed (Patroni and Postgres)", lambda cluster: cluster.leader().kill()),
    ClusterFault("off", "leader powered off (packets vanish)", lambda cluster: cluster.leader().power_off()),
    ClusterFault("frozen", "leader frozen for 45 s, then woken", lambda cluster: _frozen(cluster.leader()), 45),
    ClusterFault(
        "postmaster", "postmaster of the leader killed alone", lambda cluster: cluster.leader().kill_postmaster()
    ),
    ClusterFault("switchover", "planned switchover", Cluster.switch_over),
    ClusterFault("standby-lost", "standby killed (Patroni and Postgres)", lambda cluster: cluster.standby().kill(), 15),
    ClusterFault(
        "standby-frozen", "standby frozen for 45 s, then woken", lambda cluster: _frozen(cluster.standby()), 45
    ),
    ClusterFault("etcd-one", "one of three etcd lost for 15 s", lambda cluster: _etcd_lost(cluster, 1), 15),
    ClusterFault("etcd-two", "two of three etcd lost for 30 s", lambda cluster: _etcd_lost(cluster, 2), 30),
)
