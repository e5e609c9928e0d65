"""The memory store keeps the contract that Postgres keeps."""

import asyncio

import pytest
from payagg_testing.builders import a_payment
from payagg_testing.memory import MemoryStore

from tests.contracts.store import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    async def test_a_transaction_inside_a_transaction_is_a_defect_told_at_once(self, store: MemoryStore) -> None:
        async with store.begin():
            with pytest.raises(RuntimeError):
                await store.find_payment("PAY-20250131-7K2M9X")

    async def test_transactions_of_several_tasks_follow_each_other(self, store: MemoryStore) -> None:
        order = []

        async def work(name: str) -> None:
            async with store.begin():
                order.append(name)
                await asyncio.sleep(0)
                order.append(name)

        await asyncio.gather(*(work(name) for name in "abc"))
        assert order == ["a", "a", "b", "b", "c", "c"]

    async def test_a_cancelled_transaction_is_undone(self, store: MemoryStore) -> None:
        async def work() -> None:
            async with store.begin():
                store.state.payments["x"] = a_payment()
                await asyncio.sleep(60)

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.state.payments == {}
