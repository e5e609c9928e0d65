"""The context of a merchant's page: one business and one environment, both in the address, so no page, tab or bookmark
ever shows the other environment's data."""

from dataclasses import dataclass
from typing import Any

from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import Environment
from payagg.extensions.console.api import part
from payagg.extensions.console.page_request import PageRequest

HOME = "/console/business/{business_id:str}"
BASE = HOME + "/{environment:str}"


@dataclass(frozen=True)
class BusinessContext:
    """`home` and `url` are addresses of the console, `api` a path of the API."""

    business: dict[str, Any]
    environment: str
    home: str

    @property
    def name(self) -> str:
        return self.environment.lower()

    @property
    def url(self) -> str:
        return f"{self.home}/{self.name}"

    @property
    def api(self) -> str:
        return f"/merchant/businesses/{part(self.business['id'])}"


async def business_context(request: PageRequest) -> BusinessContext:
    """Raises NOT_FOUND for an unknown environment, and ApiRefused for a business that is not the user's."""
    environment = request.path["environment"].upper()
    if environment not in Environment.__members__ or request.path["environment"].isupper():
        raise Refusal(ErrorCode.NOT_FOUND)
    business_id = part(request.path["business_id"])
    business = await request.api.get(f"/merchant/businesses/{business_id}")
    return BusinessContext(business, environment, f"/console/business/{business_id}")
