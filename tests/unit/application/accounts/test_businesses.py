"""What operators do with businesses and members, on the memory store."""

import pytest
from payagg_testing.builders import AN_ADMIN
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore

from payagg.application.accounts.businesses import Businesses
from payagg.domain.business import BusinessStatus, KycStatus, Role
from payagg.domain.errors import ErrorCode
from tests.support.audit_trail import trail
from tests.support.refusals import refused_with

PENDING, ACTIVE = KycStatus.PENDING, BusinessStatus.ACTIVE


@pytest.fixture
def businesses() -> Businesses:
    return Businesses(MemoryStore(), ManualClock(), SeededEntropy())


async def created(businesses: Businesses, name: str = "Ada's", owner: str = "ada") -> str:
    return (await businesses.create(name, owner, KycStatus.NOT_SUBMITTED, ACTIVE, by=AN_ADMIN)).id


@pytest.mark.rule("keys.6")
async def test_a_business_keeps_an_owner(businesses: Businesses) -> None:
    made = await created(businesses)
    less = [businesses.set_member(made, "ada", role, by=AN_ADMIN) for role in (Role.ADMIN, Role.MEMBER)]
    for call in (*less, businesses.remove_member(made, "ada", by=AN_ADMIN)):
        assert await refused_with(call) == (ErrorCode.LAST_OWNER, None)
    for subject, role in (("bo", Role.OWNER), ("bo", Role.OWNER), ("ada", Role.MEMBER)):
        await businesses.set_member(made, subject, role, by=AN_ADMIN)
    await businesses.remove_member(made, "ada", by=AN_ADMIN)
    assert [(m.subject, m.role) for m in (await businesses.detail(made)).members] == [("bo", Role.OWNER)]
    assert trail(businesses.store)[2:] == [
        ("member.set", "bo", {"role": (None, "OWNER")}),
        ("member.set", "ada", {"role": ("OWNER", "MEMBER")}),
        ("member.remove", "ada", {"role": ("MEMBER", None)}),
    ]
    # One that has none can be given one step by step.
    async with businesses.store.begin() as tx:
        await tx.members.remove(made, "bo")
    for subject, role in (("bo", Role.MEMBER), ("ada", Role.OWNER)):
        await businesses.set_member(made, subject, role, by=AN_ADMIN)
