"""What any Store promises of requests to end a payment by hand."""

from dataclasses import replace
from datetime import timedelta

import pytest
from payagg_testing.builders import NOW, REFERENCE

from payagg.application.ports.store import Store
from payagg.domain.resolution import Resolution

OTHER = "PAY-20250131-OTHER1"
FIRST = Resolution("res_1", REFERENCE, "Account closed.", "Case 4711.", "admin:ada", NOW)
SECOND = replace(FIRST, id="res_2", evidence="Case 4712.", requested_at=NOW + timedelta(days=2))
CONFIRMED = replace(SECOND, confirmed_by="admin:ben", confirmed_at=SECOND.requested_at)


class ResolutionContract:
    async def test_the_last_request_to_end_a_payment_is_found_and_confirmed(self, store: Store) -> None:
        async with store.begin() as tx:
            assert await tx.resolutions.latest(REFERENCE) is None
            for one in (FIRST, replace(SECOND, id="res_3", reference=OTHER), SECOND):
                await tx.resolutions.add(one)
            assert await tx.resolutions.latest(REFERENCE) == SECOND
            await tx.resolutions.confirm(CONFIRMED)
        async with store.begin() as tx:
            assert await tx.resolutions.of_payment(REFERENCE) == [FIRST, CONFIRMED]

    @pytest.mark.parametrize(
        "wrong",
        [replace(CONFIRMED, confirmed_by="admin:eve"), replace(FIRST, confirmed_by="admin:ada", confirmed_at=NOW)],
        ids=["confirmed again", "by who asked"],
    )
    async def test_a_request_is_confirmed_once_and_by_another(self, store: Store, wrong: Resolution) -> None:
        async with store.begin() as tx:
            for one in (FIRST, SECOND):
                await tx.resolutions.add(one)
            await tx.resolutions.confirm(CONFIRMED)
        with pytest.raises(Exception):  # noqa: B017, PT011 - each store has its own word for a broken rule
            async with store.begin() as tx:
                await tx.resolutions.confirm(wrong)
        async with store.begin() as tx:
            assert await tx.resolutions.of_payment(REFERENCE) == [FIRST, CONFIRMED]
