"""Chromium for tests: a page that fails its test on any script error, dialog or breach of the content policy."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    FrameLocator,
    Locator,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.support.machine import node_package, program

SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-quic"),
)
PHONE: ViewportSize = {"width": 390, "height": 844}
SMALL_PHONE: ViewportSize = {"width": 320, "height": 640}
DESK: ViewportSize = {"width": 1280, "height": 900}
SCREENS: tuple[tuple[ViewportSize, Literal["dark", "light"]], ...] = ((SMALL_PHONE, "dark"), (DESK, "light"))
WIDTHS = (320, 390, 481, 768, 1000, 1280)  # small phone, phone, tablets, a narrow window and a desk
PATIENCE = 20_000  # ms; a busy machine must not fail a test
CUT_OFF = """() => [...document.querySelectorAll("body *:not(.unseen, .unseen *, .skip, input)")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.right > innerWidth || box.left < 0 ||
    (one instanceof HTMLElement && one.clientWidth && one.scrollWidth > one.clientWidth);
}).map((one) => one.outerHTML.slice(0, 200))"""
REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation",
  (event) => reportViolation(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""


@contextmanager
def launched() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=SWITCHES)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, **context_options: Any) -> Iterator[Page]:
    """A phone's page; leaving asserts that nothing untoward happened on it."""
    context = browser.new_context(**{"viewport": PHONE, **context_options})
    troubles: list[str] = []
    context.expose_function("reportViolation", lambda words: troubles.append(words))  # noqa: PLW0108
    context.add_init_script(REPORT_VIOLATIONS)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)

    def said(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            troubles.append(message.text)

    def asked(dialog: Dialog) -> None:
        troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("pageerror", lambda error: troubles.append(f"script error: {error}"))
    page.on("dialog", asked)
    page.on("console", said)
    yield page
    context.close()
    assert troubles == []


def heading(page: Page, words: str) -> None:
    """Of the part of the hosted page that is shown now."""
    expect(page.locator("h2:visible")).to_have_text(words)


def press(
    part: Page | FrameLocator | Locator, button: str, fields: Mapping[str, str] | None = None, *, exact: bool = False
) -> None:
    """The button, once the fields with these labels hold what is given."""
    for label, value in (fields or {}).items():
        part.get_by_label(label).fill(value)
    part.get_by_role("button", name=button, exact=exact).click()


def shown(part: Page | Locator, words: str) -> None:
    expect(part.get_by_text(words)).to_be_visible()


def judge_with_axe(page: Page) -> None:
    """Asserts that axe-core finds nothing wrong with what is on the page now."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    # What it would load first, sheets and media, only rules on sound and on the orientation of a screen look at.
    result = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
    assert [f"{found['id']}: {[node['html'] for node in found['nodes']]}" for found in result["violations"]] == []


@cache
def _axe() -> str:
    return (node_package("axe-core") / "axe.min.js").read_text("utf-8")


def judge_on_every_screen(page: Page, *, may_scroll: bool = False) -> None:
    """Asserts that axe-core finds nothing on a dark small phone and a light desk, and, unless parts of the page may
    scroll sideways, that nothing is cut off at any width."""
    before, found = page.viewport_size, list[str]()
    for viewport, scheme in SCREENS:
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        judge_with_axe(page)
    for width in () if may_scroll else WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        found += [f"{width} px: {one}" for one in cut_off(page)]
    if before is not None:
        page.set_viewport_size(before)
    assert found == [], page.url


def cut_off(page: Page) -> list[str]:
    """The elements of which a part cannot be seen without scrolling sideways, in the page or within a box of it."""
    found: list[str] = page.evaluate(CUT_OFF)
    return found
