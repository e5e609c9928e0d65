"""The table of a whole run, in docs/failover.md."""

from collections import Counter
from collections.abc import Mapping

from tests.ha.cell import CellVerdict
from tests.ha.faults import FAULTS, ClusterFault
from tests.ha.machine import ROOT
from tests.ha.routes import DatabaseRoute

DOCUMENT = ROOT / "docs" / "failover.md"
Table = Mapping[tuple[ClusterFault, DatabaseRoute], CellVerdict]
COLUMNS = (
    "Fault",
    "Through",
    "acknowledged",
    "lost",
    "doubled",
    "false",
    "503",
    "no answer",
    "other",
    "longest gap",
    "ours",
    "webhooks",
    "doctor",
)
HEAD = """<!-- Written by `make ha`. -->

# Failover

`make ha` runs three nodes of Patroni {patroni} (Postgres {postgres}, synchronous by quorum) on three members of etcd,
and payagg through each of three routes: a URL with every host (`target_session_attrs=read-write`), HAProxy, and
PgBouncer before HAProxy, all as `deploy/failover` sets them up. Behind each route two servers and a worker take
{rate:g} payments a second: initiate, process, pay, verify, webhook; others read again what was acknowledged. Every
answer is recorded. Then something breaks, and is repaired. What to set up:
[operating/postgres.md](operating/postgres.md).

| Column | Meaning |
| --- | --- |
| acknowledged | good answers to initiate, process and verify |
| lost | payments that we acknowledged and the database does not have, or not as far as we said |
| doubled | payments charged twice, told to the merchant under two ids, or made twice from one idempotency key |
| false | answers that contradict an earlier one: a 404 for an acknowledged payment, a final status that goes back |
| 503, no answer, other | requests that failed; whoever sent them did so again. A 500 would be a defect |
| longest gap | seconds without an acknowledged payment |
| ours | seconds of that after somebody else, with plain psycopg through the same route, could write again |
| webhooks | payments that the merchant heard of |
| doctor | `payagg doctor` |

A leader that is lost is replaced after Patroni's `ttl` (20 s), and that is the gap. A powered off leader is one whose
packets vanish: a firewall drops everything to and from its address before its processes are killed, in a network
namespace of the run's own. A frozen one is stopped (`SIGSTOP`) with everything below it, and wakes believing that it
leads. The routes meet each fault at the same time, each with a database of its own on the one cluster. All of it
shares one machine, whose waits are in every gap; where the database never stopped for 0.3 s, a whole gap counts as
ours, the {pause:g} s between two payments included.

Last run: {holds} of {all} hold, in {minutes:.0f} minutes. Our own part of a gap was at most {ours:.1f} s
(bar: under 1 s), the longest gap behind a frozen leader {frozen:.1f} s (bar: under 25 s).

"""


def row(fault: ClusterFault, route: DatabaseRoute) -> str:
    """What a run does not change of a cell's line."""
    return f"| {fault.name} | {route.value} |"


def line(fault: ClusterFault, route: DatabaseRoute, found: CellVerdict) -> str:
    counted = sorted_failures(found.failed)
    cells = [
        str(found.acknowledged),
        str(len(found.lost)),
        str(len(found.doubled)),
        str(len(found.false)),
        *(str(one) for one in counted),
        f"{found.gap:.1f} s",
        f"{found.ours:.1f} s",
        f"{found.told} of {found.payments}",
        "clean" if not found.doctor else "NOT CLEAN",
    ]
    return f"{row(fault, route)} {' | '.join(cells)} |"


def sorted_failures(failed: Counter[str]) -> tuple[int, int, int]:
    """503s, requests without an answer, and the rest."""
    unavailable = sum(count for name, count in failed.items() if name.startswith("503"))
    unanswered = sum(count for name, count in failed.items() if not name[0].isdigit())
    return unavailable, unanswered, sum(failed.values()) - unavailable - unanswered


def document(table: Table, *, minutes: float, rate: float, patroni: str, postgres: str) -> str:
    holds = sum(not found.faults for found in table.values())
    head = HEAD.format(
        holds=holds, all=len(table), minutes=minutes, rate=rate, pause=1 / rate, patroni=patroni, postgres=postgres,
        ours=max(found.ours for found in table.values()),
        frozen=max(found.gap for (fault, _), found in table.items() if fault.word == "frozen"),
    )  # fmt: skip
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}"]
    lines += [line(fault, route, table[fault, route]) for fault in FAULTS for route in DatabaseRoute]
    return head + "\n".join(lines) + "\n"
