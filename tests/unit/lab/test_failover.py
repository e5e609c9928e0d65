"""The part `failover` runs for minutes on programs of its own: here what can be said of it without them."""

import configparser

import yaml

from lab.failover.cluster import CONFIG, Cluster, Node
from lab.failover.routes import FILES, DatabaseRoute, rendered_haproxy, rendered_pgbouncer, url
from lab.kit.processes import Processes
from payagg.adapters.postgres.connections import CONNECT_WAIT, TCP, TIMEOUTS
from payagg.adapters.postgres.pool import ANSWER_WAIT
from payagg.adapters.postgres.primary import TRUSTED
from payagg.application.deadline import REQUEST_SECONDS

CLUSTER = Cluster([Node(number, Processes(FILES)) for number in (1, 2, 3)])


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
    assert REQUEST_SECONDS < ANSWER_WAIT
    assert CONNECT_WAIT < ANSWER_WAIT
    assert max(TIMEOUTS["statement_timeout"], TIMEOUTS["lock_timeout"]) < ANSWER_WAIT * 1000
    assert TCP["keepalives_idle"] + TCP["keepalives_interval"] * TCP["keepalives_count"] < replaced_after
    assert TCP["tcp_user_timeout"] <= ANSWER_WAIT * 1000
    # Patroni's own rule.
    assert settings["loop_wait"] + 2 * settings["retry_timeout"] <= settings["ttl"]
