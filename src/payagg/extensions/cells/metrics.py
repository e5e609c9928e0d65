"""The metrics of a cell."""

from prometheus_client.core import GaugeMetricFamily, Metric

from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.api.metrics import CounterKind, Totals, counter_families
from payagg.extensions.cells.among_cells import among_cells
from payagg.extensions.cells.gateway_replication import replication_over

COUNTERS = {
    "requests_handed_on": CounterKind("Requests sent on to the cell that has what they name.", ("cell",)),
}


async def metrics(core: Services, totals: Totals) -> list[Metric]:
    """None of one installation."""
    among = among_cells(core)
    if among is None:
        return []
    text = "This cell, and the version of its gateways: the same in every cell that is not behind."
    cell = GaugeMetricFamily("payagg_cell_info", text, labels=["cell", "gateways"])
    cell.add_metric([among.cells.own, await replication_over(core, among.others).version()], 1)
    return [*counter_families(core, totals, COUNTERS), cell]
