"""What any Store promises of anomalies."""

from dataclasses import replace
from datetime import timedelta

import pytest

from payagg.application.repositories import AnomalyFilter
from payagg.application.store import Store
from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus
from payagg.testing.builders import NOW, REFERENCE

FIRST = Anomaly("anm_1", REFERENCE, AnomalyKind.LATE_SUCCESS, "verify", {"amounts": [1], "word": "success"}, NOW, 3)
SECOND = Anomaly("anm_2", None, AnomalyKind.UNKNOWN_REFERENCE, "event:provider_a", {}, NOW + timedelta(minutes=1))
ACKNOWLEDGED = FIRST.acknowledge("ada", NOW)
CLOSED = ACKNOWLEDGED.close("ada", "Refunded by hand.", NOW)


class AnomalyContract:
    async def test_anomalies_are_paged_newest_first_with_or_without_a_payment(self, store: Store) -> None:
        async with store.begin() as tx:
            await tx.anomalies.add(FIRST)
            await tx.anomalies.add(SECOND)
            assert await tx.anomalies.page(AnomalyFilter(), 10) == [SECOND, FIRST]
            assert await tx.anomalies.page(AnomalyFilter(), 1) == [SECOND]
            assert await tx.anomalies.page(AnomalyFilter(after="anm_2"), 10) == [FIRST]
            assert await tx.anomalies.page(AnomalyFilter(kind=AnomalyKind.LATE_SUCCESS), 10) == [FIRST]
            assert await tx.anomalies.page(AnomalyFilter(reference=REFERENCE), 10) == [FIRST]
            assert await tx.anomalies.page(AnomalyFilter(status=AnomalyStatus.CLOSED), 10) == []
            assert await tx.anomalies.of_payment(REFERENCE) == [FIRST]

    async def test_an_anomaly_is_worked_off_and_counted_until_it_is_closed(self, store: Store) -> None:
        async with store.begin() as tx:
            await tx.anomalies.add(FIRST)
        for moved, unclosed in ((ACKNOWLEDGED, {AnomalyKind.LATE_SUCCESS: 1}), (CLOSED, {})):
            async with store.begin() as tx:
                assert await tx.anomalies.lock("anm_0") is None
                await tx.anomalies.save(moved)
                assert await tx.anomalies.lock("anm_1") == moved
                assert await tx.anomalies.unclosed() == unclosed

    @pytest.mark.parametrize(
        ("stored", "wanted"), [(CLOSED, ACKNOWLEDGED), (ACKNOWLEDGED, replace(FIRST, status=AnomalyStatus.OPEN))]
    )
    async def test_no_anomaly_goes_back(self, store: Store, stored: Anomaly, wanted: Anomaly) -> None:
        async with store.begin() as tx:
            await tx.anomalies.add(FIRST)
            for moved in (ACKNOWLEDGED, CLOSED)[: 1 + (stored is CLOSED)]:
                await tx.anomalies.save(moved)
        with pytest.raises(Exception):  # noqa: B017, PT011 - each store has its own word for a broken rule
            async with store.begin() as tx:
                await tx.anomalies.save(wanted)
        async with store.begin() as tx:
            assert await tx.anomalies.lock("anm_1") == stored
