"""What a payer is told; tests/integration/postgres/test_personal_data.py has the rest."""

from payagg_testing.builders import AN_ADMIN, NOW, a_payment
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore

from payagg.application.upkeep.disclosure import Disclosures, Recipient
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import AttemptState


async def test_a_payer_is_told_the_provider_of_a_payment_whose_history_is_in_the_archive() -> None:
    store = MemoryStore()
    payment = a_payment(customer_email="ada@example.com")
    store.state.payments[payment.reference] = payment
    store.state.archive_parts[1] = ArchivePart(1, payment.reference[:12], "f", NOW)
    tried = (("provider_b", AttemptState.REFUSED, None), ("provider_a", AttemptState.HANDED_OFF, "1"))
    store.state.archived[payment.reference] = ArchivedPayment(payment.reference, 1, tried, None)
    [told] = (await Disclosures(store, ManualClock(NOW), SeededEntropy()).make("ada@example.com", by=AN_ADMIN)).payments
    assert told.recipients == [Recipient("provider_b", None), Recipient("provider_a", None)]
