"""`make ha` runs for minutes on programs of its own: here what can be said of it without them."""

import configparser

import yaml

from payagg.adapters.postgres.connections import CONNECT_WAIT, TCP, TIMEOUTS
from payagg.adapters.postgres.pool import ANSWER_WAIT, POOL_WAIT
from payagg.adapters.postgres.primary import TRUSTED
from tests.ha.cell import CellVerdict
from tests.ha.cluster import CONFIG, Cluster, Node
from tests.ha.faults import FAULTS
from tests.ha.prober import Prober
from tests.ha.routes import FILES, DatabaseRoute, rendered_haproxy, rendered_pgbouncer, url
from tests.ha.table import COLUMNS, DOCUMENT, document, line, row

CLUSTER = Cluster([Node(number, FILES) for number in (1, 2, 3)])
CELLS = [(fault, route) for fault in FAULTS for route in DatabaseRoute]


def test_the_document_has_a_row_for_each_cell() -> None:
    lines = DOCUMENT.read_text("utf-8").splitlines()
    found = [one for one in lines if any(one.startswith(f"{row(*cell)} ") for cell in CELLS)]
    assert len(found) == len(CELLS) == 27
    assert {one.count("|") for one in found} == {len(COLUMNS) + 1}


def test_nothing_acknowledged_is_lost_doubled_or_contradicted_in_it() -> None:
    rows = [one.split(" | ") for one in DOCUMENT.read_text("utf-8").splitlines() if one.endswith(" clean |")]
    assert len(rows) == len(CELLS)
    begin = COLUMNS.index("lost")
    assert {tuple(one[begin : begin + 3]) for one in rows} == {("0", "0", "0")}
    # The bars: what the last run on record showed, and no clock of this one.
    assert max(float(one[COLUMNS.index("ours")].split()[0]) for one in rows) < 1
    frozen = [one for one in rows if one[0] == "| leader frozen for 45 s, then woken"]
    assert max(float(one[COLUMNS.index("longest gap")].split()[0]) for one in frozen) < 25


def test_a_whole_run_writes_what_the_document_is_checked_for() -> None:
    text = document({cell: CellVerdict() for cell in CELLS}, minutes=1, rate=4, patroni="4.1.0", postgres="18")
    assert text.startswith(DOCUMENT.read_text("utf-8").partition("\n")[0])
    assert [cell for cell in CELLS if f"\n{row(*cell)} " not in text] == []


def test_a_cell_holds_unless_something_is_broken() -> None:
    held = CellVerdict(payments=2, told=2)
    held.failed.update({"503": 9, "ReadError": 1, "404 X": 1})
    assert held.faults == []
    assert " | 9 | 1 | 1 | " in line(*CELLS[0], held)
    broken = CellVerdict(payments=2, told=1, lost=["a"], doubled=["b"], false=["c"], doctor=["d"])
    broken.failed["500"] = 1
    assert len(broken.faults) == 6


def test_our_part_of_a_gap_begins_when_the_database_takes_writes_again() -> None:
    prober = Prober([])
    prober.written = [0.0, 0.2, 20.0, 20.1, 20.3]
    assert prober.recovered(0.5, 20.75) == 20.0
    assert prober.recovered(30.0, 31.0) == 30.0


def test_the_files_of_deploy_lead_through_each_route() -> None:
    haproxy = rendered_haproxy((FILES / "haproxy.cfg").read_text(), CLUSTER)
    assert all(f"server db{node.number} {node.address}:5432" in haproxy for node in CLUSTER.nodes)
    assert "on-marked-down shutdown-sessions" in haproxy
    bouncer = configparser.ConfigParser()
    bouncer.read_string(rendered_pgbouncer((FILES / "pgbouncer.ini").read_text()))
    assert {route.database for route in DatabaseRoute} == set(bouncer["databases"])
    assert bouncer["pgbouncer"]["pool_mode"] == "transaction"
    assert "127.0.0.11:5432,127.0.0.12:5432,127.0.0.13:5432" in url(CLUSTER, DatabaseRoute.MULTIHOST)


def test_every_wait_for_the_database_ends_before_another_primary_can_have_taken_over() -> None:
    settings = yaml.safe_load(CONFIG.read_text())["bootstrap"]["dcs"]
    # The lock was renewed as long ago as a round may take, when its holder is frozen.
    replaced_after = settings["ttl"] - settings["loop_wait"]
    assert replaced_after > TRUSTED + ANSWER_WAIT
    assert replaced_after > POOL_WAIT + ANSWER_WAIT
    assert CONNECT_WAIT < ANSWER_WAIT
    assert max(TIMEOUTS["statement_timeout"], TIMEOUTS["lock_timeout"]) < ANSWER_WAIT * 1000
    assert TCP["keepalives_idle"] + TCP["keepalives_interval"] * TCP["keepalives_count"] < replaced_after
    assert TCP["tcp_user_timeout"] <= ANSWER_WAIT * 1000
    # Patroni's own rule.
    assert settings["loop_wait"] + 2 * settings["retry_timeout"] <= settings["ttl"]
