"""What a router tells Prometheus."""

import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from payagg.entrypoints.http.server.places import By, Destination
from payagg.entrypoints.route.directory import CellsAway, Directory
from payagg.entrypoints.route.metrics import REQUESTS, begin_at_zero, exposition
from tests.support.machine import program
from tests.unit.entrypoints.route.cells import FakeCell


def told() -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(exposition().decode())
    return {(one.name, tuple(one.labels.values())): one.value for family in families for one in family.samples}


@pytest.mark.anyio
async def test_a_question_that_a_cell_does_not_answer_is_counted_on_that_cell() -> None:
    begin_at_zero(["PAY", "PBX"], ["key"])
    before = told()
    with pytest.raises(CellsAway):
        await Directory({"PBX": FakeCell((0, ""))}).ask(Destination(By.KEY, "0" * 64))
    after = told()
    changed = {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
    assert changed == {
        ("payagg_route_unreachable_total", ("PBX",)): 1,
        ("payagg_route_lookups_total", ("key", "not answered")): 1,
    }
    assert before["payagg_route_unreachable_total", ("PAY",)] == after["payagg_route_unreachable_total", ("PAY",)]


def test_names_and_labels_are_as_prometheus_wants_them() -> None:
    begin_at_zero(["PAY"], ["key"])
    REQUESTS.labels("PAY", "key", "200").inc()
    assert {name for name, _ in told()} >= {"payagg_route_requests_total", "payagg_build_info"}
    assert not any(name.endswith("_created") for name, _ in told())
    linted = subprocess.run(
        [program("promtool", "prometheus"), "check", "metrics"],
        input=exposition(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert (linted.returncode, linted.stdout) == (0, b"")
