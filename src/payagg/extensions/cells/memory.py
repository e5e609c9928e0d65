"""Moves between cells in memory: rows that travel are the objects themselves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from payagg.adapters.memory.state import MemoryRepository, State
from payagg.domain.api_key import ApiKeyStatus
from payagg.domain.archived import ArchivePart
from payagg.domain.attempt import AttemptState
from payagg.domain.audit import AuditEntry
from payagg.domain.cell_move import BusinessMove, ForwardingRecord, MoveState
from payagg.domain.values import Environment
from payagg.domain.webhook import WebhookEndpoint, secret_context
from payagg.extensions.cells.ports import KEY_DIGITS, CellNames, MovingPayment

# The tables that are found by a payment's reference, and how.
OWNED: Mapping[str, Callable[[Any], str]] = {
    "transitions": lambda key: key[0],
    "attempts": lambda key: key[0],
    "events": lambda key: key[0],
}
NAMED = ("calls", "anomalies", "resolutions", "deliveries")  # by an id of their own; the row has the reference


class MemoryCell(MemoryRepository):
    async def of_business(self, business_id: str) -> BusinessMove | None:
        found = self.state.moved_businesses.get(business_id)
        return found[0] if found is not None else None

    async def forwarding_record_of_payment(self, reference: str) -> ForwardingRecord | None:
        return self.state.moved_payments.get(reference, (None, None))[0]

    async def forwarding_record_of_key(self, secret_hash: bytes) -> ForwardingRecord | None:
        return self.state.moved_keys.get(secret_hash, (None, None))[0]

    async def names(self) -> CellNames:
        active = [key for key in self.state.api_keys.values() if key.status is ApiKeyStatus.ACTIVE]
        keys = sorted(key.secret_hash.hex()[:KEY_DIGITS] for key in active)
        moved = self.state.moved_businesses.items()
        arriving = {id for id, (move, _) in moved if move.state is MoveState.ARRIVING}
        return CellNames(keys, sorted(self.state.businesses.keys() - arriving))

    async def schema(self) -> str:
        return "memory"

    async def database(self) -> str:
        return str(id(self.state))

    async def gateways_in_use(self, business_id: str) -> set[str]:
        chosen = {gateway_id for owner, gateway_id in self.state.business_gateways if owner == business_id}
        own = set(_references(self.state, business_id))
        asked = [one for one in self.state.attempts.values() if one.reference in own and one.next_ask_at is not None]
        return chosen | {one.gateway_id for one in asked if one.gateway_id is not None}

    async def environments(self, business_id: str) -> set[Environment]:
        keys = [*self.state.api_keys.values(), *(key for _, key in self.state.moved_keys.values() if key is not None)]
        active = [key for key in keys if key.status is ApiKeyStatus.ACTIVE]
        payments = [self.state.payments[reference] for reference in _references(self.state, business_id)]
        return {one.environment for one in (*active, *payments) if one.business_id == business_id}

    async def signing_secrets(self, business_id: str | None, limit: int) -> list[tuple[str, bytes]]:
        own = [one for one in self.state.endpoints.values() if business_id in (None, one.business_id)]
        blobs = [(secret_context(one.id), blob) for one in own for blob in (one.secret, one.previous_secret) if blob]
        return blobs[:limit]


class MemoryDepartures(MemoryRepository):
    async def close(self, business_id: str, cell: str, at: datetime) -> bool:
        state = self.state
        if business_id not in state.businesses or business_id in state.moved_businesses:
            return False
        members = {key: role for key, role in state.members.items() if key[0] == business_id}
        for key in members:
            del state.members[key]
        for key_id in [key.id for key in state.api_keys.values() if key.business_id == business_id]:
            api_key = state.api_keys.pop(key_id)
            state.moved_keys[api_key.secret_hash] = ForwardingRecord(business_id, cell, True), api_key
        state.moved_businesses[business_id] = BusinessMove(business_id, cell, MoveState.LEAVING, at), members
        return True

    async def open_transactions(self) -> frozenset[str]:
        return frozenset()  # one at a time, and this is it

    async def profile(self, business_id: str) -> Any:
        settings = [own for (owner, _), own in self.state.business_gateways.items() if owner == business_id]
        endpoints = [replace(one, successful=0, failed=0) for one in _endpoints(self.state, business_id)]
        return self.state.businesses[business_id], settings, endpoints

    async def start(self, business_id: str) -> None:
        move, rows = self.state.moved_businesses[business_id]
        if move.state is MoveState.LEAVING:
            self.state.moved_businesses[business_id] = replace(move, state=MoveState.MOVING), rows

    async def take(self, business_id: str, now: datetime, limit: int) -> int:
        free = [one for one in _references(self.state, business_id) if not self._is_busy(one, now)][:limit]
        cell = self.state.moved_businesses[business_id][0].cell
        for reference in free:
            self.state.moved_payments[reference] = ForwardingRecord(business_id, cell, True), self._pack(reference)
        return len(free)

    async def has_payments(self, business_id: str) -> bool:
        return bool(_references(self.state, business_id))

    async def under_way(self, business_id: str, limit: int) -> list[MovingPayment]:
        found = [
            MovingPayment(reference, rows)
            for reference, (post, rows) in sorted(self.state.moved_payments.items())
            if post.business_id == business_id and post.is_under_way
        ]
        return found[:limit]

    async def forget_arrivals(self, references: Sequence[str]) -> None:
        for reference in references:
            post, _ = self.state.moved_payments[reference]
            self.state.moved_payments[reference] = replace(post, is_under_way=False), None

    async def belongings(self, business_id: str) -> Any:
        keys = [key for post, key in self.state.moved_keys.values() if post.business_id == business_id]
        removed = {one.id: self.state.removed.get(one.id) for one in _endpoints(self.state, business_id)}
        purged = {one.id: self.state.purged.get(one.id, 0) for one in _endpoints(self.state, business_id)}
        return keys, self.state.moved_businesses[business_id][1], _endpoints(self.state, business_id), removed, purged

    async def leave(self, business_id: str) -> bool:
        state = self.state
        if _references(self.state, business_id):
            return False
        for endpoint in _endpoints(self.state, business_id):
            del state.endpoints[endpoint.id]
            state.removed.pop(endpoint.id, None)
            state.purged.pop(endpoint.id, None)
        for own in [own for own in state.business_gateways if own[0] == business_id]:
            del state.business_gateways[own]
        del state.businesses[business_id]
        for digest, (post, _) in list(state.moved_keys.items()):
            if post.business_id == business_id:
                state.moved_keys[digest] = replace(post, is_under_way=False), None
        move, _ = state.moved_businesses[business_id]
        state.moved_businesses[business_id] = replace(move, state=MoveState.LEFT), None
        return True

    def _is_busy(self, reference: str, now: datetime) -> bool:
        attempts = [one for one in self.state.attempts.values() if one.reference == reference]
        deliveries = [one for one in self.state.deliveries.values() if one.reference == reference]
        return any(one.state is AttemptState.CLAIMED and now < one.lease_until for one in attempts) or any(
            one.token is not None and one.lease_until is not None and now < one.lease_until for one in deliveries
        )

    def _pack(self, reference: str) -> dict[str, dict[Any, Any]]:
        """Takes the payment and all that is its own out of the tables."""
        state, packed = self.state, {}
        for table, owner in OWNED.items():
            packed[table] = {key: row for key, row in getattr(state, table).items() if owner(key) == reference}
        for table in NAMED:
            packed[table] = {key: row for key, row in getattr(state, table).items() if row.reference == reference}
        packed["idempotency_keys"] = {key: own for key, own in state.idempotency_keys.items() if own == reference}
        packed["payments"] = {reference: state.payments[reference]}
        packed["archived"] = {}
        if archived := state.archived.get(reference):
            packed["archived"][reference] = archived, state.archive_parts[archived.part]
        for table, rows in packed.items():
            for key in rows:
                del getattr(state, table)[key]
        for key in [key for key in state.holds if key[0] == reference]:
            del state.holds[key]
        return packed


class MemoryArrivals(MemoryRepository):
    async def prepare(self, move: BusinessMove, profile: Any, gateways: Mapping[str, str]) -> None:
        business, settings, endpoints = profile
        if business.id in self.state.businesses:
            return
        self.state.businesses[business.id] = business
        for own in settings:
            here = gateways.get(own.gateway_id, own.gateway_id)
            self.state.business_gateways[business.id, here] = replace(own, gateway_id=here)
        self.state.endpoints.update({endpoint.id: endpoint for endpoint in endpoints})
        self.state.moved_businesses[business.id] = move, None

    async def receive(self, payments: Sequence[MovingPayment], gateways: Mapping[str, str]) -> int:
        new = [payment for payment in payments if payment.reference not in self.state.payments]
        for payment in new:
            for table, rows in payment.rows.items():
                if table != "archived":
                    getattr(self.state, table).update(rows)
            for archived, part in payment.rows["archived"].values():
                own = replace(archived, part=self._part_of(part))
                self.state.archived[own.reference] = own
            for key, attempt in payment.rows["attempts"].items():
                here = gateways.get(attempt.gateway_id, attempt.gateway_id)
                self.state.attempts[key] = replace(attempt, gateway_id=here)
            self.state.moved_payments.pop(payment.reference, None)
        return len(new)

    async def receive_audit(self, entries: Sequence[AuditEntry]) -> None:
        for entry in entries:
            self.state.audit.setdefault(entry.id, entry)

    async def open(self, business_id: str, belongings: Any) -> bool:
        keys, members, endpoints, removed, purged = belongings
        found = self.state.moved_businesses.get(business_id)
        if found is None or found[0].state is not MoveState.ARRIVING:
            return False
        del self.state.moved_businesses[business_id]
        self.state.members.update(members)
        for key in keys:
            self.state.api_keys[key.id] = key
            self.state.moved_keys.pop(key.secret_hash, None)
        for was in endpoints:
            own = self.state.endpoints[was.id]
            self.state.endpoints[was.id] = replace(
                own,
                successful=own.successful + was.successful,
                failed=own.failed + was.failed,
                is_active=own.is_active and was.is_active,
            )
            if removed[was.id] is not None:
                self.state.removed[was.id] = removed[was.id]
            self.state.purged[was.id] = self.state.purged.get(was.id, 0) + purged[was.id]
        return True

    def _part_of(self, part: ArchivePart) -> int:
        """The number that the part of this folder has here."""
        parts = self.state.archive_parts
        known = next((number for number, own in parts.items() if own.folder == part.folder), None)
        number = max(parts, default=0) + 1 if known is None else known
        if known is None:
            parts[number] = replace(part, number=number, removed_at=part.removed_at or part.started_at)
        return number


def _references(state: State, business_id: str) -> list[str]:
    return [reference for reference, one in state.payments.items() if one.business_id == business_id]


def _endpoints(state: State, business_id: str) -> list[WebhookEndpoint]:
    return [one for one in state.endpoints.values() if one.business_id == business_id]
