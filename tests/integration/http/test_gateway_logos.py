"""Logos over HTTP: what is taken, what is refused, and how they are served."""

from collections.abc import AsyncIterator

import httpx
import pytest

from payagg.adapters.postgres.store import PostgresStore
from tests.support.gateway_api import GatewayApi, a_gateway_api
from tests.support.gateway_world import DRAIN
from tests.support.http_world import refusal
from tests.support.images import HOSTILE, a_png_of, an_image

TWO_MEBIBYTES = 2 * 1024 * 1024


@pytest.fixture
async def api(store: PostgresStore) -> AsyncIterator[GatewayApi]:
    async with a_gateway_api(store) as api:
        yield api


async def public(api: GatewayApi, gateway_id: str) -> httpx.Response:
    return await api.client.get(f"/public/gateways/{gateway_id}/logo")


@pytest.mark.rule("limits.22", "gateways.25", "POST /admin/gateways/{gatewayId}/logo")
@pytest.mark.rule("GET /public/gateways/{gatewayId}/logo")
async def test_a_logo_is_served_as_sent_to_anyone_and_kept_for_an_hour(api: GatewayApi) -> None:
    acme = await api.an_active()
    for gateway_id in (acme, "gw_unknown", "..%2F..%2Fetc", "%00"):
        assert refusal(await public(api, gateway_id)) == (404, "NOT_FOUND", None)
    for kind, media_type in (("PNG", "image/png"), ("JPEG", "image/jpeg")):
        content = an_image(kind)
        uploaded = await api.upload(acme, content)
        url = {"logoUrl": f"/api/v1/public/gateways/{acme}/logo"}
        assert (uploaded.status_code, uploaded.json()) == (201, {"success": True, "data": url})
        served = await public(api, acme)
        told = {
            "content-type": media_type,
            "cache-control": "public, max-age=3600",
            "x-content-type-options": "nosniff",
        }
        assert (served.status_code, served.content) == (200, content)
        assert {name: served.headers[name] for name in told} == told
        assert "sandbox" in served.headers["content-security-policy"]
    for answer in (await api.admin("GET", f"/{acme}"), await api.admin("GET"), await api.merchant("GET")):
        assert f'"logoUrl":"/api/v1/public/gateways/{acme}/logo"' in answer.text
    await api.admin("POST", f"/{acme}/disable")
    assert (await public(api, acme)).status_code == 200
    api.clock.move(DRAIN)
    await api.admin("DELETE", f"/{acme}")
    assert refusal(await public(api, acme)) == (404, "NOT_FOUND", None)


@pytest.mark.rule("limits.12", "limits.13")
async def test_an_upload_is_told_by_its_bytes_alone_up_to_two_mebibytes(api: GatewayApi) -> None:
    for name in ("../../etc/passwd", "\u202egnp.exe"):
        files = {"file": (name, an_image("JPEG"), "image/svg+xml")}
        assert (await api.admin("POST", "/gw_builtin/logo", files=files)).status_code == 201, name
        path = (await api.admin("GET", "/gw_builtin")).json()["data"]["logoPath"]
        assert (path.startswith("gw_builtin/"), path.endswith(".jpg"), ".." in path) == (True, True, False)
        assert (await public(api, "gw_builtin")).headers["content-type"] == "image/jpeg"
    largest = a_png_of(TWO_MEBIBYTES)
    assert (await api.upload("gw_builtin", largest)).status_code == 201
    # Each hostile file is looked at in tests/unit/adapters/test_images.py.
    over = [an_image() + b"\0" * (size - len(an_image())) for size in (TWO_MEBIBYTES + 1, 8 * TWO_MEBIBYTES - 1000)]
    for content in (*over, *list(HOSTILE.values())[:2]):
        assert refusal(await api.upload("gw_builtin", content)) == (400, "VALIDATION_ERROR", "file")
    assert (await public(api, "gw_builtin")).content == largest


async def test_the_body_must_be_a_whole_form_with_one_file(api: GatewayApi) -> None:
    path = "/gw_builtin/logo"
    image, end = an_image(), b"--b--\r\n"
    one = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n' + image + b"\r\n"
    other = b'--b\r\nContent-Disposition: form-data; name="note"\r\n\r\nhello\r\n'
    form = "multipart/form-data; boundary=b"
    junk = b"--b\r\n" + b"X-Junk: " + b"j" * 9000 + b"\r\n\r\n"
    refused = [(b"", None), (image, "image/png"), (b'{"file": "x"}', "application/json")]
    refused += [(one + end, "multipart/form-data"), (one + end, form + "b" * 4999)]
    refused += [
        (body, form) for body in (b"garbage", other + end, one[:-20], one + one + end, other * 20 + one + end, junk)
    ]
    for body, kind in refused:
        answer = await api.admin("POST", path, content=body, headers={"Content-Type": kind} if kind else {})
        assert refusal(answer) == (400, "VALIDATION_ERROR", "file"), (body[:60], kind)
    whole = await api.admin("POST", path, content=other + one + end, headers={"Content-Type": form})
    assert whole.status_code == 201
