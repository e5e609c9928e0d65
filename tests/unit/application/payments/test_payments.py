"""Initiate, read and simulate on the memory store."""

from datetime import datetime
from typing import Any

import pytest
from payagg_testing.builders import AN_ADMIN, HOUR, SANDBOX, a_business, an_actor
from payagg_testing.clocks import SeededEntropy

from payagg.application.payments.payments import REFERENCE_DRAWS, Initiation
from payagg.application.ports.outside import Unavailable
from payagg.application.schemas.payments import InitiatePayment
from payagg.application.schemas.payments import TestPayment as DashboardPayment
from payagg.application.use_case import TRIES
from payagg.domain.audit import Action, ActorRealm
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import GatewayStatus
from payagg.domain.payment import SIMULATED, Payment
from payagg.domain.values import Environment
from tests.support.audit_trail import entries
from tests.support.memory_shop import SHOP, MemoryShop
from tests.support.refusals import refused_with

BUSINESS = a_business(SHOP)
DUPLICATE = (ErrorCode.DUPLICATE_PAYMENT, "idempotencyKey")


class DrawnReferences(SeededEntropy):
    """Draws the given references, the last one for ever."""

    def __init__(self, *drawn: str) -> None:
        super().__init__()
        self.left, self.draws = list(drawn), 0

    def reference(self, now: datetime) -> str:
        self.draws += 1
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


async def initiate(shop: MemoryShop, environment: Environment = SANDBOX, **fields: Any) -> Initiation:
    command = InitiatePayment(**{"amount": 500, **fields})
    return await shop.payments.initiate(command, BUSINESS, environment)


async def initiate_test(shop: MemoryShop, **fields: Any) -> Initiation:
    """The same payment each time, unless fields say otherwise."""
    command = DashboardPayment(**{"amount": 500, "customer_name": "Ada", "idempotency_key": "k", **fields})
    return await shop.payments.initiate_test(command, BUSINESS, by=AN_ADMIN)


def outcome(initiation: Initiation) -> tuple[Any, bool, bool]:
    return initiation.payment, initiation.created, initiation.mismatch


@pytest.mark.parametrize("environment", Environment)
async def test_a_replay_answers_the_same_until_the_payment_ends(shop: MemoryShop, environment: Environment) -> None:
    asked = {"idempotency_key": "k", "gateway": "provider_a"}
    first = (await initiate(shop, environment, **asked)).payment
    for slug in ("provider_a", "provider_b"):
        await shop.change(slug, status=GatewayStatus.DISABLED)
    assert outcome(await initiate(shop, environment, **asked)) == (first, False, False)
    assert outcome(await initiate(shop, environment, **asked, currency="NGN")) == (first, False, False)  # the default
    assert outcome(await initiate(shop, environment, **asked, amount=501)) == (first, False, True)
    # Without the payer, and so without the fingerprint, nothing can be compared.
    shop.store.state.payments[first.reference] = (await shop.payment(first.reference)).without_payer()
    assert outcome(await initiate(shop, environment, **asked, amount=501)) == (first, False, False)
    shop.clock.move(HOUR)
    assert await refused_with(initiate(shop, environment, **asked)) == DUPLICATE
    fresh = initiate(shop, environment, gateway="provider_a")
    assert await refused_with(fresh) == (ErrorCode.GATEWAY_NOT_FOUND, "gateway")


async def test_a_taken_reference_is_drawn_again_and_so_are_few() -> None:
    taken = ("PAY-20250131-AAAAA0", "PAY-20250131-AAAAA1")
    entropy = DrawnReferences(taken[0], taken[0], taken[0], taken[1])
    shop = await MemoryShop(entropy=entropy).open()
    assert await shop.initiated() == taken[0]
    assert await shop.initiated(amount=7000) == taken[1]
    assert entropy.draws == 4
    assert (await shop.payment(taken[0])).amount == 150000
    entropy.draws = 0
    with pytest.raises(Unavailable):
        await shop.initiated()
    assert entropy.draws == REFERENCE_DRAWS + 1


async def test_of_two_test_payments_with_one_key_the_later_gets_the_earlier(
    shop: MemoryShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, find, unseen = await initiate_test(shop), shop.store.find_original, list[None]()

    async def blind(*arguments: Any) -> Payment | None:
        """Another caller adds it just then."""
        return unseen.pop() if unseen else await find(*arguments)

    monkeypatch.setattr(shop.store, "find_original", blind)
    for times in (1, 2):  # the second of which finds the original gone, and begins again
        unseen += [None] * times
        assert outcome(await initiate_test(shop)) == (first.payment, False, False)
    unseen += [None] * (1 + TRIES)
    with pytest.raises(Unavailable):
        await initiate_test(shop)
    shop.clock.move(HOUR)
    unseen[:] = [None]
    assert await refused_with(initiate_test(shop)) == DUPLICATE


@pytest.mark.parametrize("outcome", ["success", "Failed", "REVERSED"])
async def test_simulate_moves_an_open_payment_once(shop: MemoryShop, outcome: str) -> None:
    reference, late = await shop.initiated(), await shop.initiated()
    odd = shop.payments.simulate(reference, "PENDING", SHOP, by=AN_ADMIN)
    assert await refused_with(odd) == (ErrorCode.VALIDATION_ERROR, "outcome")
    moved, status = await shop.payments.simulate(reference, outcome, SHOP, by=AN_ADMIN), outcome.upper()
    assert moved.status.value == status
    [transition] = await shop.store.transaction.payments.transitions(reference)
    assert (transition.actor, transition.reason, transition.to_status.value) == (AN_ADMIN.name, SIMULATED, status)
    [entry] = await entries(shop.store, action=Action.PAYMENT_SIMULATE.value)
    assert (entry.object_id, entry.business_id) == (reference, SHOP)
    assert entry.changes == {"status": {"before": "INITIATED", "after": status}}
    assert await shop.events(reference) == [f"payment.{status.lower()}"]
    other, key = await shop.initiated(), an_actor(ActorRealm.KEY, "key_1")
    assert (await shop.payments.simulate(other, outcome, SHOP, by=key)).status.value == status
    [transition] = await shop.store.transaction.payments.transitions(other)
    assert (transition.actor, transition.reason) == ("key:key_1", SIMULATED)
    assert await entries(shop.store, action=Action.PAYMENT_SIMULATE.value) == [entry], "a key's are many"
    shop.clock.move(HOUR)
    for ended in (reference, late):
        again = shop.payments.simulate(ended, "SUCCESS", SHOP, by=AN_ADMIN)
        assert await refused_with(again) == (ErrorCode.PAYMENT_ALREADY_FINAL, None)
