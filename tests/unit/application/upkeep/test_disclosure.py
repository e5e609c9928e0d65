"""What a payer is told: all payments of that address, who was told of them, and nothing of anybody else."""

from payagg_testing.builders import AN_ADMIN, NOW, a_payment
from payagg_testing.clocks import START, ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore

from payagg.application.upkeep.disclosure import Disclosures, Recipient
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import AttemptState
from tests.support.audit_trail import trail
from tests.support.memory_shop import MemoryShop
from tests.support.refusals import refused_with

EMAIL = "ada@example.com"


async def test_a_payer_is_told_of_every_payment_and_who_heard_of_it_and_of_nobody_elses(shop: MemoryShop) -> None:
    own = sorted([await shop.handed_over(customer_email=EMAIL) for _ in range(2)])
    await shop.handed_over(customer_email="bob@example.com")
    disclosures = Disclosures(shop.store, shop.clock, SeededEntropy())
    told = (await disclosures.make(EMAIL.upper(), by=AN_ADMIN)).payments
    assert [one.reference for one in told] == own
    assert [one.recipients for one in told] == [[Recipient("provider_a", START)]] * 2
    assert trail(shop.store) == [("payment.disclose", reference, {}) for reference in own]
    assert EMAIL not in repr(shop.store.state.audit).lower()
    assert (await refused_with(disclosures.make("%", by=AN_ADMIN)))[1] == "email"


async def test_a_payer_is_told_the_provider_of_a_payment_whose_history_is_in_the_archive() -> None:
    store = MemoryStore()
    payment = a_payment(customer_email=EMAIL)
    store.state.payments[payment.reference] = payment
    store.state.archive_parts[1] = ArchivePart(1, payment.reference[:12], "f", NOW)
    tried = (("provider_b", AttemptState.REFUSED, None), ("provider_a", AttemptState.HANDED_OFF, "1"))
    store.state.archived[payment.reference] = ArchivedPayment(payment.reference, 1, tried, None)
    [told] = (await Disclosures(store, ManualClock(NOW), SeededEntropy()).make(EMAIL, by=AN_ADMIN)).payments
    assert told.recipients == [Recipient("provider_b", None), Recipient("provider_a", None)]
