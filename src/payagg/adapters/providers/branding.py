"""Neutral logos of providers until an administrator changes them: drawn by us, because we may not ship trademarks."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SIDE, SMOOTH = 80, 4  # pixels; drawn larger by SMOOTH and reduced, as Pillow draws hard edges
GROUND, INK, LIGHT = "#e8f4ee", "#0a6a4d", "#ffffff"
Canvas: TypeAlias = "ImageDraw"


def png(paint: Callable[[Canvas, int], None]) -> bytes:
    """The picture that `paint` draws; it gets the pixels of one unit."""
    from PIL import Image, ImageDraw  # 3 MiB that a process needs once in a deployment's life

    large = Image.new("RGB", (SIDE * SMOOTH, SIDE * SMOOTH), GROUND)
    paint(ImageDraw.Draw(large), SMOOTH)
    file = io.BytesIO()
    small = large.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    small.quantize(16).save(file, "PNG", optimize=True)
    return file.getvalue()
