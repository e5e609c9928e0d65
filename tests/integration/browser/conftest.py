"""One Chromium for the tests of a file, and a page of its own for each."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import launched, opened


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    with opened(chromium) as page:
        yield page
