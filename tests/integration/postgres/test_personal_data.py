"""A dump of the database, read for what must not be in it: authorisation codes ever, payers after their time; and that
no credential of a provider is logged."""

import base64
import json
import logging
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from payagg_testing.provider_faults import Fault

from payagg.domain.errors import Refusal
from payagg.domain.payment import Payment, Status
from tests.integration.http.providers.test_inbound import InboundWorld, charge_event, payaza_event
from tests.support.postgres_world import execute
from tests.support.processes import one_line, payagg
from tests.support.provider_rigs import PUBLIC_KEYS, SECRET_KEYS, SIGNING
from tests.support.provider_world import world_on

OTHER = "other@payer.example"
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
    for (name,) in execute(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        rows += [str(row) for (row,) in execute(url, f'SELECT t::text FROM "{name}" t')]
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
    return [str(row) for (row,) in execute(url, "SELECT t::text FROM audit t")]


async def paid(site: InboundWorld, slug: str, email: str = EMAIL) -> Payment:
    """A payment of the canary, settled by an event that says everything a provider's may."""
    payment = await site.handed_over(slug, **{**PAYER, "customer_email": email})
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


@pytest.mark.rule("personal-data.5", "personal-data.6", "personal-data.7")
async def test_a_payer_is_told_what_is_kept_and_forgotten_when_asked_for_or_old(
    site: InboundWorld, database_url: str
) -> None:
    payment, of_other = await paid(site, "provider_a"), await paid(site, "provider_b", OTHER)
    still_open = await site.payment(customer_email=EMAIL)
    url = {"PAYAGG_DATABASE_URL": database_url}
    told = payagg("disclose", "--email", EMAIL.upper(), **url)
    assert (told.returncode, told.stderr) == (0, "")
    shown, opened = json.loads(told.stdout)["payments"]
    assert {shown["reference"], opened["reference"]} == {payment.reference, still_open.reference}
    shown = shown if shown["reference"] == payment.reference else opened
    assert {shown[name] for name in ("customerEmail", "customerName", "customerPhone")} == {EMAIL, NAME, PHONE}
    assert (shown["metadata"], shown["amount"], shown["status"]) == ({"note": NOTE}, payment.amount, "SUCCESS")
    [recipient, *_] = shown["recipients"]
    assert (recipient["name"], recipient["at"][:10]) == ("provider_a", f"{site.clock.now():%Y-%m-%d}")
    assert [entry for entry in trail(database_url) if EMAIL in entry.lower()] == []
    assert [entry for entry in trail(database_url) if "payment.disclose" in entry and payment.reference in entry] != []

    # The command's clock is the database's, and of today: what this test's clock opened can no longer be paid.
    for cleared in (2, 0):
        done = payagg("erase", "--email", EMAIL.upper(), **url)
        assert (done.returncode, done.stdout) == (0, f"{cleared} payments: who paid is cleared.\n")
        assert EMAIL not in done.stdout + done.stderr
    assert traces(database_url, EMAIL, OTHER) == [OTHER]
    assert [(await site.read(one)).has_payer for one in (payment, still_open, of_other)] == [False, False, True]

    for days, cleared in (("36500", 0), ("1", 1)):
        done = payagg("retention", **url, PAYAGG_PAYER_RETENTION_DAYS=days)
        line = f"{cleared} payments that ended more than {days} days ago: who paid is cleared."
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, line)
        assert traces(database_url, OTHER) == [OTHER] * (not cleared)
    assert traces(database_url, NAME, PHONE, NOTE, "canary") == []
    for one in (payment, of_other):
        assert (await site.read(one)).amount == one.amount
        assert await site.history(one) == ["PENDING", "SUCCESS"]
        assert await site.events(one) == (2, 2)
    for command in ("disclose", "erase"):
        assert one_line(payagg(command, "--email", "nobody", **url)).startswith("payagg: email: ")


async def test_trap_20_no_credential_reaches_a_log_or_an_error(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    errors: list[str] = []
    faults = (None, Fault.SERVER_ERROR, Fault.RESET, Fault.GARBAGE, Fault.REFUSED_KEY, Fault.LOST_REPLY)
    # A silent provider is given up soon.
    async with world_on(database_url, tmp_path, deadline=0.2) as world:
        for slug, fault in product(("provider_a", "provider_b"), faults):
            payment = await world.payment(customer_email="canary@example.com", customer_name="Canary Canaryson")
            for book in (world.fakes.paystack.book, world.fakes.payaza.book):
                book.faults.extend([fault] if fault is not None else [])
            try:
                await world.process(payment, slug)
                await world.services.verification.verify(payment.reference)
            except Refusal as refused:
                errors.append(f"{refused!r} {refused.message} {refused.__cause__!r} {refused.__context__!r}")
    told = (caplog.text + "".join(errors) + "".join(capsys.readouterr())).lower()
    for secret in (*SECRET_KEYS.values(), *PUBLIC_KEYS.values(), *SIGNING.values(), "canary@example.com", "canaryson"):
        assert secret.lower() not in told
