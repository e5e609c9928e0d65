"""Postgres keeps every promise that a store makes."""

from payagg_testing.builders import MINUTE, an_endpoint

from tests.contracts.database import Database
from tests.contracts.store import StoreContract
from tests.contracts.webhooks import claim, emit_one, with_endpoints


class TestPostgresStore(StoreContract):
    """Each test has an empty database of its own."""

    async def test_of_slow_lanes_those_with_fewest_in_flight_are_served_first(self, db: Database) -> None:
        lanes = ["whe_1", "whe_2", "whe_3"]
        await with_endpoints(db, *map(an_endpoint, lanes))
        for number in range(15):
            await emit_one(db, number, lanes[number // 5])
            if number == 4:
                assert len(await claim(db, MINUTE, limit=2)) == 2
        served = [one.delivery.partition for _ in range(2) for one in await claim(db, MINUTE, failing=2, slow=lanes)]
        assert sorted(served) == ["whe_2", "whe_2", "whe_3", "whe_3"]
