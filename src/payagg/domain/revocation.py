"""Revoked bearer tokens: one by its `jti`, or all issued to a subject so far."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from payagg.domain.checks import check_instant, check_member
from payagg.domain.errors import invalid

VALUE_MAX = 255  # characters


class RevokedClaim(Enum):
    TOKEN = "jti"  # noqa: S105 - a claim's name
    SUBJECT = "sub"


@dataclass(frozen=True)
class Revocation:
    """Refuses the token whose `jti`, or those issued before `issued_before` whose `sub`, is `value`.

    A token without `iat` counts as issued long ago.
    """

    claim: RevokedClaim
    value: str
    issued_before: datetime

    def __post_init__(self) -> None:
        check_member(self.claim, "claim", RevokedClaim)
        check_instant(self.issued_before, "issued_before")
        if not 0 < len(self.value) <= VALUE_MAX or not self.value.isprintable():
            raise invalid(self.claim.value, f"Must be 1 to {VALUE_MAX} printable characters.")

    def refuses(self, token_id: str | None, subject: str, issued_at: datetime) -> bool:
        if self.claim is RevokedClaim.TOKEN:
            return self.value == token_id
        return self.value == subject and issued_at < self.issued_before
