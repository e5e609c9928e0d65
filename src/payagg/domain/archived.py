"""The rest of a payment whose history is in the archive: enough to judge a provider's late report about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.attempt import Attempt, AttemptState, provider_reference
from payagg.domain.checks import restore


@dataclass(frozen=True)
class ArchivePart:
    """Some payments of one day in the object store: under `folder`, a file for each table and a manifest.

    `day` is how their references begin, for example `PAY-20250131`. Without `manifest`, its SHA-256, the part is still
    being written or was given up; without `removed_at` the database still holds the history too.
    """

    number: int
    day: str
    folder: str
    started_at: datetime
    payments: int = 0
    last_reference: str | None = None
    manifest: bytes | None = None
    removed_at: datetime | None = None


@dataclass(frozen=True)
class ArchivedPayment:
    """A payment whose history is in part number `part` alone. `attempts` are the gateway, the state and the provider's
    id of the transaction that paid it (None: not known), by number; `paid` is the reason of its transition to SUCCESS
    or REVERSED, which names the charge."""

    reference: str
    part: int
    attempts: tuple[tuple[str, AttemptState, str | None], ...]
    paid: str | None

    def charges(self, facts: Iterable[Anomaly]) -> list[Attempt]:
        """The attempts as far as a report is judged by them; `facts` tell of the transactions that paid them since."""
        unknown = dict.fromkeys(Attempt.__dataclass_fields__)
        late = [fact.details for fact in facts if fact.kind is AnomalyKind.LATE_SUCCESS]
        late_ids = {details.get("providerReference"): details.get("providerId") for details in late}
        return [
            restore(
                Attempt,
                {
                    **unknown,
                    "reference": self.reference,
                    "number": number,
                    "gateway": gateway,
                    "provider_reference": provider_reference(self.reference, number),
                    "state": state,
                    "provider_id": provider_id or late_ids.get(provider_reference(self.reference, number)),
                },
            )
            for number, (gateway, state, provider_id) in enumerate(self.attempts, 1)
        ]
