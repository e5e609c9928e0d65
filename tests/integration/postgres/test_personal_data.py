"""A dump of the database, read for what must not be in it: authorisation codes ever, payers after their time."""

import base64
import json
import re
from typing import Any

import psycopg
import pytest

from payagg.domain.payment import Payment, Status
from tests.integration.http.providers.test_inbound import InboundWorld, charge_event, payaza_event
from tests.support.processes import payagg

EMAIL, NAME, PHONE, NOTE = "canary@payer.example", "Canary Payer", "+2348099999999", "canary of the metadata"
PAYER = {"customer_email": EMAIL, "customer_name": NAME, "customer_phone": PHONE, "metadata": {"note": NOTE}}
# As a provider sends them, and as nothing of ours may keep them.
CARD: dict[str, Any] = {
    "customer": {"email": EMAIL, "customer_code": "CUS_canary4081", "first_name": "Canary", "phone": PHONE},
    "authorization": {"authorization_code": "AUTH_canary4081", "bin": "408408", "signature": "SIG_canary4081"},
    "ip_address": "203.0.113.77",
}
SECRETS = ("AUTH_canary4081", "CUS_canary4081", "SIG_canary4081", "203.0.113.77")


def dump(url: str) -> str:
    """Every row of every table as text, with what lies in bytes and in base64 written out."""
    rows: list[str] = []
    with psycopg.connect(url) as connection:
        for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall():
            rows += [str(row) for (row,) in connection.execute(f'SELECT t::text FROM "{name}" t'.encode()).fetchall()]
    whole = "\n".join(rows)
    written = [bytes.fromhex(found).decode("latin-1") for found in re.findall(r"\\x((?:[0-9a-f]{2})+)", whole)]
    fragments = [
        base64.urlsafe_b64decode(found + "=" * (-len(found) % 4)).decode("latin-1")
        for found in re.findall(r"/launch#([A-Za-z0-9_-]+)", whole)
    ]
    return "\n".join([whole, *written, *fragments])


def traces(url: str, *canaries: str) -> list[str]:
    found = dump(url).lower()
    return [canary for canary in canaries if canary.lower() in found]


def trail(url: str) -> list[str]:
    """The audit trail's rows as text."""
    with psycopg.connect(url) as connection:
        return [str(row) for (row,) in connection.execute("SELECT t::text FROM audit t").fetchall()]


async def paid(site: InboundWorld, slug: str) -> Payment:
    """A payment of the canary, settled by an event that says everything a provider's may."""
    payment = await site.handed_over(slug, **PAYER)
    told = charge_event(payment, **CARD) if slug == "provider_a" else payaza_event(payment, **CARD)
    assert await site.deliver(f"{slug}/sandbox", json.dumps(told).encode()) == 200
    assert (await site.read(payment)).status is Status.SUCCESS
    return payment


@pytest.mark.rule("provider-events.7")
async def test_no_authorisation_code_is_ever_stored(site: InboundWorld, database_url: str) -> None:
    for slug in ("provider_a", "provider_b"):
        await paid(site, slug)
    bodies = [bytes(row.body) for row in await site.inbox()]
    assert len(bodies) == 2
    assert all(json.loads(body) for body in bodies)
    assert traces(database_url, *SECRETS) == []
    # That the canaries could be found, were they there.
    assert traces(database_url, EMAIL, NAME, PHONE, NOTE) == [EMAIL, NAME, PHONE, NOTE]


@pytest.mark.rule("personal-data.5")
async def test_the_command_clears_what_is_old_and_a_dump_says_nothing_of_the_payer(
    site: InboundWorld, database_url: str
) -> None:
    payments = [await paid(site, slug) for slug in ("provider_a", "provider_b")]
    url = {"PAYAGG_DATABASE_URL": database_url}
    kept = payagg("retention", **url, PAYAGG_PAYER_RETENTION_DAYS="36500")
    assert kept.returncode == 0
    assert kept.stdout.splitlines()[0] == "0 payments that ended more than 36500 days ago: who paid is cleared."
    assert traces(database_url, EMAIL) == [EMAIL]
    done = payagg("retention", **url, PAYAGG_PAYER_RETENTION_DAYS="1")
    assert done.stdout.splitlines()[0] == "2 payments that ended more than 1 days ago: who paid is cleared."
    assert traces(database_url, EMAIL, NAME, PHONE, NOTE, "canary") == []
    for payment in payments:
        assert (await site.read(payment)).amount == payment.amount
        assert await site.history(payment) == ["PENDING", "SUCCESS"]
        assert await site.events(payment) == (2, 2)
    refused = payagg("erase", "--email", "nobody", **url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("payagg: email: ")


@pytest.mark.rule("personal-data.7")
async def test_a_payer_who_asks_is_told_all_that_is_kept(site: InboundWorld, database_url: str) -> None:
    payment = await paid(site, "provider_a")
    await site.handed_over(customer_email="other@payer.example")
    url = {"PAYAGG_DATABASE_URL": database_url}
    told = payagg("disclose", "--email", EMAIL.upper(), **url)
    assert (told.returncode, told.stderr) == (0, "")
    [shown] = json.loads(told.stdout)["payments"]
    assert shown["reference"] == payment.reference
    assert {shown[name] for name in ("customerEmail", "customerName", "customerPhone")} == {EMAIL, NAME, PHONE}
    assert (shown["metadata"], shown["amount"], shown["status"]) == ({"note": NOTE}, payment.amount, "SUCCESS")
    assert shown["recipients"][0]["name"] == "provider_a"
    assert [entry for entry in trail(database_url) if EMAIL in entry.lower()] == []
    assert [entry for entry in trail(database_url) if "payment.disclose" in entry and payment.reference in entry] != []
    refused = payagg("disclose", "--email", "nobody", **url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("payagg: email: ")


@pytest.mark.rule("personal-data.6")
async def test_a_payer_who_asks_is_forgotten_and_others_are_not(site: InboundWorld, database_url: str) -> None:
    payment = await paid(site, "provider_b")
    other = await site.handed_over(customer_email="other@payer.example")
    still_open = await site.payment(customer_email=EMAIL)
    url = {"PAYAGG_DATABASE_URL": database_url}
    # The command's clock is the database's, and of today: what this test's clock opened can no longer be paid.
    done = payagg("erase", "--email", EMAIL.upper(), **url)
    assert (done.returncode, done.stdout) == (0, "2 payments: who paid is cleared.\n")
    assert EMAIL not in done.stdout + done.stderr
    assert traces(database_url, EMAIL, NAME, PHONE, NOTE, "canary") == []
    assert not (await site.read(payment)).has_payer
    assert not (await site.read(still_open)).has_payer
    assert (await site.read(other)).customer_email == "other@payer.example"
    again = payagg("erase", "--email", EMAIL, **url)
    assert (again.returncode, again.stdout) == (0, "0 payments: who paid is cleared.\n")
