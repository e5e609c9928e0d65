"""The contract of a Store, for any adapter: give a subclass a `store` fixture with a fresh, empty store per test.

    class TestMyStore(StoreContract):
        pass

Tests run on the backend that anyio's pytest plugin is told by an `anyio_backend` fixture ("asyncio").
"""

from tests.contracts.anomalies import AnomalyContract
from tests.contracts.audit import AuditContract
from tests.contracts.businesses import BusinessContract, GatewayContract
from tests.contracts.database import OnDatabase
from tests.contracts.payment_search import PaymentSearchContract
from tests.contracts.payments import PaymentContract
from tests.contracts.reconciliations import ReconciliationContract
from tests.contracts.upkeep import UpkeepContract
from tests.contracts.webhooks import InboxContract, QueueContract, WebhookContract


class StoreContract(
    PaymentContract,
    AnomalyContract,
    ReconciliationContract,
    PaymentSearchContract,
    BusinessContract,
    GatewayContract,
    AuditContract,
    WebhookContract,
    QueueContract,
    InboxContract,
    UpkeepContract,
    OnDatabase,
):
    """Every promise of application/ports/ that a test can see."""
