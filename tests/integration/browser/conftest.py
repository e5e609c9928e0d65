"""One Chromium and one site for the tests of a file; for each test a page of its own, and the site as it was made."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import psycopg
import pytest
from playwright.sync_api import Browser, Page

from payagg.application.gateways.seed import seed_gateways
from tests.support.browser import launched, opened
from tests.support.checkout_site import Site, served
from tests.support.postgres_rules import superuser_url

# The audit trail cannot be emptied.
EMPTY = """DO $$ BEGIN EXECUTE (SELECT 'TRUNCATE ' || string_agg(quote_ident(relname), ', ') FROM pg_class
  WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
  AND relname NOT IN ('alembic_version', 'audit')); END $$"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    with opened(chromium) as page:
        yield page


@pytest.fixture(scope="module")
def site_and_database(
    request: pytest.FixtureRequest, new_database: Callable[[], AbstractContextManager[str]]
) -> Iterator[tuple[Site, str]]:
    """The module says with which settings, if any, in SITE."""
    with new_database() as url, served(url, **getattr(request.module, "SITE", {})) as site:
        yield site, url


@pytest.fixture
def site(site_and_database: tuple[Site, str]) -> Site:
    site, url = site_and_database
    with psycopg.connect(superuser_url(url)) as connection:
        # A request of a page that has just been closed gives way, and is tried again.
        connection.execute("SET deadlock_timeout = '1min'")
        connection.execute(EMPTY)
    settings = site.services.settings
    looks = {spec.slug: spec.branding for spec in settings.providers}
    site.do(seed_gateways(site.services.gateways, settings.builtin_slug, looks))
    return site
