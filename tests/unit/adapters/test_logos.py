"""The object store of logos: a local folder and S3, each call bounded and its failures told alike."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from payagg.adapters.logos import ObjectLogos
from payagg.application.ports.outside import LogoStore, Unavailable
from tests.support.gateway_world import files_under
from tests.support.ports import free_port

PATH = "gw_1/0123.png"


async def assert_keeps_files(logos: LogoStore) -> None:
    assert await logos.get(PATH) is None
    await logos.put(PATH, b"first")
    await logos.put(PATH, b"\x89second\x00")
    assert await logos.get(PATH) == b"\x89second\x00"
    await logos.delete(PATH)
    assert await logos.get(PATH) is None
    await logos.delete(PATH)


@pytest.mark.parametrize("form", ["{}", "file://{}"])
async def test_a_folder_is_made_when_it_is_first_needed(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "not" / "there yet"
    logos = ObjectLogos(form.format(folder))
    assert files_under(tmp_path) == []
    await assert_keeps_files(logos)
    await logos.put(PATH, b"kept")
    assert files_under(tmp_path) == [folder / PATH]


async def test_a_store_that_fails_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (str(tmp_path / "file" / "logos"), f"http://127.0.0.1:{free_port()}/"):
        logos = ObjectLogos(place)
        for call in (logos.put(PATH, b"x"), logos.get(PATH), logos.delete(PATH)):
            with pytest.raises(Unavailable):
                await call


async def test_files_lie_under_the_prefix_of_an_s3_url(monkeypatch: pytest.MonkeyPatch) -> None:
    with an_s3() as (endpoint, objects):
        for name, value in {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }.items():
            monkeypatch.setenv(name, value)
        logos = ObjectLogos("s3://bucket/some/prefix")
        await assert_keeps_files(logos)
        await logos.put(PATH, b"kept")
        assert objects == {f"/bucket/some/prefix/{PATH}": b"kept"}


@contextmanager
def an_s3() -> Iterator[tuple[str, dict[str, bytes]]]:
    """As much of S3 as putting, getting and deleting one object asks for; every request must be signed."""
    objects: dict[str, bytes] = {}

    class Bucket(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(200)

        def do_GET(self) -> None:
            self._answer(200 if self.path in objects else 404, objects.get(self.path, b""))

        def do_DELETE(self) -> None:
            objects.pop(self.path, None)
            self._answer(204)

        def do_POST(self) -> None:
            """The bulk form of deleting; the only key asked for is in the body."""
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            key = body.partition("<Key>")[2].partition("</Key>")[0]
            objects.pop(f"/bucket/{key}", None)
            self._answer(200, b"<DeleteResult><Deleted><Key>" + key.encode() + b"</Key></Deleted></DeleteResult>")

        def _answer(self, status: int, body: bytes = b"") -> None:
            signed = self.headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256 Credential=id/")
            self.send_response(status if signed else 403)
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Fri, 31 Jan 2025 12:00:00 GMT")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", objects
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
