"""Both adapters pass the shipped contract against their fakes over real HTTP."""

from collections.abc import AsyncIterator

import pytest

from tests.contracts.provider import ProviderContract
from tests.contracts.provider_rig import Rig
from tests.support.provider_rigs import payaza_rig, paystack_rig


class TestPaystack(ProviderContract):
    @pytest.fixture
    async def rig(self) -> AsyncIterator[Rig]:
        async with paystack_rig() as rig:
            yield rig


class TestPayaza(ProviderContract):
    @pytest.fixture
    async def rig(self) -> AsyncIterator[Rig]:
        async with payaza_rig() as rig:
            yield rig
