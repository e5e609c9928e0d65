"""Which bytes pass as a logo."""

import pytest

from payagg.adapters.images import PillowImages
from payagg.domain.errors import ErrorCode, Refusal
from tests.support.images import HOSTILE, a_png_of, an_image

pytestmark = pytest.mark.anyio

GOOD = {
    "png": ("png", an_image()),
    "jpeg": ("jpg", an_image("JPEG")),
    "a progressive jpeg": ("jpg", an_image("JPEG", size=(300, 200), progressive=True)),
    "the largest side": ("png", an_image(size=(4096, 1))),
    "the largest file": ("png", a_png_of(2 * 1024 * 1024)),
}


@pytest.mark.parametrize("name", GOOD)
async def test_a_true_image_is_told_by_its_content(name: str) -> None:
    kind, content = GOOD[name]
    assert await PillowImages().kind(content) == kind


@pytest.mark.parametrize("name", HOSTILE)
async def test_anything_else_is_refused_on_file(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        await PillowImages().kind(HOSTILE[name])
    assert (refused.value.code, refused.value.field) == (ErrorCode.VALIDATION_ERROR, "file")


async def test_a_jpeg_with_restart_markers_is_walked_to_its_end() -> None:
    content = an_image("JPEG", size=(200, 200), restart_marker_blocks=1)
    assert b"\xff\xd0" in content
    assert await PillowImages().kind(content) == "jpg"
