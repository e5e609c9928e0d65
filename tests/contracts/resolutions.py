"""What any Store promises of requests to end a payment by hand."""

from dataclasses import replace
from datetime import timedelta

import pytest
from payagg_testing.builders import NOW, REFERENCE

from payagg.domain.resolution import Resolution
from tests.contracts.database import Database, breaks_a_rule, put

OTHER = "PAY-20250131-OTHER1"
FIRST = Resolution("res_1", REFERENCE, "Account closed.", "Case 4711.", "admin:ada", NOW)
SECOND = replace(FIRST, id="res_2", evidence="Case 4712.", requested_at=NOW + timedelta(days=2))
CONFIRMED = replace(SECOND, confirmed_by="admin:ben", confirmed_at=SECOND.requested_at)


class ResolutionContract:
    async def test_the_last_request_to_end_a_payment_is_found_and_confirmed(self, db: Database) -> None:
        assert await db.resolutions.latest(REFERENCE) is None
        await put(db, FIRST, replace(SECOND, id="res_3", reference=OTHER), SECOND)
        assert await db.resolutions.latest(REFERENCE) == SECOND
        await db.resolutions.confirm(CONFIRMED)
        assert await db.resolutions.of_payment(REFERENCE) == [FIRST, CONFIRMED]

    @pytest.mark.parametrize(
        "wrong",
        [replace(CONFIRMED, confirmed_by="admin:eve"), replace(FIRST, confirmed_by="admin:ada", confirmed_at=NOW)],
        ids=["confirmed again", "by who asked"],
    )
    async def test_a_request_is_confirmed_once_and_by_another(self, db: Database, wrong: Resolution) -> None:
        await put(db, FIRST, SECOND)
        await db.resolutions.confirm(CONFIRMED)
        await breaks_a_rule(db.resolutions.confirm(wrong))
        assert await db.resolutions.of_payment(REFERENCE) == [FIRST, CONFIRMED]
