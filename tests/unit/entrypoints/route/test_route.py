"""Where the router sends a request by its form alone, and what it keeps of what cells told it."""

import asyncio

import pytest

from payagg.domain.api_key import hash_secret
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.server.client_address import counted_as, parse_address
from payagg.entrypoints.http.server.places import By, Destination, business_context, prefix_in
from payagg.entrypoints.route.directory import CellsAway, Directory, NobodyKnows
from payagg.entrypoints.route.proxy import Guesses
from tests.support.refusals import refusal_of
from tests.unit.entrypoints.route.cells import FakeCell

pytestmark = pytest.mark.anyio
CLIENTS = ("2001:db8:1:1::1", "2001:db8:1:1::2", "2001:db8:1:2::1")  # the first two are of one /64
KEY = "ssk_live_" + "a1" * 24
BUSINESS = "biz_" + "0" * 32
REFERENCE = "PBX-20250131-7K2M9X"
WITH_KEY = [(b"authorization", b"Bearer " + KEY.encode())]
BY_KEY = Destination(By.KEY, hash_secret(KEY).hex())
HOME, BY_BUSINESS = Destination(By.HOME), Destination(By.BUSINESS, BUSINESS)
BY_REFERENCE = Destination(By.REFERENCE, REFERENCE)


@pytest.mark.parametrize(
    ("path", "destination"),
    [
        ("/api/v1/payments/initiate", BY_KEY),
        (f"/api/v1/payments/{REFERENCE}", BY_KEY),
        ("/api/v1/events", BY_KEY),
        (f"/api/v1/public/payments/{REFERENCE}/verify", BY_REFERENCE),
        (f"/checkout/{REFERENCE}/launch", BY_REFERENCE),
        ("/api/v1/webhooks/provider_a/live", Destination(By.EVENT)),
        ("/docs/index.html", HOME),
        ("/internal/cell/gateways", Destination(By.NOWHERE)),
    ],
)
def test_a_key_goes_where_the_key_is(path: str, destination: Destination) -> None:
    assert business_context("GET", path, WITH_KEY) == destination


@pytest.mark.parametrize(
    ("path", "destination"),
    [
        ("/api/v1/payments/context", HOME),
        (f"/api/v1/payments/{REFERENCE}", HOME),
        ("/api/v1/merchant/businesses", Destination(By.OWN_LIST)),
        (f"/api/v1/merchant/businesses/{BUSINESS}/api-keys", BY_BUSINESS),
        (f"/api/v1/merchant/businesses/{BUSINESS}/payments/{REFERENCE}/story", BY_BUSINESS),
        (f"/api/v1/admin/businesses/{BUSINESS}", BY_BUSINESS),
        (f"/api/v1/admin/payments/{REFERENCE}/story", BY_REFERENCE),
        ("/api/v1/admin/businesses", HOME),
        (f"/console/businesses/{BUSINESS}", BY_BUSINESS),
        ("/checkout/PBX-20250131-7K2M9X-", HOME),
    ],
)
def test_without_a_key_the_path_tells(path: str, destination: Destination) -> None:
    assert business_context("GET", path, [(b"authorization", b"Bearer eyJ")]) == destination


def test_an_administrator_chooses_a_cell_where_nothing_else_tells() -> None:
    chosen = [(b"x-payagg-cell", b"PCX")]
    assert business_context("GET", "/api/v1/admin/businesses", chosen) == Destination(By.CHOICE, "PCX")
    assert business_context("GET", f"/api/v1/admin/businesses/{BUSINESS}", chosen) == Destination(By.BUSINESS, BUSINESS)
    assert business_context("GET", "/api/v1/public/gateways/gw_a/logo", chosen) == HOME


def test_a_body_tells_only_where_it_names_one_cell() -> None:
    cells = ("PAY", "PBX")
    assert prefix_in(b'{"reference":"PBX-20250131-7K2M9X.2"}', cells) == "PBX"
    assert prefix_in(b'{"reference":"PCX-20250131-7K2M9X"}', cells) is None
    assert prefix_in(b'"PBX-20250131-7K2M9X" "PAY-20250131-7K2M9X"', cells) is None
    assert prefix_in(b'"XPBX-20250131-7K2M9X" "PBX-20250131-7K2M9XY"', cells) is None


def test_guesses_of_one_client_are_limited_and_take_nothing_of_others() -> None:
    guesses, one, neighbour, another = Guesses(2), *map(counted_as, map(parse_address, CLIENTS))
    for _ in range(2):
        for _ in range(5):  # who asks about what is known takes nothing
            guesses.ensure_open(one)
        guesses.hit(one)
    for client in (one, neighbour):
        refused = refusal_of(guesses.ensure_open, client)
        assert refused.code is ErrorCode.RATE_LIMITED
        assert refused.retry_after is not None
    guesses.ensure_open(another)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ([(404, ""), (200, "")], "PBX"),
        ([(421, "PBX"), (200, "")], "PBX"),
        ([(421, "PBX"), (404, "")], "PBX"),
        ([(0, ""), (200, "")], "PBX"),
        ([(404, ""), (404, "")], NobodyKnows),
        ([(421, "XXX"), (404, "")], CellsAway),
        ([(0, ""), (404, "")], CellsAway),
        ([(503, ""), (404, "")], CellsAway),
    ],
)
async def test_what_cells_say_together(said: list[tuple[int, str]], found: str | type[Exception]) -> None:
    cells = {name: FakeCell(one) for name, one in zip(("PAY", "PBX"), said, strict=True)}
    directory = Directory(cells)
    if isinstance(found, str):
        assert await directory.ask(BY_KEY) == found
        assert directory.find(BY_KEY) == found
        assert not directory.may_ask_again(BY_KEY)
    else:
        with pytest.raises(found):
            await directory.ask(BY_KEY)
        assert directory.find(BY_KEY) is None


async def test_a_cell_that_is_frozen_holds_up_nobody_whom_another_cell_knows() -> None:
    frozen = FakeCell(is_frozen=True)
    directory = Directory({"PAY": frozen, "PBX": FakeCell((200, ""))})
    async with asyncio.timeout(5):  # an end where it would hang
        assert await directory.ask(BY_KEY) == "PBX"
    await asyncio.sleep(0)
    assert frozen.was_let_go


async def test_who_asks_at_one_moment_shares_the_question() -> None:
    cell = FakeCell((200, ""))
    directory = Directory({"PAY": cell})
    assert await asyncio.gather(*(directory.ask(BY_KEY) for _ in range(10))) == ["PAY"] * 10
    assert cell.asked == [f"keys/{BY_KEY.name}"]


def test_the_directory_keeps_the_names_used_last() -> None:
    directory = Directory({}, most=2)
    one, two, three = (Destination(By.BUSINESS, name) for name in "123")
    directory.keep(one, "PAY")
    directory.keep(two, "PAY")
    assert directory.find(one) == "PAY"
    directory.keep(three, "PBX")
    assert directory.find(two) is None
    assert (directory.find(one), directory.find(three)) == ("PAY", "PBX")
    directory.forget(one)
    assert directory.find(one) is None
