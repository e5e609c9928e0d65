"""Every field of encrypted data, in memory."""

from dataclasses import dataclass, replace
from typing import Any

from payagg.adapters.memory.state import State
from payagg.application.ports.upkeep import SealedBlob, SealedKind

FIELDS = {
    SealedKind.GATEWAY_CREDENTIALS: "credentials",
    SealedKind.REPLACED_SECRETS: "replaced_secrets",
    SealedKind.ENDPOINT_CURRENT: "secret",
    SealedKind.ENDPOINT_PREVIOUS: "previous_secret",
}
OF_GATEWAYS = (SealedKind.GATEWAY_CREDENTIALS, SealedKind.REPLACED_SECRETS)


@dataclass(frozen=True)
class MemorySealed:
    state: State

    async def page(self, kind: SealedKind, after: str, limit: int) -> list[SealedBlob]:
        found = [(id, getattr(owner, FIELDS[kind])) for id, owner in sorted(self._owners(kind).items()) if id > after]
        return [SealedBlob(id, blob) for id, blob in found if blob is not None][:limit]

    async def replace(self, kind: SealedKind, owner_id: str, before: bytes, after: bytes) -> bool:
        owners = self._owners(kind)
        if getattr(owners.get(owner_id), FIELDS[kind], None) != before:
            return False
        if kind not in OF_GATEWAYS:
            self.state.ensure_still(owners[owner_id].business_id)
        owners[owner_id] = replace(owners[owner_id], **{FIELDS[kind]: after})
        return True

    def _owners(self, kind: SealedKind) -> dict[str, Any]:
        return self.state.gateways if kind in OF_GATEWAYS else self.state.endpoints
