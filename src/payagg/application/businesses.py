"""Businesses and their members: what operators do from the command line."""

from dataclasses import dataclass

from payagg.application.ports import Clock, Entropy, Store
from payagg.application.retry import retried
from payagg.domain.business import Business, BusinessStatus, KycStatus, Role, check_subject, move_kyc
from payagg.domain.checks import revised
from payagg.domain.errors import ErrorCode, Refusal


@dataclass(frozen=True)
class Businesses:
    store: Store
    clock: Clock
    entropy: Entropy

    @retried
    async def create(self, name: str, owner: str, kyc: KycStatus, status: BusinessStatus) -> Business:
        """A new business with its first OWNER; raises VALIDATION_ERROR."""
        now = self.clock.now()
        business = Business(self.entropy.id("biz", now), name.strip(), status, kyc, now)
        subject = owner.strip()
        check_subject(subject, "owner")
        async with self.store.begin() as tx:
            await tx.businesses.add(business)
            await tx.businesses.set_member(business.id, subject, Role.OWNER)
        return business

    @retried
    async def change(self, business_id: str, kyc: KycStatus | None, status: BusinessStatus | None) -> Business:
        """Moves KYC along its machine and sets the status, both or neither; raises NOT_FOUND or VALIDATION_ERROR."""
        async with self.store.begin() as tx:
            business = await tx.businesses.lock(business_id)
            if business is None:
                raise Refusal(ErrorCode.NOT_FOUND, "No such business.")
            changed = revised(
                business,
                kyc_status=move_kyc(business.kyc_status, kyc) if kyc else business.kyc_status,
                status=status or business.status,
            )
            await tx.businesses.save(changed)
            return changed

    @retried
    async def set_member(self, business_id: str, subject: str, role: Role) -> None:
        """Adds a member or changes the role; raises NOT_FOUND or VALIDATION_ERROR."""
        subject = subject.strip()
        async with self.store.begin() as tx:
            if await tx.businesses.lock(business_id) is None:
                raise Refusal(ErrorCode.NOT_FOUND, "No such business.")
            check_subject(subject, "sub")
            await tx.businesses.set_member(business_id, subject, role)
