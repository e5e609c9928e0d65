"""The contract of a Store, for any adapter: give a subclass a `store` fixture with a fresh, empty store per test.

    class TestMyStore(StoreContract):
        pass

Tests run on the backend that anyio's pytest plugin is told by an `anyio_backend` fixture ("asyncio").
"""

import pytest

from payagg.testing.contracts.anomalies import AnomalyContract
from payagg.testing.contracts.archive import ArchiveContract
from payagg.testing.contracts.audit import AuditContract
from payagg.testing.contracts.businesses import BusinessContract, GatewayContract
from payagg.testing.contracts.payment_search import PaymentSearchContract
from payagg.testing.contracts.payments import PaymentContract
from payagg.testing.contracts.personal_data import PersonalDataContract
from payagg.testing.contracts.remembered_keys import RememberedKeyContract
from payagg.testing.contracts.revocations import RevocationContract
from payagg.testing.contracts.webhooks import InboxContract, QueueContract, WebhookContract


@pytest.mark.anyio
class StoreContract(
    PaymentContract,
    AnomalyContract,
    PaymentSearchContract,
    RememberedKeyContract,
    BusinessContract,
    GatewayContract,
    ArchiveContract,
    AuditContract,
    RevocationContract,
    WebhookContract,
    QueueContract,
    InboxContract,
    PersonalDataContract,
):
    """Every promise of application/store.py and application/repositories.py that a test can see."""
