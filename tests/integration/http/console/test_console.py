"""The console over HTTP: who gets in, what proves a form, what a page's headers say, and where `/` leads."""

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from html import unescape
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from litestar.testing import TestClient
from payagg_testing.builders import AN_ADMIN, an_actor, an_entry, an_id
from payagg_testing.memory import MemoryStore

from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.audit import Action, ActorRealm
from payagg.domain.business import BusinessStatus, Role
from payagg.domain.errors import must_exist
from payagg.domain.payment import Trigger
from payagg.domain.values import Environment
from payagg.entrypoints.http.app import create_app
from payagg.extensions.console.developers import PER_PAGE
from payagg.extensions.console.payments import SCAN
from payagg.extensions.console.session import COOKIE_MAX
from payagg.extensions.console.sign_in import dev_pages
from tests.support.assembly import SETTINGS, services_over
from tests.support.console_browser import SAME_ORIGIN, Browser, base_of, text_of
from tests.support.http_world import Api, Shop, a_token, admin_token, an_api, merchant_token
from tests.support.images import an_image


@pytest.fixture
async def browser(api: Api, shop: Shop) -> Browser:
    return await Browser(api).sign_in(shop)


async def test_a_browser_is_led_to_the_console_and_a_program_gets_the_addresses(api: Api) -> None:
    base = api.services.settings.base_url
    places = {"api": "api/v1", "description": "openapi.json", "docs": "docs", "console": "console"}
    addresses = {name: f"{base}/{place}" for name, place in places.items()}
    assert await api.get(api.origin + "/") == {"service": "payagg", **addresses}
    browser = Browser(api)
    assert (await browser.open("/")).url.path == "/console/sign-in"
    for path in ("/console/nowhere/at/all", "/console/admin//gateways", "/console/business/a/sandbox/b"):
        missing = await browser.open(path)
        assert (missing.status_code, "There is nothing here" in missing.text) == (404, True)
    assert (await browser.client.put("/console/sign-in")).json()["error"]["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.rule("access.7")
async def test_a_session_lasts_until_its_token_expires_or_it_is_signed_out_anywhere(
    api: Api, monkeypatch: pytest.MonkeyPatch, shop: Shop
) -> None:
    browser = Browser(api)
    await browser.open("/console/sign-in")
    token = merchant_token(shop.owner)
    data = {"form_token": browser.form_token, "token": token}
    answer = await browser.client.post("/console/sign-in", data=data, headers=SAME_ORIGIN)
    cookie = answer.headers["set-cookie"]
    assert (token in cookie, "token" in answer.headers["location"]) == (False, False)
    facts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= facts
    (age,) = [int(fact.partition("=")[2]) for fact in facts if fact.startswith("max-age=")]
    assert 43_000 < age <= 43_200
    copy, other = [await Browser(api).sign_in(shop) for _ in range(2)]
    copy.client.cookies = httpx.Cookies(browser.client.cookies)
    for signed_in in (browser, copy):
        assert (await signed_in.open(base_of(shop))).url.path == base_of(shop)
    assert (await browser.send("/console/sign-out")).url.path == "/console/sign-in"
    late = {"form_token": copy.form_token, "name": "Late"}
    answer = await copy.client.post(f"{base_of(shop)}/keys", data=late, headers=SAME_ORIGIN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sign-in?ended=1")
    for ended in (browser, copy):
        assert (await ended.open(base_of(shop))).url.path == "/console/sign-in"
    # The other browser's session and the token itself go on.
    assert (await other.open(base_of(shop))).url.path == base_of(shop)
    assert (await api.client.get("/merchant/businesses", headers=shop.as_owner)).status_code == 200

    await browser.send("/console/sign-in", token=a_token(shop.owner, type="merchant", emailVerified=True, ttl=30))
    later = api.services.clock.now().timestamp() + 31
    monkeypatch.setattr("payagg.extensions.console.session.now_of", lambda _: int(later))
    assert (await browser.send(base_of(shop) + "/keys", name="Late")).url.path == "/console/sign-in"
    assert "the token has expired" in browser.page.text


@pytest.mark.rule("access.7")
@pytest.mark.parametrize("realm", ["merchant", "admin"])
async def test_a_user_sees_their_own_sessions_and_ends_one_or_all_others(api: Api, realm: str) -> None:
    home = {"merchant": "/console", "admin": "/console/admin"}[realm]
    path, shop, stranger = f"{home}/sessions", await api.open_shop(), await api.open_shop()

    async def signed_in() -> Browser:
        return await (Browser(api).sign_in(shop) if realm == "merchant" else Browser(api).sign_in_as_admin())

    async def is_signed_in(browser: Browser) -> bool:
        return not (await browser.open(home)).url.path.endswith("/sign-in")

    first = await signed_in()
    await first.open(path)
    await first.send(f"{path}/end-others")
    others = [await signed_in() for _ in range(3)]
    text = (await first.open(path)).text
    assert (text.count("This browser"), text.count("127.0.0.1")) == (1, 4)
    ends = re.findall(rf'action="({path}/[0-9a-f]{{64}}/end)"', text)  # the latest first
    another = await Browser(api).sign_in(stranger)
    await another.open("/console/sessions")
    for end in ends:
        await another.send(end.replace(home, "/console"))
    assert [await is_signed_in(one) for one in others] == [True] * 3

    await first.open(path)
    assert "is ended" in (await first.send(ends[1])).text
    assert [await is_signed_in(one) for one in (first, *others)] == [True, True, False, True]
    await first.open(path)
    assert "Every other session is ended" in (await first.send(f"{path}/end-others")).text
    assert [await is_signed_in(one) for one in (first, *others)] == [True, False, False, False]
    assert "End every other" not in (await first.open(path)).text
    assert (await first.send(f"{path}/nothing/end")).status_code == 404


async def test_a_token_that_the_api_does_not_take_is_refused_by_a_page(api: Api, shop: Shop) -> None:
    browser = Browser(api)
    of: dict[str, Any] = {"type": "merchant", "emailVerified": True}
    forbidden = (merchant_token("stranger"), merchant_token("member-1"), merchant_token(shop.owner, verified=False))
    for token, status in (
        *((token, 401) for token in ("", "rubbish", a_token(shop.owner, ttl=-5, **of), shop.sandbox)),
        *((token, 403) for token in (*forbidden, admin_token())),
        (a_token(shop.owner, junk="x" * COOKIE_MAX, **of), 400),
    ):
        await browser.open("/console/sign-in")
        answer = await browser.send("/console/sign-in", token=token)
        assert answer.status_code == status, (token, answer.text)
        assert 'role="alert"' in answer.text
        assert token == "" or token not in answer.text
        assert (await browser.open(base_of(shop))).url.path == "/console/sign-in"
    await browser.open("/console/admin/sign-in")
    answer = await browser.send("/console/admin/sign-in", token=merchant_token(shop.owner))
    assert (answer.status_code, "not an administrator" in answer.text) == (403, True)


async def test_who_manages_several_businesses_chooses_one(api: Api) -> None:
    first, second = await api.open_shop(), await api.open_shop()
    async with api.services.store.begin() as tx:
        await tx.members.add(second.business.id, first.owner, Role.ADMIN)
    browser = Browser(api)
    await browser.open("/console/sign-in")
    page = await browser.send("/console/sign-in", token=merchant_token(first.owner))
    assert (page.url.path, page.status_code) == ("/console/businesses", 200)
    for shop in (first, second):
        assert f'<a href="{base_of(shop)}">{shop.business.name}</a>' in page.text
    assert (await browser.open(base_of(second))).status_code == 200


async def test_a_form_of_another_origin_or_session_does_nothing(api: Api, shop: Shop) -> None:
    browser, other = await Browser(api).sign_in(shop), await Browser(api).sign_in(shop)
    visitor = Browser(api)
    await visitor.open("/console/sign-in")
    fields = {"form_token": other.form_token, "token": merchant_token(shop.owner)}
    assert (await visitor.client.post("/console/sign-in", data=fields)).status_code == 403
    for wrong in ("", other.form_token, browser.form_token[:-1] + "\u00e9"):
        data = {"form_token": wrong, "name": "Stolen"}
        assert (await browser.client.post(base_of(shop) + "/keys", data=data, headers=SAME_ORIGIN)).status_code == 403
    evil = {"origin": "https://evil.example"}
    for headers in (
        *({"sec-fetch-site": site} for site in ("cross-site", "same-site", "none")),
        evil,
        SAME_ORIGIN | evil,
    ):
        answer = await browser.send(base_of(shop) + "/keys", headers=headers, name="Stolen")
        assert (answer.status_code, "This form is out of date" in answer.text) == (403, True), headers
        assert "Stolen" not in (await browser.open(base_of(shop) + "/keys")).text
    # What its own form changes is in the audit trail as the API's own.
    answer = await browser.send(base_of(shop) + "/keys", name="Till 7")
    (entry,) = (await api.get(f"{shop.path}/audit", shop.as_owner, action="api_key.create"))["entries"]
    assert (entry["realm"], entry["subject"], entry["address"]) == ("merchant", shop.owner, "127.0.0.1")
    assert (answer.status_code, answer.headers["x-request-id"]) == (200, entry["requestId"])


@pytest.mark.parametrize("charset", ["unheard-of", "zlib", "punycode", "unicode_escape"])
async def test_a_form_is_read_as_utf_8_whatever_its_parts_call_themselves(api: Api, charset: str) -> None:
    visitor = Browser(api)
    await visitor.open("/console/sign-in")
    part = f'--x\r\nContent-Disposition: form-data; name="form_token"\r\nContent-Type: text/plain; charset={charset}'
    headers = {"Content-Type": "multipart/form-data; boundary=x"} | SAME_ORIGIN
    for value, status in ((b"\\ud800", 403), (b"\xff", 400)):
        content = part.encode() + b"\r\n\r\n" + value + b"\r\n--x--\r\n"
        assert (await visitor.client.post("/console/sign-in", content=content, headers=headers)).status_code == status


async def test_a_cookie_altered_of_the_other_realm_or_sent_twice_is_no_session(api: Api) -> None:
    sealed = (await Browser(api).sign_in(await api.open_shop())).client.cookies["payagg_console"]
    for name, value in (("payagg_console", sealed[:-4] + "AAAA"), ("payagg_console_admin", sealed)):
        stranger = Browser(api)
        stranger.client.cookies.set(name, value)
        assert (await stranger.open("/console")).url.path == "/console/sign-in"
        assert (await stranger.open("/console/admin")).url.path == "/console/admin/sign-in"
    own = f"payagg_console={sealed}"
    async with httpx.AsyncClient(base_url=api.origin, trust_env=False) as client:
        for sent in ([f"{own}; payagg_console=x"], ["payagg_console=x", own], [f"{own};{own}"]):
            answer = await client.get("/console", headers=[("Cookie", one) for one in sent])
            assert (answer.status_code, "two cookies of one name" in answer.text) == (400, True)
        others = {"Cookie": f"a=1; {own}; a=2; payagg_console_admin=x; PAYAGG_CONSOLE=y"}
        assert (await client.get("/console", headers=others)).headers["location"].startswith("/console/business")
        twice = {"Cookie": "payagg_console_visit=a; payagg_console_visit=b"}
        assert (await client.post("/console/sign-in", headers=twice, data={"token": "x"})).status_code == 400


async def test_over_tls_alone_the_console_is_served_below_the_deployment_s_path(shared_store: PostgresStore) -> None:
    async with an_api(services_over(shared_store, replace(SETTINGS, base_url="http://pay.example"))) as api:
        answer = await api.client.get(api.origin + "/console/sign-in")
        assert (answer.status_code, "https alone" in answer.text) == (400, True)
        assert "set-cookie" not in answer.headers
    async with an_api(services_over(shared_store, replace(SETTINGS, base_url="https://pay.example/eu"))) as api:
        answer = await api.client.get(api.origin + "/console/sign-in")
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-payagg_console_visit=")
        assert {"Secure", "Path=/", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
        assert ("Domain" in cookie, 'action="/eu/console/sign-in"' in answer.text) == (False, True)
        led = await api.client.get(api.origin + "/", headers={"accept": "text/html"})
        assert led.headers["location"] == "/eu/console"


async def test_a_link_of_dev_signs_in_with_the_code_of_this_run_alone() -> None:
    services = services_over(MemoryStore())
    pages = dev_pages(services, {"merchant": merchant_token(), "admin": admin_token()})
    link = pages.links["adminConsoleUrl"].removeprefix(services.settings.base_url)
    code = link.rpartition("/")[2]
    with TestClient(create_app(services, extra_routes=pages.routes)) as client:
        for wrong in ("/dev/console/merchant/c0d3", f"/dev/console/owner/{code}", "/dev/console/merchant/"):
            answer = client.get(wrong, follow_redirects=False)
            assert (answer.status_code, "set-cookie" in answer.headers) == (404, False)
        answer = client.get(link, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/admin")
        assert answer.headers["set-cookie"].startswith("payagg_console_admin=")


async def test_what_is_shown_is_escaped_whatever_it_holds(api: Api, shop: Shop, browser: Browser) -> None:
    evil = "<script>alert(1)</script>\"'"
    reference = (await api.initiate(shop, customerName=evil, metadata={evil: evil}))["reference"]
    for path in (f"/payments/{reference}", f"/payments?search={evil}", "/payments?search=@" + evil):
        text = (await browser.open(base_of(shop) + path)).text
        assert "<script>" not in text
        assert evil in unescape(text)
    answer = await browser.send(base_of(shop) + "/webhooks", url=evil)
    assert (answer.status_code, "<script>" in answer.text, evil in unescape(answer.text)) == (400, False, True)


async def test_one_environment_never_shows_the_other_s(api: Api, shop: Shop, browser: Browser) -> None:
    sandbox, live = (await api.initiate(shop))["reference"], (await api.initiate(shop, shop.as_live))["reference"]
    endpoint_id = (await api.add_endpoint(shop, "https://shop.example/live", "LIVE"))["id"]
    for name, own, other in (("sandbox", sandbox, live), ("live", live, sandbox)):
        base = base_of(shop, name)
        text = (await browser.open(base + "/payments")).text
        assert (own in text, other in text) == (True, False)
        assert (await browser.open(f"{base}/payments/{own}")).status_code == 200
        assert (await browser.open(f"{base}/payments/{other}")).status_code == 404
        export = (await browser.open(base + "/payments/export?status=&from=&to=")).text
        assert (own in export, other in export) == (True, False)
        assert f"ssk_{'sand' if name == 'live' else 'live'}_" not in (await browser.open(base + "/keys")).text
    base = base_of(shop)
    assert "shop.example/live" not in (await browser.open(base + "/webhooks")).text
    data = {"form_token": browser.form_token, "url": "https://shop.example/x"}
    for action in ("", "/test", "/rotate", "/deactivate", "/activate"):
        path = f"{base}/webhooks/{endpoint_id}{action}"
        assert (await browser.client.post(path, data=data, headers=SAME_ORIGIN)).status_code == 404, action
    assert (await browser.open(f"/console/business/{shop.business.id}/nowhere")).status_code == 404


async def test_a_refusal_of_the_api_is_said_above_the_form_and_keeps_what_was_sent(api: Api) -> None:
    shop = await api.open_shop(keys=(Environment.LIVE,))
    browser = await Browser(api).sign_in(shop)
    base = base_of(shop)
    await browser.open(base + "/test-payment")
    for amount, words in (
        ("1e3", "as 1500 or 1500.00"),
        ("20,00", "as 1500 or 1500.00"),
        ("0.99", "from ₦1.00 to ₦90,071,992,547,409.91"),
        ("90071992547409.92", "from ₦1.00 to ₦90,071,992,547,409.91"),
        ("1,500.50", "no active sandbox key"),
    ):
        answer = await browser.send(base + "/test-payment", amount=amount)
        shown = (answer.status_code, words in answer.text, f'value="{amount}"' in answer.text)
        assert shown == (400, True, True)
    await browser.open(base + "/webhooks")
    await api.change(shop, status=BusinessStatus.SUSPENDED)
    answer = await browser.send(base + "/webhooks", url="https://shop.example/hooks")
    assert (answer.status_code, "The business is not active" in answer.text) == (403, True)


async def test_one_box_finds_a_payment_by_reference_email_name_or_amount(api: Api, shop: Shop) -> None:
    payer = {"amount": 123_456, "customerEmail": "ngozi@example.com", "customerName": "Ngozi Ọkọ́"}
    wanted, other = [(await api.initiate(shop, **fields))["reference"] for fields in (payer, {"customerName": "Ada"})]
    for _ in range(SCAN):
        await api.initiate(shop)
    browser = await Browser(api).sign_in(shop)
    admin = await Browser(api).sign_in_as_admin()
    terms = [wanted, wanted.lower(), wanted[-6:], "ngozi@example.com", "ọkọ́", "1234.56", "₦1,234.56", "NGOZI"]
    for who, path in ((browser, base_of(shop)), (admin, "/console/admin")):
        for term in terms:
            page = await who.open(f"{path}/payments?search={quote(term)}")
            assert (wanted in page.text, other in page.text) == (True, False), term
            assert "Export as CSV" not in page.text, "an export has no search: it would have everybody's payments"
        assert "Export as CSV" in (await who.open(f"{path}/payments?status=INITIATED")).text


async def test_a_payment_s_page_says_why_it_changed_and_why_nobody_was_told(
    api: Api, shop: Shop, browser: Browser
) -> None:
    await api.add_endpoint(shop, "https://shop.example/hooks", events=["payment.failed"])
    paid, opened = await api.paid(shop), (await api.initiate(shop))["reference"]
    path = f"{base_of(shop)}/payments/"
    assert "no active endpoint wanted it" in (await browser.open(path + paid)).text
    assert "None yet, or removed after 30 days" in (await browser.open(path + opened)).text
    async with api.services.store.begin() as tx:
        payment = must_exist(await tx.payments.lock(opened))
        charge = f"{opened}.2"  # what a transition keeps as its reason is the charge that was paid
        await api.services.settlement.move(tx, payment, Trigger.SUCCEED, actor="event:provider_a", reason=charge)
    told = text_of((await browser.open(path + opened)).text)
    assert ("event of Provider A succeed" in told, charge.lower() in told) == (True, False)
    assert "(API key) simulated" in text_of((await browser.open(path + paid)).text)


async def test_an_older_page_of_the_log_of_deliveries_keeps_its_place(api: Api, shop: Shop, browser: Browser) -> None:
    endpoint = await api.add_endpoint(shop)
    paid = [await api.paid(shop) for _ in range(PER_PAGE + 2)][::-1]

    async def delivered(address: str) -> list[str]:
        await browser.open(address)
        # A page that is no form's answer keeps its address: it is reloaded, and renewed while a delivery is under way.
        assert 'data-address=""' in browser.page.text
        return re.findall(r'payments/([^"/]+)">', browser.page.text)

    newest = f"{base_of(shop)}/webhooks/{endpoint['id']}"
    assert await delivered(newest) == paid[:PER_PAGE]
    (older,) = re.findall('href="([?][^"]+)"[^>]*>Older', browser.page.text)
    await api.paid(shop)  # moves each of them one place on
    assert await delivered(newest + older) == paid[PER_PAGE:]
    redeliver = re.findall('action="([^"]+/redeliver[^"]*)"', browser.page.text)
    answer = await browser.send(redeliver[-1])
    assert ("is on its way again" in answer.text, paid[-1] in answer.text) == (True, True)


async def test_people_read_names_and_lagos_time_and_the_audit_in_words(api: Api, shop: Shop, browser: Browser) -> None:
    reference = await api.paid(shop)
    await api.add_endpoint(shop, "https://shop.example/hooks", events=["payment.success", "payment.failed"])
    await api.add_endpoint(shop, "https://shop.example/all")
    admin = await Browser(api).sign_in_as_admin()
    (key,) = (await api.get(f"{shop.path}/api-keys", shop.as_owner))["sandbox"]
    # As servers of before wrote of a key.
    of_key: dict[str, Any] = {"actor": an_actor(ActorRealm.KEY, key["id"]), "business_id": shop.business.id}
    of_key["changes"] = {"status": {"before": "INITIATED", "after": "SUCCESS"}}
    async with api.services.store.begin() as tx:
        await tx.audit.add(an_entry(1, Action.PAYMENT_SIMULATE, reference, **of_key))
    text = unescape((await browser.open(f"{base_of(shop)}/payments/{reference}")).text)
    found = re.search(r'datetime="([^"]+)">([^<]+)</time>', text)
    assert found is not None
    lagos = datetime.fromisoformat(found[1]).astimezone(timezone(timedelta(hours=1)))
    assert found[2] == f"{lagos:%d %b %Y, %H:%M:%S}"
    text = unescape((await browser.open(base_of(shop) + "/audit")).text)
    told = ("payment: simulate", "status: INITIATED → SUCCESS", "events: payment.success, payment.failed")
    for words in (*told, "events: all", "is active: yes", f"{key['name']} (API key)"):
        assert words in text
    assert (key["id"] in text, "['" in text) == (False, False)
    text = unescape((await admin.open("/console/admin/audit")).text)
    assert f"API key ...{key['id'][-6:]}" in text  # no administrator may list a business's keys
    other = await Browser(api).sign_in(await api.open_shop())
    assert reference not in (await other.open(base_of(shop) + "/audit")).text


async def test_an_administrator_reads_naira_and_keeps_the_filter_from_one_anomaly_to_the_next(api: Api) -> None:
    def anomaly(number: int, kind: AnomalyKind, **details: Any) -> Anomaly:
        return Anomaly(an_id("anm", number), None, kind, "event:provider_a", details, api.services.clock.now())

    short = anomaly(1, AnomalyKind.MISMATCH, amounts=[123_450], currency="NGN", expected=150_000, received=123_450)
    foreign = anomaly(2, AnomalyKind.MISMATCH, amounts=[777], currency="USD", expected=150_000, received=777)
    dispute = anomaly(3, AnomalyKind.DISPUTE, disputeId="d-1", amounts=[123_450, 125_950], currency="NGN")
    async with api.services.store.begin() as tx:
        for one in (short, foreign, dispute):
            await tx.anomalies.add(one)
    admin = await Browser(api).sign_in_as_admin()
    shown = text_of((await admin.open("/console/admin/anomalies")).text)
    for words in ("expected ₦1,500.00", "received ₦1,234.50", "amounts ₦1,234.50, ₦1,259.50", "dispute id d-1"):
        assert words in shown
    assert ("received 777 " in shown, "₦7.77" in shown, "123450" in shown) == (True, False, False)

    filtered = {"severity": "MONEY_TO_GIVE_BACK", "kind": "MISMATCH", "after": foreign.id}
    await admin.open(f"/console/admin/anomalies?{urlencode(filtered)}")
    (close,) = re.findall(r'action="([^"]+/close[^"]*)"', unescape(admin.page.text))
    for status, words in ((200, "The anomaly is changed."), (409, "closed already")):
        page = await admin.send(close, reason="Refunded there.")
        assert (page.status_code, words in page.text, "d-1" in page.text) == (status, True, False)
        assert page.url.params["kind"] == filtered["kind"]
        assert re.findall("<dd>(event:.*?)</dd>", page.text) == ["event:provider_a"]


async def test_every_page_keeps_its_headers_and_refuses_odd_addresses_as_a_page(shop: Shop, browser: Browser) -> None:
    for path in ("/console/sign-in", base_of(shop), base_of(shop) + "/keys", "/console/nowhere"):
        headers = (await browser.open(path)).headers
        held = [word in headers["content-security-policy"] for word in ("default-src 'none'", "frame-ancestors 'none'")]
        assert (*held, "unsafe" in headers["content-security-policy"]) == (True, True, False)
        assert (headers["cache-control"], headers["x-frame-options"]) == ("no-store", "DENY")
    for query in ("payments?from=yesterday", "payments?after=rubbish"):
        assert (await browser.open(f"{base_of(shop)}/{query}")).status_code == 400
    for name in ("..%2F..%2Fapi-keys", "%2e%2e", "a%00b", "a%3Fb=c", "%ff"):
        for path in (f"{base_of(shop)}/payments/{name}", f"/console/business/{name}/sandbox"):
            answer = await browser.open(path)
            assert answer.status_code in (400, 403, 404), path
            assert answer.headers["content-type"].startswith("text/html"), path


async def test_a_form_changes_only_what_its_sender_changed(api: Api) -> None:
    """Two people have one page open; the second to save must not undo what the first did."""
    shop = await api.open_shop()
    endpoint = await api.add_endpoint(shop, "https://shop.example/hooks")
    merchant, admin = await Browser(api).sign_in(shop), await Browser(api).sign_in_as_admin()
    await admin.send("/console/admin/gateways", slug="two-people", name="Two people")
    base, gateway = base_of(shop), admin.page.url.path
    option, hook = f"{base}/checkout/gw_provider_a", f"{base}/webhooks/{endpoint['id']}"
    rows: list[tuple[Browser, str, str, dict[str, str | None], dict[str, str | None]]] = [
        (merchant, f"{base}/checkout", option, {"is_enabled": None}, {"display_name": "Card"}),
        (merchant, f"{base}/checkout", option, {"is_enabled": "on", "is_default": "on"}, {"display_name": "Cards"}),
        (merchant, hook, hook, {"url": "https://shop.example/new"}, {"event:payment.success": "on"}),
        (merchant, hook, hook, {"event:payment.failed": "on"}, {"description": "Ours"}),
        (admin, gateway, gateway, {"name": "Transfer"}, {"display_order": "7"}),
    ]
    for visitor, page, form, first, second in rows:
        await visitor.open(page)
        opened = visitor.fields(form)
        for own in (first, second):
            sent = {name: value for name, value in {**opened, **own}.items() if value is not None}
            assert (await visitor.send(form, headers=SAME_ORIGIN, **sent)).status_code == 200
        shown = visitor.fields(form)
        for name, value in {**first, **second}.items():
            assert shown.get(name) == value, form


async def test_the_preview_of_the_checkout_has_the_options_of_the_payer_s_page(api: Api, shop: Shop) -> None:
    browser, option = await Browser(api).sign_in(shop), re.compile('<label class="gateway">.*?</label>')
    await api.services.gateways.enable("gw_provider_b", by=AN_ADMIN)  # without credentials
    await api.send("PATCH", f"{shop.path}/gateways/gw_provider_a", shop.as_owner, displayName="Bank & card")
    own = {"sandbox": await api.initiate(shop), "live": await api.initiate(shop, shop.as_live)}
    for status in (BusinessStatus.ACTIVE, BusinessStatus.RESTRICTED):
        await api.change(shop, status=status)
        for environment, payment in own.items():
            offered = option.findall((await api.client.get(f"{api.origin}/checkout/{payment['reference']}")).text)
            assert len(offered) > 1
            preview = (await browser.open(base_of(shop, environment) + "/checkout")).text
            assert option.findall(preview) == offered, (status, environment)


async def test_an_upload_without_its_parts_is_refused_as_a_page(api: Api) -> None:
    browser = await Browser(api).sign_in_as_admin()
    await browser.open("/console/admin/gateways/gw_provider_a")
    address, token = "/console/admin/gateways/gw_provider_a/logo", browser.form_token
    own, image = {"form_token": token}, ("a.png", an_image())
    for fields, part, status in (({}, "file", 403), (own, "other", 400), (own, "file", 303)):
        answer = await browser.client.post(address, data=fields, files={part: image}, headers=SAME_ORIGIN)
        assert answer.status_code == status, answer.text
    answer = await Browser(api).client.post(address, data=own, files={"file": image})
    assert answer.headers["location"] == "/console/admin/sign-in?ended=1"


async def test_cookies_are_read_by_name_alone_and_by_no_route_but_the_console_s(
    api: Api, monkeypatch: pytest.MonkeyPatch, shop: Shop
) -> None:
    sealed = (await Browser(api).sign_in(shop)).client.cookies["payagg_console"]

    def unwanted(*_: Any) -> Any:
        raise AssertionError("the framework parsed the cookies")

    monkeypatch.setattr("litestar.connection.base.parse_cookie_string", unwanted)
    own = {base_of(shop), "/console/sign-in", "/console/admin/sign-in"}
    paths = {route.path for route in create_app(api.services).routes}
    assert len(paths) > 80
    cookies = rf'other="\"\""; payagg_console="{sealed}" ; another'
    async with httpx.AsyncClient(base_url=api.origin, trust_env=False, timeout=30) as client:
        for path in sorted(paths | own):
            for method in ("GET", "POST") if path.startswith("/console") else ("GET",):
                answer = await client.request(method, path, headers={"Cookie": cookies})
                assert answer.status_code != 500, (path, answer.text)
        assert (await client.get(base_of(shop), headers={"Cookie": cookies})).status_code == 200
