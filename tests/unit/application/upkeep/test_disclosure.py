"""What a payer is told: all payments of that address, who was told of them, and nothing of anybody else."""

from payagg_testing.builders import AN_ADMIN, NOW, a_payment
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore

from payagg.application.upkeep.disclosure import Disclosures, Recipient
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import AttemptState
from payagg.domain.checks import with_changes
from tests.support.memory_shop import MemoryShop
from tests.support.refusals import refused_with

EMAIL = "ada@example.com"


async def test_a_payer_is_told_of_every_payment_and_of_nobody_elses() -> None:
    store = MemoryStore()
    own = [a_payment(reference=f"PAY-20250131-00000{n}", customer_email=EMAIL) for n in (1, 2)]
    other = a_payment(reference="PAY-20250131-000003", customer_email="bob@example.com")
    store.state.payments.update({payment.reference: payment for payment in (*own, other)})
    disclosures = Disclosures(store, ManualClock(NOW), SeededEntropy())
    told = await disclosures.make(EMAIL.upper(), by=AN_ADMIN)
    assert [payment.reference for payment in told.payments] == [payment.reference for payment in own]
    entries = list(store.state.audit.values())
    assert [(entry.action, entry.object_id) for entry in entries] == [
        ("payment.disclose", payment.reference) for payment in own
    ]
    assert EMAIL not in repr(entries).lower()
    assert (await refused_with(disclosures.make("%", by=AN_ADMIN)))[1] == "email"


async def test_a_payer_is_told_which_provider_and_endpoint_heard_of_the_payment() -> None:
    shop = await MemoryShop().open()
    reference = await shop.handed_over()
    attempts, payments = shop.store.state.attempts, shop.store.state.payments
    payments[reference] = with_changes(payments[reference], customer_email=EMAIL)
    disclosures = Disclosures(shop.store, shop.clock, SeededEntropy())
    [told] = (await disclosures.make(EMAIL, by=AN_ADMIN)).payments
    assert told.recipients == [Recipient("provider_a", attempts[reference, 1].created_at)]


async def test_a_payer_is_told_the_provider_of_a_payment_whose_history_is_in_the_archive() -> None:
    store = MemoryStore()
    payment = a_payment(customer_email=EMAIL)
    store.state.payments[payment.reference] = payment
    store.state.archive_parts[1] = ArchivePart(1, payment.reference[:12], "f", NOW)
    tried = (("provider_b", AttemptState.REFUSED, None), ("provider_a", AttemptState.HANDED_OFF, "1"))
    store.state.archived[payment.reference] = ArchivedPayment(payment.reference, 1, tried, None)
    [told] = (await Disclosures(store, ManualClock(NOW), SeededEntropy()).make(EMAIL, by=AN_ADMIN)).payments
    assert told.recipients == [Recipient("provider_b", None), Recipient("provider_a", None)]
