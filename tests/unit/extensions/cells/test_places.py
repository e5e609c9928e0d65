"""What of a request names the cell that it is for."""

from collections.abc import Iterable

from payagg.domain.api_key import hash_secret
from payagg.extensions.cells.places import By, Destination, business_context

KEY = "ssk_live_" + "a1" * 24
BUSINESS = "biz_" + "0" * 32
REFERENCE = "PBX-20250131-7K2M9X"
BY_KEY = Destination(By.KEY, hash_secret(KEY).hex())
HOME, BY_BUSINESS = Destination(By.HOME), Destination(By.BUSINESS, BUSINESS)
BY_REFERENCE = Destination(By.REFERENCE, REFERENCE)


def told(paths: Iterable[str], header: tuple[bytes, bytes]) -> dict[str, Destination]:
    return {path: business_context("GET", path, [header]) for path in paths}


def test_a_key_goes_where_the_key_is_and_without_one_the_path_tells() -> None:
    with_key = {
        "/api/v1/payments/initiate": BY_KEY,
        f"/api/v1/payments/{REFERENCE}": BY_KEY,
        "/api/v1/events": BY_KEY,
        f"/api/v1/public/payments/{REFERENCE}/verify": BY_REFERENCE,
        f"/checkout/{REFERENCE}/launch": BY_REFERENCE,
        "/api/v1/webhooks/provider_a/live": Destination(By.EVENT),
        "/docs/index.html": HOME,
        "/internal/cell/gateways": HOME,
    }
    assert told(with_key, (b"authorization", b"Bearer " + KEY.encode())) == with_key
    without = {
        "/api/v1/payments/context": HOME,
        f"/api/v1/payments/{REFERENCE}": HOME,
        "/api/v1/merchant/businesses": Destination(By.OWN_LIST),
        f"/api/v1/merchant/businesses/{BUSINESS}/api-keys": BY_BUSINESS,
        f"/api/v1/merchant/businesses/{BUSINESS}/payments/{REFERENCE}/story": BY_BUSINESS,
        f"/api/v1/admin/businesses/{BUSINESS}": BY_BUSINESS,
        f"/api/v1/admin/payments/{REFERENCE}/story": BY_REFERENCE,
        "/api/v1/admin/businesses": HOME,
        f"/console/businesses/{BUSINESS}": BY_BUSINESS,
        "/checkout/PBX-20250131-7K2M9X-": HOME,
    }
    assert told(without, (b"authorization", b"Bearer eyJ")) == without


def test_an_administrator_chooses_a_cell_where_nothing_else_tells() -> None:
    chosen = {"/api/v1/admin/businesses": Destination(By.CHOICE, "PCX"), "/api/v1/public/gateways/gw_a/logo": HOME}
    chosen[f"/api/v1/admin/businesses/{BUSINESS}"] = BY_BUSINESS
    assert told(chosen, (b"x-payagg-cell", b"PCX")) == chosen
