"""The console's page of reconciliations."""

import re

import pytest

from tests.integration.http.test_reconciliations import FIRST, SUPPORT, with_two
from tests.support.console_browser import Browser
from tests.support.http_world import Api

PAGE = "/console/admin/reconciliation"


@pytest.fixture
def api(own_api: Api) -> Api:
    return own_api


async def test_the_console_fetches_the_findings_that_the_api_gives(api: Api) -> None:
    await with_two(api)
    browser = await Browser(api).sign_in_as_admin()
    given = await api.client.get(f"/admin/reconciliations/{FIRST}/findings.csv", headers=SUPPORT)
    (link,) = re.findall(r'href="([^"]+findings\.csv)" download', (await browser.open(PAGE)).text)
    assert (await browser.open(link)).content == given.content
