"""Merchants' list of adjustments over all their payments."""

from payagg.application.ports.reports import AdjustmentFilter
from payagg.application.ports.store import Store
from payagg.application.schemas.payment_search import AdjustmentPage, AdjustmentView


async def adjustment_page(store: Store, wanted: AdjustmentFilter, limit: int) -> AdjustmentPage:
    """Newest first by the latest fact of each, strictly after the cursor."""
    async with store.begin() as tx:
        found = await tx.adjustments.page(wanted, limit + 1)
    shown = [AdjustmentView.of(adjustment) for adjustment in found[:limit]]
    return AdjustmentPage(shown, shown[-1].id if shown else wanted.after, len(found) > limit)
