"""A business with one of everything, for moving it between two stores, and all of it as one store has it."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from payagg_testing.builders import (
    NOW,
    WAY_TO,
    a_business,
    a_choice,
    a_delivery,
    a_gateway,
    a_key,
    a_payment,
    an_attempt,
    an_endpoint,
    an_entry,
    an_event,
    an_id,
)
from payagg_testing.clocks import ManualClock, SeededEntropy

from payagg.application.ports.payments import ProviderCall
from payagg.application.ports.store import Store
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import AttemptState
from payagg.domain.audit import AuditFilter
from payagg.domain.business import Role
from payagg.domain.gateway import Gateway, GatewayStatus
from payagg.domain.payment import Status
from payagg.domain.resolution import Resolution
from payagg.domain.values import Environment
from payagg.domain.webhook import secret_context
from payagg.entrypoints.extensions import NAMES
from payagg.extensions.cells.move import CellMove
from tests.contracts.database import Database, autocommit, put
from tests.support.state_machine.scripted import LabelVault

SHOP = "biz_1"
SANDBOX = Environment.SANDBOX
VAULT, ENTROPY = LabelVault(), SeededEntropy()
CREDENTIALS = b'{"sandboxSecretKey": "sk_test_1"}'
REFERENCES = tuple(f"PAY-20250131-00000{number}" for number in range(5))


def the_gateway(id: str, **fields: Any) -> Gateway:
    """provider_a's, under an id of its cell."""
    sealed = VAULT.seal(CREDENTIALS, id)
    return a_gateway("provider_a", GatewayStatus.DISABLED, **{"id": id, "credentials": sealed, **fields})


async def open_cells(source: Store, target: Store) -> None:
    """The business at `source` alone; each cell has the gateway under its own id."""
    for store, gateway in ((source, the_gateway("gw_here")), (target, the_gateway("gw_there"))):
        await autocommit(store).gateways.add(gateway)
    async with source.begin() as tx:
        await tx.businesses.add(a_business())
        for subject, role in (("ada", Role.OWNER), ("bo", Role.MEMBER)):
            await tx.members.add(SHOP, subject, role)
        await put(tx, a_key(), a_key("key_2", Environment.LIVE), *(an_entry(n, business_id=SHOP) for n in (1, 2)))
        await tx.gateway_choices.save(a_choice(the_gateway("gw_here"), is_enabled=True, is_default=True))
        for id in ("whe_1", "whe_2"):
            sealed = VAULT.seal(b"whsec", secret_context(id))
            await tx.endpoints.add(an_endpoint(id, secret=sealed, is_active=id == "whe_1"))
    await autocommit(source).api_keys.save(a_key("key_2", Environment.LIVE).revoke(NOW))
    for number, status in enumerate(Status):
        await _add_payment(source, number, status)


async def _add_payment(store: Store, number: int, status: Status) -> None:
    reference = REFERENCES[number]
    payment = a_payment(
        reference=reference,
        idempotency_key=f"order {number}",
        customer_email="payer@example.com",
        metadata={"order": number, "price": 0.1, "tags": ["a", None]},
        fingerprint=bytes(32),
    )
    async with store.begin() as tx:
        await tx.payments.add(payment)
        attempt = an_attempt(payment, 1, AttemptState.HANDED_OFF, gateway_id="gw_here", next_ask_at=NOW)
        await tx.attempts.add(attempt)
        call = ProviderCall(
            an_id("pcl", number), reference, 1, "provider_a", "start_charge", "REDIRECT", None, 12, "payer", NOW
        )
        await tx.provider_calls.add(call)
        if status is Status.INITIATED:
            return
        moved, transition = payment.move(WAY_TO[status], NOW, actor="test")
        assert transition is not None
        await tx.payments.save(moved, transition)
        event = an_event(an_id("evt", number), reference=reference, type=f"payment.{status.value.lower()}")
        deliveries = [a_delivery(event, an_id("dlv", number))]
        deliveries.append(a_delivery(event, an_id("dlv", 10 + number), None, "https://shop.example/own"))
        await tx.webhook_events.emit(event, deliveries)
        anomaly = Anomaly(an_id("anm", number), reference, AnomalyKind.MISMATCH, "verify", {"word": "success"}, NOW)
        await tx.anomalies.add(anomaly.assign("ada").note("Asked the provider.", "admin:ada", NOW))
        asked = Resolution(an_id("res", number), reference, "Account closed.", "Case 4711.", "admin:ada", NOW)
        await tx.resolutions.add(asked)
        if status is Status.FAILED:
            await tx.resolutions.confirm(replace(asked, confirmed_by="admin:ben", confirmed_at=NOW))
    acknowledged = anomaly.acknowledge("ada", NOW)
    if status in (Status.SUCCESS, Status.FAILED):
        await autocommit(store).anomalies.save(acknowledged)
    if status is Status.SUCCESS:
        await autocommit(store).anomalies.save(acknowledged.close("ada", "Refunded.", NOW))
    if status is Status.REVERSED and "archive" in NAMES:
        await _archive(store, reference)


async def _archive(store: Store, reference: str) -> None:
    """As `payagg archive --remove` leaves it."""
    from payagg.extensions.archive.postgres import ArchiveRows, PartRows

    place = f"{reference[:12]}/arc_{reference[-6:]}"
    part = await autocommit(store).of(PartRows).begin(reference[:12], place, NOW)
    async with store.begin() as tx:
        await tx.of(PartRows).finish(replace(part, payments=1, last_reference=reference, manifest=bytes(32)))
        calls = [(reference, call.id) for call in await tx.provider_calls.of_payment(reference)]
        tried = (("provider_a", AttemptState.HANDED_OFF, "P-C 1"),)
        await tx.of(ArchiveRows).move([ArchivedPayment(reference, part.number, tried, "charge_1")], calls)


async def everything(store: Store, gateway_id: str) -> dict[str, Any]:
    """All of the business that `store` has, its gateway under this id; the audit trail without the moves."""
    async with store.begin() as tx:
        entries = await tx.audit.list_entries(AuditFilter(business_id=SHOP), None, 100)
        keys = [await tx.api_keys.get(SHOP, id) for id in ("key_1", "key_2")]
        settings = (await tx.gateway_choices.of_business(SHOP)).settings.values()
        return {
            "business": await tx.businesses.get(SHOP),
            "members": await tx.members.of_business(SHOP),
            "keys": keys,
            "settings": [replace(own, gateway_id=_plain(own.gateway_id, gateway_id) or "") for own in settings],
            "endpoints": await tx.endpoints.of_business(SHOP),
            "logs": [
                await tx.webhook_events.deliveries(one.id, 0, 100) for one in await tx.endpoints.of_business(SHOP)
            ],
            "payments": [await tx.payments.get(reference) for reference in REFERENCES],
            "transitions": [await tx.payments.transitions(reference) for reference in REFERENCES],
            "attempts": [
                [replace(one, gateway_id=_plain(one.gateway_id, gateway_id)) for one in attempts]
                for attempts in [await tx.attempts.of_payment(reference) for reference in REFERENCES]
            ],
            "archived": [_folder(await tx.payments.archived(reference)) for reference in REFERENCES],
            "calls": [await tx.provider_calls.of_payment(reference) for reference in REFERENCES],
            "events": [await tx.webhook_events.of_payment(reference) for reference in REFERENCES],
            "resolutions": [await tx.resolutions.of_payment(reference) for reference in REFERENCES],
            "anomalies": [await tx.anomalies.of_payment(reference) for reference in REFERENCES],
            "audit": [one for one in entries if one.action != "business.move"],
        }


def _folder(found: tuple[ArchivedPayment, ArchivePart] | None) -> tuple[ArchivedPayment, str] | None:
    """Where an archived payment's history is, without the number that each cell has of its own."""
    return None if found is None else (replace(found[0], part=0), found[1].folder)


def _plain(found: str | None, gateway_id: str) -> str | None:
    """The same word for the gateway of either cell."""
    return "gateway" if found == gateway_id else found


async def originals(store: Store) -> list[str | None]:
    """The references that the idempotency keys hold."""
    found = [await store.find_original(SHOP, SANDBOX, f"order {number}") for number in range(len(REFERENCES))]
    return [payment.reference if payment is not None else None for payment in found]


@dataclass
class Removal:
    """A move of the business from one store to another, its clock moving on with each pause."""

    source: Store
    target: Store
    own: str = "PAY"
    other: str = "PBX"
    clock: ManualClock = field(default_factory=ManualClock)
    told: list[str] = field(default_factory=list)

    @property
    def here(self) -> Database:
        return autocommit(self.source)

    @property
    def there(self) -> Database:
        return autocommit(self.target)

    def command(self, batch: int = 2) -> CellMove:
        return CellMove(
            self.source,
            self.target,
            self.clock,
            ENTROPY,
            VAULT,
            self.own,
            self.other,
            self.told.append,
            batch,
            self._pause,
        )

    async def _pause(self, _: float) -> None:
        self.clock.move(timedelta(seconds=10))
