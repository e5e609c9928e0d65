"""How soon a payer on a slow line sees what is to be paid, and what that weighs.

The product serves, and Chromium opens its page over a line as slow as the DevTools protocol makes it. What that
emulates is each request's latency and the rate, not the handshakes before: a new TLS connection takes two round trips
more.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median

from playwright.sync_api import Browser, BrowserContext, Page

from benchmarks import seed
from benchmarks.deployment import Deployment
from tests.support.browser import PHONE, launched
from tests.support.http_world import bearer

BITS_A_SECOND, LATENCY_MS = 100_000, 800
TARGET_MS, TARGET_BYTES = 1_500, 25 * 1024
SUCCESS_CARD = "4242424242424242"
# When the amount has been painted, and when the page's own script has taken over.
WATCH = """
const seen = () => {
  const amount = document.getElementById("amount");
  if (!amount || !amount.textContent) requestAnimationFrame(seen);
  else requestAnimationFrame(() => setTimeout(() => { window.amountAt = performance.now(); }));
};
const taken = () => {
  if (!document.querySelector("html.ready")) requestAnimationFrame(taken);
  else window.readyAt = performance.now();
};
requestAnimationFrame(() => { seen(); taken(); });
"""
# The page's content policy forbids the eval of wait_for_function.
UNTIL_BOTH = """
new Promise((done) => {
  const look = () => (window.readyAt && window.amountAt ? done() : setTimeout(look, 50));
  look();
})
"""


@dataclass
class Opening:
    """One opening of the page; times in ms since its navigation began, `bytes` of all answers with their headers."""

    amount: float
    ready: float
    requests: int
    bytes: int


@contextmanager
def slow(context: BrowserContext) -> Iterator[tuple[Page, list[float]]]:
    """A page of the context on the slow line, and what each of its answers weighed."""
    page = context.new_page()
    page.add_init_script(WATCH)
    line = context.new_cdp_session(page)
    weights: list[float] = []
    line.on("Network.loadingFinished", lambda event: weights.append(event["encodedDataLength"]))
    line.send("Network.enable")
    rate = BITS_A_SECOND / 8
    conditions = {"offline": False, "latency": LATENCY_MS, "downloadThroughput": rate, "uploadThroughput": rate}
    line.send("Network.emulateNetworkConditions", conditions)
    yield page, weights
    page.close()


def opened(context: BrowserContext, address: str) -> Opening:
    with slow(context) as (page, weights):
        page.goto(address, wait_until="networkidle", timeout=60_000)
        page.evaluate(UNTIL_BOTH)
        painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        amount, ready = page.evaluate("[window.amountAt, window.readyAt]")
        return Opening(max(amount, painted), ready, len(weights), int(sum(weights)))


def measured(browser: Browser, own: Deployment) -> dict[str, Opening]:
    """A payer who opens the link, the same one who opens it again, and the receipt."""
    wish = {"amount": 15_000_000, "callbackUrl": "https://shop.example/thanks"}
    reference = own.call("POST", "payments/initiate", headers=bearer(seed.secret(1)), json=wish)["reference"]
    address, public = f"{own.address}/checkout/{reference}", f"public/payments/{reference}"
    context = browser.new_context(viewport=PHONE)
    try:
        found = {"the link, nothing in the cache": opened(context, address)}
        found["the link again"] = opened(context, address)
        own.call("POST", f"{public}/process", json={"gatewaySlug": "sandbox", "cardNumber": SUCCESS_CARD})
        own.call("GET", f"{public}/verify")
        found["the receipt"] = opened(context, address)
    finally:
        context.close()
    return found


def table(rounds: list[dict[str, Opening]]) -> str:
    lines = [
        "| What is opened | amount on the screen | page in the payer's hands | requests | bytes |",
        "|---" * 5 + "|",
    ]
    for name in rounds[0]:
        every = [found[name] for found in rounds]
        amount, ready = median(one.amount for one in every), median(one.ready for one in every)
        weight = max(one.bytes for one in every)
        lines.append(
            f"| {name} | {amount / 1000:.2f} s | {ready / 1000:.2f} s | {every[0].requests} | {weight / 1024:.1f} KB |"
        )
    target = f"Targets: {TARGET_MS / 1000:g} s and {TARGET_BYTES // 1024} KB."
    return "\n".join([*lines, "", f"{target} {len(rounds)} rounds; times are medians, bytes the most of any."])


def measure(server: str, chosen: Namespace) -> str:
    rounds = []
    with ExitStack() as stack:
        deployment = Deployment(stack, "page", server)
        deployment.serve()
        deployment.configure_provider()
        browser = stack.enter_context(launched())
        for _ in range(chosen.rounds):
            rounds.append(measured(browser, deployment))
            print(rounds[-1], file=sys.stderr, flush=True)
    return table(rounds)
