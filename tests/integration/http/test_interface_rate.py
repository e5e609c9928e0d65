"""The limit of inbound webhooks, counted by two server processes that share nothing but the database.

Whenever it runs: the limit is of any minute, not of the clock's."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.support.processes import serving

LIMIT = 100  # per minute and address; interface, Limits
ROUTES = ("provider_a/sandbox", "provider_a/live", "provider_b/sandbox", "provider_b/live", "provider_b")


def test_two_processes_take_exactly_one_hundred_a_minute(database_url: str) -> None:
    with serving(database_url, "--no-worker") as (_, one), serving(database_url, "--no-worker") as (_, two):

        def send(number: int) -> int:
            url = f"{(one, two)[number % 2]}/api/v1/webhooks/{ROUTES[number % len(ROUTES)]}"
            # Nobody vouches for this header, so it makes nobody else of the sender.
            spoofed = {"X-Forwarded-For": f"203.0.113.{number}"}
            return httpx.post(url, content=b"{}", headers=spoofed, trust_env=False, timeout=30).status_code

        with ThreadPoolExecutor(16) as senders:
            statuses = Counter(senders.map(send, range(LIMIT + 50)))
    assert statuses == {400: LIMIT, 429: 50}
