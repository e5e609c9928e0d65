"""What payers see of each provider until an administrator changes it: its name, what a payer does there, and a neutral
mark that we draw, as nobody's trademark is ours to ship."""

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from payagg.application.gateways import Look

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SIDE, SMOOTH = 80, 4  # pixels; drawn larger by SMOOTH and reduced, as Pillow draws hard edges
GROUND, INK, LIGHT = "#e8f4ee", "#0a6a4d", "#ffffff"


def looks_of(slug_a: str, slug_b: str) -> dict[str, Look]:
    """By slug, as the providers of `providers_of`."""
    return {
        slug_a: Look("Paystack", "Card, bank transfer or USSD", partial(_png, _card)),
        slug_b: Look("Payaza", "Card or bank transfer", partial(_png, _transfer)),
    }


def _card(draw: "ImageDraw", unit: int) -> None:
    draw.rounded_rectangle((14 * unit, 24 * unit, 66 * unit, 56 * unit), 5 * unit, fill=INK)
    draw.rectangle((14 * unit, 31 * unit, 66 * unit, 37 * unit), fill=GROUND)
    draw.rounded_rectangle((20 * unit, 45 * unit, 34 * unit, 49 * unit), 2 * unit, fill=LIGHT)


def _transfer(draw: "ImageDraw", unit: int) -> None:
    for y, start, tip in ((32, 18, 62), (48, 62, 18)):
        back = tip - 12 if tip > start else tip + 12
        draw.line((start * unit, y * unit, back * unit, y * unit), fill=INK, width=5 * unit)
        draw.polygon((tip * unit, y * unit, back * unit, (y - 8) * unit, back * unit, (y + 8) * unit), fill=INK)


def _png(paint: Callable[["ImageDraw", int], None]) -> bytes:
    from PIL import Image, ImageDraw  # 3 MiB that a process needs once in a deployment's life

    large = Image.new("RGB", (SIDE * SMOOTH, SIDE * SMOOTH), GROUND)
    paint(ImageDraw.Draw(large), SMOOTH)
    file = io.BytesIO()
    small = large.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    small.quantize(16).save(file, "PNG", optimize=True)
    return file.getvalue()
