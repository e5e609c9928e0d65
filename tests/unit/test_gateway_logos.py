"""Logos: served as sent, replaced without a broken link, one file left."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from payagg.adapters.logos import ObjectLogos
from payagg.application.ports import Unavailable
from payagg.domain.errors import ErrorCode, Refusal
from tests.support.builders import AN_ADMIN
from tests.support.gateway_world import DRAIN, GatewayWorld, files_under
from tests.support.images import HOSTILE, an_image

pytestmark = pytest.mark.anyio


async def a_world(folder: Path) -> tuple[GatewayWorld, str]:
    world = GatewayWorld(logos=ObjectLogos(folder))
    return world, (await world.seeded("acme"))["acme"]


async def test_a_logo_is_served_exactly_as_sent(tmp_path: Path) -> None:
    world, acme = await a_world(tmp_path)
    for content, media_type in ((an_image("PNG"), "image/png"), (an_image("JPEG"), "image/jpeg")):
        uploaded = await world.gateways.upload_logo(acme, content, by=AN_ADMIN)
        assert uploaded.logo_url == f"/api/v1/public/gateways/{acme}/logo"
        logo = await world.gateways.logo(acme)
        assert (logo.content, logo.media_type) == (content, media_type)
    detail = await world.gateways.detail(acme)
    assert detail.logo_url == uploaded.logo_url
    assert (detail.logo_path or "").endswith(".jpg")


async def test_a_replacement_removes_the_previous_file(tmp_path: Path) -> None:
    world, acme = await a_world(tmp_path)
    for content in (an_image("PNG"), an_image("JPEG"), an_image("JPEG"), an_image("PNG", colour="blue")):
        await world.gateways.upload_logo(acme, content, by=AN_ADMIN)
        assert [path.read_bytes() for path in files_under(tmp_path)] == [content]


async def test_a_refused_upload_keeps_the_previous_logo_and_leaves_no_file(tmp_path: Path) -> None:
    world, acme = await a_world(tmp_path)
    await world.gateways.upload_logo(acme, an_image(), by=AN_ADMIN)
    for hostile in HOSTILE.values():
        with pytest.raises(Refusal):
            await world.gateways.upload_logo(acme, hostile, by=AN_ADMIN)
    with pytest.raises(Refusal) as refused:
        await world.gateways.upload_logo("gw_unknown", an_image(), by=AN_ADMIN)
    assert refused.value.code is ErrorCode.NOT_FOUND
    assert len(files_under(tmp_path)) == 1
    assert (await world.gateways.logo(acme)).content == an_image()


async def test_no_logo_is_not_found(tmp_path: Path) -> None:
    world, acme = await a_world(tmp_path)
    for gateway_id in (acme, "gw_unknown"):
        with pytest.raises(Refusal) as refused:
            await world.gateways.logo(gateway_id)
        assert refused.value.code is ErrorCode.NOT_FOUND


async def test_deleting_a_gateway_removes_its_logo(tmp_path: Path) -> None:
    world, acme = await a_world(tmp_path)
    await world.gateways.upload_logo(acme, an_image(), by=AN_ADMIN)
    await world.gateways.disable(acme, by=AN_ADMIN)
    world.clock.move(DRAIN)
    await world.gateways.delete(acme, by=AN_ADMIN)
    assert files_under(tmp_path) == []


async def test_uploads_at_the_same_moment_leave_one_file_and_it_is_the_one_the_row_names(tmp_path: Path) -> None:
    world, acme = await a_world(tmp_path)
    images = [an_image(kind, colour=colour) for kind in ("PNG", "JPEG") for colour in ("red", "green", "blue")]
    await asyncio.gather(*(world.gateways.upload_logo(acme, content, by=AN_ADMIN) for content in images))
    (left,) = files_under(tmp_path)
    assert str(left.relative_to(tmp_path)) == (await world.stored(acme)).logo_path
    assert (await world.gateways.logo(acme)).content in images


@dataclass
class CrashingLogos:
    """Files that stop working at a chosen call, as a process does that dies there."""

    dies_at: str
    files: dict[str, bytes] = field(default_factory=dict)

    async def put(self, path: str, content: bytes) -> None:
        self._live("put")
        self.files[path] = content

    async def get(self, path: str) -> bytes | None:
        return self.files.get(path)

    async def delete(self, path: str) -> None:
        self._live("delete")
        self.files.pop(path, None)

    def _live(self, call: str) -> None:
        if call == self.dies_at:
            raise Unavailable(call)


async def test_a_crash_before_the_file_is_there_keeps_the_old_logo() -> None:
    logos = CrashingLogos("")
    world = GatewayWorld(logos=logos)
    acme = (await world.seeded("acme"))["acme"]
    await world.gateways.upload_logo(acme, an_image(), by=AN_ADMIN)
    logos.dies_at = "put"
    with pytest.raises(Unavailable):
        await world.gateways.upload_logo(acme, an_image("JPEG"), by=AN_ADMIN)
    assert (await world.gateways.logo(acme)).content == an_image()


async def test_a_file_that_cannot_be_removed_is_only_a_stray() -> None:
    logos = CrashingLogos("delete")
    world = GatewayWorld(logos=logos)
    acme = (await world.seeded("acme"))["acme"]
    for content in (an_image(), an_image("JPEG")):
        await world.gateways.upload_logo(acme, content, by=AN_ADMIN)
        assert (await world.gateways.logo(acme)).content == content
    assert len(logos.files) == 2


ENDS_AT_ONCE = """
import asyncio, sys
from payagg.adapters.logos import ObjectLogos

async def main() -> None:
    logos = ObjectLogos(sys.argv[1])
    await logos.put("a/logo.png", b"x")
    await asyncio.gather(*(logos.get("a/logo.png") for _ in range(8)))

asyncio.run(main())
"""


def test_a_process_that_ends_right_after_a_call_ends_well(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDS_AT_ONCE, str(tmp_path)]
    for _ in range(8):  # one in ten was aborted by a thread of the library's that came back too late
        started = [subprocess.Popen(command) for _ in range(8)]
        assert [one.wait() for one in started] == [0] * 8
