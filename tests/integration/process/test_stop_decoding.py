"""SIGTERM while logos are decoded that cost as much as a logo may."""

import asyncio
import signal

import httpx
import psutil

from payagg.adapters.image_decoder import SCANS_MAX
from payagg.entrypoints.process.server import STOP_SECONDS
from tests.support.http_world import admin_token, bearer
from tests.support.images import a_jpeg_of_scans
from tests.support.processes import serving, wait_until

UPLOADS = 2


async def test_costly_logos_keep_neither_other_callers_nor_the_end_waiting(database_url: str) -> None:
    costly = a_jpeg_of_scans(SCANS_MAX, (4096, 4096))
    with serving(database_url) as (process, origin):
        async with httpx.AsyncClient(base_url=f"{origin}/api/v1", trust_env=False, timeout=60) as client:
            headers = bearer(admin_token())
            [gateway, *_] = (await client.get("/admin/gateways", headers=headers)).json()["data"]
            place = f"/admin/gateways/{gateway['id']}/logo"
            uploads = [
                asyncio.create_task(client.post(place, headers=headers, files={"file": ("a.jpg", costly)}))
                for _ in range(UPLOADS)
            ]
            await asyncio.to_thread(wait_until, lambda: psutil.Process(process.pid).children())
            assert (await client.get("/admin/gateways", headers=headers)).status_code == 200
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, STOP_SECONDS) == 0
            assert {answer.status_code for answer in await asyncio.gather(*uploads)} <= {201, 400}
