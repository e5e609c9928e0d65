"""A request has one bound for all that it asks of the database; what else it waits for is not counted."""

import asyncio

import pytest

from payagg.application import deadline

MOST = 99.0


async def left() -> float:
    with deadline.Waiting(MOST) as until:
        return until - asyncio.get_running_loop().time()


async def test_what_waits_one_after_the_other_shares_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", 10.0)

    async def request() -> None:
        deadline.begin_request()
        await asyncio.sleep(0.02)
        assert 9.99 < await left() <= 10, "what is no waiting for the database counts"
        with deadline.Waiting(MOST):
            await asyncio.sleep(0.02)
        assert await left() <= 9.98
        assert await asyncio.create_task(left()) <= 9.98, "a task of the request has a bound of its own"
        assert await asyncio.create_task(left(), context=deadline.shared_context()) > 10, (
            "work of many ends with one of them"
        )
        deadline.renew()
        assert 9.99 < await left() <= 10

    await asyncio.create_task(request())
    assert await left() > 10
