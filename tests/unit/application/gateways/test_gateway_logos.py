"""Logos: served as sent, replaced without a broken link, one file left."""

import subprocess
import sys
from pathlib import Path

import pytest
from payagg_testing.builders import AN_ADMIN

from payagg.adapters.logos import ObjectLogos
from payagg.application.ports.outside import Unavailable
from payagg.domain.errors import ErrorCode
from tests.support.gateway_world import DRAIN, GatewayWorld, files_under
from tests.support.images import HOSTILE, an_image
from tests.support.refusals import refused_with


@pytest.fixture
def world(tmp_path: Path) -> GatewayWorld:
    return GatewayWorld(logos=ObjectLogos(tmp_path))


@pytest.fixture
async def acme(world: GatewayWorld) -> str:
    """The id of an ACTIVE gateway."""
    return (await world.seeded("acme"))["acme"]


@pytest.mark.rule("gateways.24")
async def test_a_logo_is_served_exactly_as_sent_and_takes_the_place_of_the_one_before(
    world: GatewayWorld, acme: str, tmp_path: Path
) -> None:
    for gateway in (acme, "gw_unknown"):
        assert (await refused_with(world.gateways.logo(gateway)))[0] is ErrorCode.NOT_FOUND
    for kind, colour in (("PNG", "red"), ("JPEG", "red"), ("JPEG", "red"), ("PNG", "blue")):
        content = an_image(kind, colour=colour)
        uploaded = await world.gateways.upload_logo(acme, content, by=AN_ADMIN)
        assert uploaded.logo_url == f"/api/v1/public/gateways/{acme}/logo"
        logo = await world.gateways.logo(acme)
        assert (logo.content, logo.media_type) == (content, f"image/{kind.lower()}")
        assert [path.read_bytes() for path in files_under(tmp_path)] == [content]
    hostile = world.gateways.upload_logo(acme, HOSTILE["a png with a tail"](), by=AN_ADMIN)
    assert (await refused_with(hostile))[1] == "file"
    unknown = world.gateways.upload_logo("gw_unknown", an_image(), by=AN_ADMIN)
    assert (await refused_with(unknown))[0] is ErrorCode.NOT_FOUND
    assert [path.read_bytes() for path in files_under(tmp_path)] == [content]
    await world.gateways.disable(acme, by=AN_ADMIN)
    world.clock.move(DRAIN)
    await world.gateways.delete(acme, by=AN_ADMIN)
    assert files_under(tmp_path) == []


async def test_a_store_that_dies_keeps_the_old_logo_or_leaves_a_stray(
    world: GatewayWorld, acme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(*_: object) -> None:
        raise Unavailable("the store is away")

    await world.gateways.upload_logo(acme, an_image(), by=AN_ADMIN)
    with monkeypatch.context() as away:
        away.setattr(world.logos, "put", dies)
        with pytest.raises(Unavailable):
            await world.gateways.upload_logo(acme, an_image("JPEG"), by=AN_ADMIN)
    assert (await world.gateways.logo(acme)).content == an_image()
    monkeypatch.setattr(world.logos, "delete", dies)
    await world.gateways.upload_logo(acme, an_image("JPEG"), by=AN_ADMIN)
    assert (await world.gateways.logo(acme)).content == an_image("JPEG")
    assert len(files_under(tmp_path)) == 2


ENDS_AT_ONCE = """
import asyncio, os, sys
from payagg.adapters.logos import ObjectLogos

async def main() -> None:
    logos = ObjectLogos(sys.argv[1])
    await logos.put("a/logo.png", b"x")
    await asyncio.gather(*(logos.get("a/logo.png") for _ in range(8)))

children = []
for _ in range(32):
    child = os.fork()
    if child == 0:
        asyncio.run(main())
        sys.exit()
    children.append(child)
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


def test_a_process_that_ends_right_after_a_call_ends_well(tmp_path: Path) -> None:
    """One in twenty was aborted by a thread of the library's that came back too late."""
    assert subprocess.run([sys.executable, "-c", ENDS_AT_ONCE, str(tmp_path)], check=False).returncode == 0
