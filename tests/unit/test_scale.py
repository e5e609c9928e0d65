"""The tables of docs/scale.md are of the steps that exist, and add up."""

import json

import pytest

from benchmarks.deployment import OWN
from benchmarks.scale import AT_RATES, DOCUMENT, JOURNEY, RATES, STEPS, Asked, cpu_of, rates, table

CPU = {"initiate": (0.2, 0.1), "whole journey": (4.0, 2.0)}
FOUND = {name: (Asked(2.0, 1.0, 3_000.0), 1_000.0) for name in (*JOURNEY, "webhook delivered", "event accepted")}


def test_a_whole_payment_is_the_sum_of_its_steps() -> None:
    rows = table(FOUND, CPU).splitlines()
    assert rows[2] == "| initiate | 2.0 | 1.0 | 1,000 | 3,000 | 0.20 | 0.10 |"
    steps = len(JOURNEY) + 1
    assert rows[-1] == f"| whole payment | {2 * steps}.0 | {steps}.0 | {steps},000 | {3 * steps},000 | 4.00 | 2.00 |"


def test_what_many_payments_ask_for_is_in_proportion() -> None:
    rows = rates(FOUND, CPU, (3_000, 2_000)).splitlines()[2:]
    assert len(rows) == len(AT_RATES)
    assert rows[2] == "| 500 | 18,000,000 | 2.0 | 1.0 | 4,500 | 4.5 | 90.0 |"


@pytest.mark.parametrize("markers", [STEPS, RATES])
def test_the_committed_document_has_its_tables(markers: tuple[str, str]) -> None:
    begin, end = markers
    _, _, rest = DOCUMENT.read_text("utf-8").partition(begin)
    assert rest.partition(end)[0].count("\n|") > len(AT_RATES)


def test_the_figures_that_it_reads_are_there() -> None:
    cpu = cpu_of(OWN / "benchmarks" / "figures-steps.json")
    assert {*JOURNEY, "event accepted", "whole journey"} <= set(cpu)
    footprint = json.loads((OWN / "benchmarks" / "figures-footprint.json").read_text())["figures"]["footprint"]
    assert len(footprint["in all"]) == 2
