"""Which bytes pass as a logo."""

import asyncio
import os
import resource
from collections.abc import Callable

import psutil
import pytest

from payagg.adapters import image_decoder
from payagg.adapters.image_decoder import SCANS_MAX, judge
from payagg.adapters.images import TOO_COSTLY, PillowImages
from payagg.domain.errors import ErrorCode
from tests.support.images import HOSTILE, a_jpeg_of_scans, a_png_of, an_image
from tests.support.refusals import refusal_in, refused_with

GOOD: dict[str, tuple[str, Callable[[], bytes]]] = {
    "png": ("png", an_image),
    "jpeg": ("jpg", lambda: an_image("JPEG")),
    "a progressive jpeg": ("jpg", lambda: an_image("JPEG", size=(300, 200), progressive=True)),
    "a jpeg with restart markers": ("jpg", lambda: an_image("JPEG", size=(200, 200), restart_marker_blocks=1)),
    "a jpeg with another one in its comment": ("jpg", lambda: an_image("JPEG", comment=an_image("JPEG"))),
    "the most scans": ("jpg", lambda: a_jpeg_of_scans(SCANS_MAX)),
    "the largest picture": ("png", lambda: an_image(size=(4096, 4096))),
    "the largest progressive jpeg": (
        "jpg",
        lambda: an_image("JPEG", size=(4096, 4096), progressive=True, subsampling=0),
    ),
    "the largest side": ("png", lambda: an_image(size=(4096, 1))),
    "the largest file": ("png", lambda: a_png_of(2 * 1024 * 1024)),
}


@pytest.mark.parametrize("name", GOOD)
async def test_a_true_image_is_told_by_its_content(name: str) -> None:
    kind, content = GOOD[name]
    assert await PillowImages().kind(content()) == kind


@pytest.mark.parametrize("name", HOSTILE)
async def test_anything_else_is_refused_on_file(name: str) -> None:
    assert await refused_with(PillowImages().kind(HOSTILE[name]())) == (ErrorCode.VALIDATION_ERROR, "file")


async def decoder_of(decoding: "asyncio.Task[str]") -> psutil.Process:
    """The process that decodes, once it runs; until then the loop is free for us."""
    while True:
        for child in psutil.Process().children():
            if "payagg.adapters.image_decoder" in child.cmdline():
                return child
        assert not decoding.done()
        await asyncio.sleep(0)


@pytest.mark.parametrize("end", ["its time is up", "the kernel ends it", "the caller goes away"])
async def test_a_decoder_keeps_nobody_waiting_and_ends(end: str) -> None:
    images = PillowImages(**({"seconds": 1} if end == "its time is up" else {}))
    slowest = a_jpeg_of_scans(SCANS_MAX, (4096, 4096))
    decoding = asyncio.create_task(images.kind(slowest))
    decoder = await decoder_of(decoding)
    if end == "the caller goes away":
        decoding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await decoding
    else:
        (decoder.suspend if end == "its time is up" else decoder.kill)()  # however fast the machine is
        refused = await refusal_in(decoding)
        assert (refused.field, refused.message) == ("file", TOO_COSTLY)
    assert not decoder.is_running()


def test_the_decoder_bounds_its_own_memory_time_and_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = {}
    monkeypatch.setattr(resource, "setrlimit", lambda what, bound: bounds.update({what: bound}))
    read, write = os.pipe()
    os.write(write, b"no image")
    os.close(write)
    with open(read) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.argv", ["image_decoder", "1.5"])
        image_decoder.main()
    bounded = {resource.RLIMIT_CPU: 2, resource.RLIMIT_AS: image_decoder.MEMORY, resource.RLIMIT_CORE: 0}
    assert bounds == {what: (bound, bound) for what, bound in bounded.items()}
    monkeypatch.setattr(image_decoder, "_flaw", None)  # decoding would fail the test
    assert judge(a_jpeg_of_scans(SCANS_MAX + 1)) == {"flaw": f"Must have at most {SCANS_MAX} scans."}
