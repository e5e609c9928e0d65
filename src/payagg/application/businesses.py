"""Businesses and their members: what operators do from the command line."""

from dataclasses import dataclass, replace

from payagg.application.ports import Clock, Entropy, Store
from payagg.application.retry import retried
from payagg.domain.business import Business, BusinessStatus, KycStatus, Role, move_kyc
from payagg.domain.errors import ErrorCode, Refusal, invalid

NAME_MAX = 200
SUBJECT_MAX = 255


@dataclass(frozen=True)
class Businesses:
    store: Store
    clock: Clock
    entropy: Entropy

    @retried
    async def create(self, name: str, owner: str, kyc: KycStatus, status: BusinessStatus) -> Business:
        """A new business with its first OWNER; raises VALIDATION_ERROR."""
        now = self.clock.now()
        business = Business(self.entropy.id("biz", now), _text(name, "name", NAME_MAX), status, kyc, now)
        async with self.store.begin() as tx:
            await tx.businesses.add(business)
            await tx.businesses.set_member(business.id, _text(owner, "owner", SUBJECT_MAX), Role.OWNER)
        return business

    @retried
    async def change(self, business_id: str, kyc: KycStatus | None, status: BusinessStatus | None) -> Business:
        """Moves KYC along its machine and sets the status, both or neither; raises NOT_FOUND or VALIDATION_ERROR."""
        async with self.store.begin() as tx:
            business = await tx.businesses.lock(business_id)
            if business is None:
                raise Refusal(ErrorCode.NOT_FOUND, "No such business.")
            changed = replace(
                business,
                kyc_status=move_kyc(business.kyc_status, kyc) if kyc else business.kyc_status,
                status=status or business.status,
            )
            await tx.businesses.save(changed)
            return changed

    @retried
    async def set_member(self, business_id: str, subject: str, role: Role) -> None:
        """Adds a member or changes the role; raises NOT_FOUND or VALIDATION_ERROR."""
        async with self.store.begin() as tx:
            if await tx.businesses.lock(business_id) is None:
                raise Refusal(ErrorCode.NOT_FOUND, "No such business.")
            await tx.businesses.set_member(business_id, _text(subject, "sub", SUBJECT_MAX), role)


def _text(text: str, field: str, most: int) -> str:
    stripped = text.strip()
    if not 0 < len(stripped) <= most or not stripped.isprintable():
        raise invalid(field, f"Must be 1 to {most} printable characters.")
    return stripped
