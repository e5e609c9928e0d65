"""Working off anomalies, on the memory store."""

import pytest

from payagg.adapters.memory import MemoryStore
from payagg.application.anomalies import Anomalies
from payagg.application.repositories import AnomalyFilter
from payagg.domain.anomaly import ANOMALY, CLOSE_REASON_MAX, Anomaly, AnomalyKind, AnomalyStatus
from payagg.domain.errors import ErrorCode, Refusal
from payagg.testing.clocks import ManualClock, SeededEntropy
from tests.support.audit_trail import trail
from tests.support.builders import NOW, REFERENCE, an_actor

pytestmark = pytest.mark.anyio


async def with_one() -> Anomalies:
    store = MemoryStore()
    async with store.begin() as tx:
        await tx.anomalies.add(Anomaly("anm_1", REFERENCE, AnomalyKind.LATE_SUCCESS, "verify", {}, NOW))
    return Anomalies(store, ManualClock(), SeededEntropy())


async def test_an_anomaly_is_acknowledged_by_one_and_closed_with_a_reason() -> None:
    anomalies = await with_one()
    acknowledged = await anomalies.acknowledge("anm_1", by=an_actor(subject="ada"))
    assert (acknowledged.status, acknowledged.acknowledged_by) == (AnomalyStatus.ACKNOWLEDGED, "admin:ada")
    with pytest.raises(Refusal) as refused:
        await anomalies.acknowledge("anm_1", by=an_actor(subject="ben"))
    assert refused.value.code is ErrorCode.ANOMALY_NOT_OPEN
    closed = await anomalies.close("anm_1", "Refunded by hand.", by=an_actor(subject="ben"))
    assert (closed.status, closed.closed_by, closed.close_reason) == (
        AnomalyStatus.CLOSED,
        "admin:ben",
        "Refunded by hand.",
    )
    with pytest.raises(Refusal) as refused:
        await anomalies.close("anm_1", "Again.", by=an_actor(subject="ben"))
    assert refused.value.code is ErrorCode.ANOMALY_ALREADY_CLOSED
    assert await anomalies.listed(AnomalyFilter(), 10) == [closed]
    assert trail(anomalies.store) == [
        ("anomaly.acknowledge", "anm_1", {"status": ("OPEN", "ACKNOWLEDGED")}),
        (
            "anomaly.close",
            "anm_1",
            {"status": ("ACKNOWLEDGED", "CLOSED"), "closeReason": (None, "Refunded by hand.")},
        ),
    ]


@pytest.mark.parametrize("reason", ["", "   ", "x" * (CLOSE_REASON_MAX + 1)])
async def test_nothing_is_closed_without_saying_what_was_done(reason: str) -> None:
    anomalies = await with_one()
    with pytest.raises(Refusal) as refused:
        await anomalies.close("anm_1", reason, by=an_actor(subject="ada"))
    assert (refused.value.code, refused.value.field) == (ErrorCode.VALIDATION_ERROR, "reason")
    assert (await anomalies.listed(AnomalyFilter(), 10))[0].status is ANOMALY.initial


async def test_an_unknown_anomaly_is_not_found() -> None:
    anomalies = await with_one()
    for step in (
        anomalies.acknowledge("anm_2", by=an_actor(subject="ada")),
        anomalies.close("anm_2", "Done.", by=an_actor(subject="ada")),
    ):
        with pytest.raises(Refusal) as refused:
            await step
        assert refused.value.code is ErrorCode.NOT_FOUND
