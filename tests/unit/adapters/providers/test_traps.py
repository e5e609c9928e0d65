"""The traps of the two protocols that show in a single body, key or parameter; each test is named after one."""

import base64
import hmac
import json
import logging
import os
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
import trustme
from payagg_testing.builders import LIVE, SANDBOX, a_payment

from payagg.adapters.providers import transport
from payagg.adapters.providers.payer_defaults import ALIAS_NAME, ALIAS_PHONE, names_of, phone_of
from payagg.adapters.providers.provider_b.client import SDK_EMAIL, launch_parameters
from payagg.adapters.providers.registry import providers_of
from payagg.adapters.providers.values import kobo_of, naira_text
from payagg.adapters.webhooks.resolver import Address
from payagg.domain.attempt import Charge, ChargeFacts
from payagg.domain.errors import ErrorCode
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment
from tests.support.refusals import refusal_of

REFERENCE = "PAY-20250101-AAAAAA"
PROVIDERS = providers_of(allow_loopback=False)
A, B = PROVIDERS["provider_a"], PROVIDERS["provider_b"]
PAYMENT = a_payment(reference=REFERENCE, amount=150_000)


def paystack(status: str = "success", *, event: str = "charge.success", **data: Any) -> bytes:
    facts = {
        "id": 5_000_000_001,
        "domain": "test",
        "status": status,
        "reference": REFERENCE,
        "amount": 150_000,
        "currency": "NGN",
        "channel": "card",
        "paid_at": "2025-01-01T10:00:00.000Z",
        "metadata": "",
        "fees": 2250,
        "customer": {"email": "p@example.com"},
    }
    return json.dumps({"event": event, "data": facts | data}).encode()


def payaza(**fields: str) -> bytes:
    """Fields are raw JSON, so that a number keeps the very digits it is sent with."""
    facts = {
        "transaction_reference": '"P-C-20250101-AAAAAAAAAA"',
        "merchant_reference": f'"{REFERENCE}"',
        "transaction_status": '"Funds Received"',
        "status": '"Completed"',
        "amount_received": "1500.00",
        "request_amount": "1500",
        "amount_validation": '"EXACT"',
        "transaction_fee": "0.00",
        "currency_code": '"NGN"',
        "channel": '"Card"',
    }
    return ("{" + ",".join(f'"{name}":{raw}' for name, raw in (facts | fields).items() if raw) + "}").encode()


def read(provider: Any, body: bytes) -> ProviderReport:
    report: ProviderReport = provider.read_event(body)
    assert report is not None
    assert provider.read_event(provider.redact_event(body)) == report
    return report


def event_of_a(event: str, **data: Any) -> bytes:
    return json.dumps({"event": event, "data": data}).encode()


def a_charge(environment: Environment = SANDBOX, amount: int = 150_000, **fields: Any) -> Charge:
    credentials = {"sandboxPublicKey": "PZ78-PKTEST-1", "livePublicKey": "PZ78-PKLIVE-1"}
    return Charge(REFERENCE, amount, "NGN", environment, credentials, "https://x.example/checkout", **fields)


def parameters(charge: Charge) -> dict[str, Any]:
    return dict(json.loads(launch_parameters(charge), parse_float=Decimal))


# Trap 1: the unit.
@pytest.mark.parametrize(
    ("text", "unit", "kobo"),
    [
        ("150000", 1, 150_000),
        ("463.00", 100, 46_300),
        ("19.99", 100, 1_999),  # 1998 through a float
        ("0.29", 100, 29),
        ("1.5E7", 100, 1_500_000_000),  # as Java writes 15000000.0
        ("90071992547409.91", 100, 9_007_199_254_740_991),
        ('"463.00"', 100, 46_300),
        ("463.000", 100, 46_300),
        *((text, 100, None) for text in ("463.005", "19.999", "null", "", "true", '""', "{}", "NaN")),
        *((text, 1, None) for text in ("150000.5", "-5", "1e99", "1e999999999", "9" * 5000)),
    ],
)
def test_trap_1_amounts_become_kobo_exactly_or_prove_nothing(text: str, unit: int, kobo: int | None) -> None:
    assert kobo_of(msgspec.Raw(text.encode()), unit) == kobo


# Trap 2: the raw body.
SECRETS = {"sandboxSecretKey": "sk_test_demo", "sandboxSigningSecret": "whsec_demo"}
GOLDEN_BODY = '{"a":1.00,"b":"₦/x"}'.encode()
GOLDEN_A = (
    "ddc874ac87e1ba37553ff796cb10b6759b29814c86e61e7340157e39fb03f9fb"
    "42c94c8706a802b3cd0a2a352e3ee174ac0867e050c030a1015919902b35e724"
)
GOLDEN_B = "Mqey+wp9NgjjBLZ49r6QNJsoopbqOALOS6hK7TmtVP+G+lCYQW53yYJr0xPYkXJdydvbwy5F9BvqNLSzfxFBoA=="


@pytest.mark.parametrize(
    ("provider", "shown"),
    [
        *((A, shown) for shown in (GOLDEN_A, GOLDEN_A.upper(), f"  {GOLDEN_A}\t")),
        *((B, shown) for shown in (GOLDEN_B, f" {GOLDEN_B} ", base64.b64decode(GOLDEN_B).hex())),
    ],
)
def test_trap_2_the_golden_vector_of_each_provider(provider: Any, shown: str) -> None:
    headers = {"x-provider_a-signature": shown, "x-provider_b-signature": shown}
    assert provider.is_authentic(GOLDEN_BODY, headers, SECRETS, SANDBOX)
    own = {"sandboxSecretKey": "sk_test_x", "sandboxWebhookSecret": "sk_test_demo"}
    assert provider.is_authentic(GOLDEN_BODY, headers, own, SANDBOX) is (provider is A)
    assert not provider.is_authentic(GOLDEN_BODY, headers, {"liveSecretKey": "sk_test_demo"}, SANDBOX)


@pytest.mark.parametrize(("provider", "header"), [(A, "x-provider_a-signature"), (B, "x-provider_b-signature")])
def test_trap_2_an_empty_secret_proves_nothing(provider: Any, header: str) -> None:
    forged = hmac.digest(b"", GOLDEN_BODY, "sha512")
    for secrets in ({}, {"sandboxSecretKey": "", "sandboxSigningSecret": ""}):
        for shown in (forged.hex(), base64.b64encode(forged).decode()):
            assert not provider.is_authentic(GOLDEN_BODY, {header: shown}, secrets, SANDBOX)


# Trap 3 (the outer status is not the payment's) is held by the contract over HTTP; its inner half is here.
def test_trap_3_and_4_an_amount_without_a_paid_status_is_no_payment() -> None:
    assert read(B, payaza(status='"Initialized"', transaction_status='""')).outcome is Outcome.UNPAID
    for said in ('""', '"Settling"', '"Funds Received"'):
        unheard = read(B, payaza(status='"Settling"', transaction_status=said))
        assert (unheard.outcome, unheard.is_known_status) == (Outcome.PENDING, False)
    # Two status fields that disagree prove nothing.
    disagree = {"Completed": ("Transaction Failed", "Reversed"), "Failed": ("Funds Received",)}
    for status, words in disagree.items():
        for said in words:
            unclear = read(B, payaza(status=f'"{status}"', transaction_status=f'"{said}"'))
            assert (unclear.outcome, unclear.is_known_status, unclear.word) == (Outcome.PENDING, False, said)
    assert read(B, payaza(transaction_status='"Completed"')).outcome is Outcome.SUCCEEDED
    failed = read(B, payaza(status='"Failed"', transaction_status='"Transaction Failed"'))
    assert (failed.outcome, failed.reason) == (Outcome.FAILED, "DECLINED")


# Trap 5: a fee on top.
def test_trap_5_provider_a_compares_the_requested_amount_and_never_accepts_less() -> None:
    for amount, requested, matches in (
        (150_000, 150_000, True),
        (152_250, 150_000, True),
        (150_000, None, True),
        (152_250, None, False),
        (149_999, 150_000, False),  # requested in full, paid in part
        (150_000, 149_999, False),
    ):
        report = read(A, paystack(amount=amount, requested_amount=requested))
        assert (report.mismatch(PAYMENT) is None) is matches, (amount, requested)


@pytest.mark.parametrize(
    ("received", "requested", "fee", "validation", "matches"),
    [
        ("1500.00", "1500", "0.00", "EXACT", True),
        ("1520.28", "1500", "20.28", "EXACT", True),
        ("1520.28", "", "20.28", "", True),
        ("1500.00", "", "", "", True),
        ("1600.00", "1500", "0.00", "OVERPAYMENT", False),
        ("1400.00", "1500", "0.00", "UNDERPAYMENT", False),
        ("1500.00", "1500", "0.00", "UNDERPAYMENT", False),
        ("1400.00", "1500", "0.00", "EXACT", False),
        ("1400.005", "1500", "0.00", "EXACT", False),
        ('"many"', "1500", "0.00", "EXACT", False),
        ("null", "1500", "0.00", "EXACT", True),
        ("1400.00", "1400", "100.00", "EXACT", False),
        ("1500.001", "", "0", "", False),
    ],
)
def test_trap_5_provider_b_accepts_the_amount_with_or_without_its_fee_and_never_less(
    received: str, requested: str, fee: str, validation: str, matches: bool
) -> None:
    told = f'"{validation}"' if validation else ""
    facts = {"amount_received": received, "request_amount": requested, "transaction_fee": fee}
    assert (read(B, payaza(**facts, amount_validation=told)).mismatch(PAYMENT) is None) is matches
    assert read(B, payaza(**facts, amount_validation=told, currency_code='"USD"')).mismatch(PAYMENT) is not None


# Trap 6: abandoned and failed.
def test_trap_6_each_word_of_provider_a_means_what_the_table_says() -> None:
    unknown = ("ongoing", "pending", "processing", "queued", "Success", "refunded")
    told = {word: read(A, paystack(word)).outcome.value for word in ("success", "failed", "reversed", *unknown)}
    ends = {"success": "SUCCEEDED", "failed": "FAILED", "reversed": "REVERSED"}
    assert told == ends | dict.fromkeys(unknown, "PENDING")
    assert read(A, paystack("abandoned")).outcome is Outcome.UNPAID


# Traps 1, 8, 13 and 19: a launch has the very kobo, the attempt's reference, its environment's key and no other.
@pytest.mark.parametrize("amount", [100, 101, 150_000, 1_999, 9_007_199_254_740_991])
@pytest.mark.parametrize(("environment", "key", "mode"), [(SANDBOX, "TEST", "Test"), (LIVE, "LIVE", "Live")])
def test_trap_8_launch_parameters_are_exact_and_hold_only_the_public_key(
    environment: Environment, key: str, mode: str, amount: int
) -> None:
    raw, told = launch_parameters(a_charge(environment, amount)), parameters(a_charge(environment, amount))
    assert raw == launch_parameters(a_charge(environment, amount))
    assert f'"checkout_amount":{naira_text(amount)},'.encode() in raw
    assert told["checkout_amount"] * 100 == amount
    assert (told["merchant_key"], told["connection_mode"]) == (f"PZ78-PK{key}-1", mode)
    assert told["transaction_reference"] == REFERENCE
    assert raw.count(b"PZ78") == 1


# Payaza says "Transaction data found" of a charge that it has, so of one that it has not it may say more than
# documented; taken for a fault, a few closed popups would pause the provider for everybody.
@pytest.mark.parametrize(
    "body",
    [
        b'{"response_code":404,"response_message":"Transaction not found","response_content":null}',
        b'{"message":"Transaction data not found","data":null,"success":false}',
    ],
)
async def test_a_popup_that_was_never_opened_is_no_fault_of_provider_b(
    monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    async def answer(*_: Any) -> transport.ProviderAnswer:
        return transport.ProviderAnswer(200, body)

    monkeypatch.setattr(transport.Transport, "exchange", answer)
    report = await B.fetch_charge(a_charge())
    assert (report.outcome, report.is_of_a_charge) == (Outcome.UNPAID, False)


# Trap 12: payer data.
def test_trap_12_an_address_the_sdk_would_refuse_becomes_an_alias_it_takes() -> None:
    kept = ("ada@example.com", "ada.obi@mail.example.ng", "a-b_c@x-y.org")
    for email in (*kept, "a+b@c.com", "a@b.africa", "a@b.info", "", None, "a" * 60 + "!"):
        used = parameters(a_charge(customer_email=email))["email_address"]
        assert (used == email) is (email in kept), email
        assert SDK_EMAIL.fullmatch(used)


def test_trap_12_names_are_never_blank_and_phones_international_or_nobodys() -> None:
    names = {None: ALIAS_NAME, "  ": ALIAS_NAME, "Ada": ("Ada", "Ada"), "Ada Obi": ("Ada", "Obi")}
    names["Ada  Ngozi Obi "] = ("Ada", "Ngozi Obi")
    assert {name: names_of(name) for name in names} == names
    nobodys = dict.fromkeys((None, "", "call me", "1" * 30), ALIAS_PHONE)
    ours = dict.fromkeys(("0801 234 5678", "+234 801 234 5678", "2348012345678"), "+2348012345678")
    phones = nobodys | ours | {"00442071234567": "+442071234567"}
    assert {phone: phone_of(phone) for phone in phones} == phones


PRIVATE_HOSTS = [
    *("10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "[::1]", "[fc00::1]", "[fe80::1]"),
    *("[::ffff:10.0.0.1]", "0x7f.0.0.1", "127.1", "2130706433", "metadata", "metadata.google.internal"),
    "printer.local",
]


# Trap 13: environments.
def refused_credentials(provider: Any, **credentials: str) -> str | None:
    """The field that a refusal of them names."""
    refused = refusal_of(provider.check_credentials, credentials)
    assert refused.code is ErrorCode.VALIDATION_ERROR
    return refused.field


@pytest.mark.parametrize(
    ("provider", "name", "value"),
    [
        (A, "sandboxSecretKey", "sk_live_abc"),
        (A, "liveSecretKey", "sk_test_abc"),
        (A, "sandboxWebhookSecret", "sk_live_abc"),
        (A, "liveWebhookSecret", "sk_test_abc"),
        (B, "sandboxPublicKey", "PZ78-PKLIVE-1"),
        (B, "livePublicKey", "PZ78-PKTEST-1"),
        (B, "liveSigningSecret", "PZ78-SKTEST-1"),
        (A, "liveSecretKey", "sk_live_a b"),
        (A, "liveSecretKey", "sk_live_a\r\nx: y"),
        (A, "sandboxBaseUrl", "http://api.paystack.co"),
        (A, "liveBaseUrl", "https://user@api.paystack.co"),
        (B, "liveBaseUrl", "https://api.payaza.africa/live?x=1"),
        (B, "sandboxBaseUrl", "http://127.0.0.1:8000"),
        (B, "sandboxBaseUrl", "https://localhost"),
        *((A, "liveBaseUrl", f"https://{host}/pay") for host in PRIVATE_HOSTS),
        (B, "liveEnabled", "no"),
    ],
)
def test_trap_13_a_credential_of_the_wrong_kind_is_refused_by_name(provider: Any, name: str, value: str) -> None:
    assert refused_credentials(provider, **{name: value}) == f"credentials.{name}"


def test_trap_13_two_environments_never_share_a_signing_secret() -> None:
    shared: tuple[tuple[Any, dict[str, str], str], ...] = (
        (A, {"sandboxWebhookSecret": "one", "liveWebhookSecret": " one "}, "liveWebhookSecret"),
        (A, {"sandboxSecretKey": "same", "liveSecretKey": "same"}, "liveWebhookSecret"),
        (A, {"sandboxSecretKey": "same", "liveSecretKey": "x", "liveWebhookSecret": "same"}, "liveWebhookSecret"),
        (B, {"sandboxSigningSecret": "one", "liveSigningSecret": "one"}, "liveSigningSecret"),
    )
    for provider, credentials, name in shared:
        assert refused_credentials(provider, **credentials) == f"credentials.{name}"
        provider.check_credentials({key: f"{value.strip()}-{key}" for key, value in credentials.items()})


def test_trap_13_other_names_are_accepted_and_kept() -> None:
    A.check_credentials({"note": "sk_live_x in a note", "contract code": " ", "liveBaseUrl": "https://proxy.example/p"})
    loopback = providers_of(allow_loopback=True)
    loopback["provider_b"].check_credentials({"sandboxBaseUrl": "http://127.0.0.1:8000/live"})


def test_trap_13_a_paid_body_must_say_its_domain() -> None:
    assert read(A, paystack(domain="live")).mismatch(PAYMENT) == "environment"
    for domain in (None, "staging", 1):
        for status in ("success", "reversed"):
            report = read(A, paystack(status, domain=domain))
            assert (report.outcome, report.is_known_status) == (Outcome.PENDING, False), "kept once the payment ended"
        transaction = {**json.loads(paystack("reversed"))["data"], "domain": domain}
        lost = read(A, event_of_a("charge.dispute.resolve", id=358, resolution=None, transaction=transaction))
        assert (lost.outcome, lost.details["state"]) == (Outcome.DISPUTED, "lost")


# Trap 14: types drift.
def test_trap_14_provider_a_may_send_any_metadata_and_write_an_amount_either_way() -> None:
    drift: dict[str, Any] = {"authorization": {}, "customer": None, "gateway_response": 5, "fees": "x"}
    for metadata in ("", 0, None, {}, {"a": [1]}, "text"):
        assert read(A, paystack(metadata=metadata, **drift)).mismatch(PAYMENT) is None
    for amount in (150_000, "150000"):
        of_it: dict[str, Any] = {"transaction_reference": REFERENCE, "amount": amount, "currency": "NGN", "id": 7}
        report = read(A, event_of_a("refund.processed", domain="test", **of_it))
        assert (report.outcome, report.mismatch(PAYMENT)) == (Outcome.REVERSED, None)
        assert (report.environment, report.details) == (SANDBOX, {"refundId": "7"})


def test_trap_14_provider_b_may_leave_out_or_null_almost_anything_and_write_any_date() -> None:
    lean = {"amount_validation": "", "request_amount": "null", "transaction_fee": "null", "channel": "null"}
    assert read(B, payaza(transaction_reference="null", **lean)).mismatch(PAYMENT) is None
    for date in ("null", '"2025-01-01 10:00:00"', '"soon"', "17"):  # trap 11
        assert read(B, payaza(current_status_date=date, initiated_date=date)) == read(B, payaza())


# Trap 15: the reference.
def test_trap_15_a_card_event_without_our_field_has_the_reference_in_the_other_and_foreign_ones_are_not_ours() -> None:
    assert read(B, payaza(merchant_reference="", transaction_reference=f'"{REFERENCE}"')).mismatch(PAYMENT) is None
    assert B.read_event(payaza(transaction_type='"DEBIT"')) is None
    assert B.read_event(payaza(transaction_status='"NIP_SUCCESS"')) is None
    assert B.read_event(payaza(merchant_reference='"ORDER-17"')) is None
    assert A.read_event(paystack(reference="T1234567")) is None
    for event in ("refund.pending", "refund.processing", "refund.failed"):  # trap 16: a reversal that has not happened
        assert A.read_event(event_of_a(event, transaction_reference=REFERENCE)) is None


# Trap 16: reversals.
@pytest.mark.rule("description.13")
def test_trap_16_a_dispute_is_one_fact_and_reverses_only_when_it_was_upheld() -> None:
    def told(event: str, status: str = "success", **more: Any) -> ProviderReport:
        transaction = json.loads(paystack(status))["data"]
        return read(A, event_of_a(f"charge.dispute.{event}", transaction=transaction, **more))

    assert told("resolve", "reversed", transaction_reference=None).outcome is Outcome.REVERSED
    assert told("resolve", transaction_reference=None).outcome is Outcome.DISPUTED
    of_it: dict[str, Any] = {"id": 358, "refund_amount": 5000, "transaction_reference": None}
    created = told("create", **of_it)
    assert (created.provider_reference, created.outcome) == (REFERENCE, Outcome.DISPUTED)
    assert (created.amounts, created.details["disputeId"]) == (frozenset({5000}), "358")
    assert created.environment is SANDBOX
    dated = [told(step, due_at="2025-02-01T11:00:00.000+01:00", **of_it) for step in ("create", "resolve")]
    assert [one.details.get("dueAt") for one in dated] == ["2025-02-01T10:00:00+00:00", None]
    assert told("remind", **of_it).evidence() == created.evidence()
    ends = {
        ("success", "declined"): "won",
        ("success", "merchant-accepted"): "accepted",
        ("success", "auto-accepted"): "accepted",
        ("reversed", "merchant-accepted"): "accepted",
        ("reversed", None): "lost",
    }
    for (status, resolution), state in ends.items():
        ended = told("resolve", status, resolution=resolution, **of_it)  # only a part went back
        assert (ended.outcome, ended.details["state"]) == (Outcome.DISPUTED, state)


def test_a_paid_body_says_what_is_known_of_its_charge() -> None:
    paid_at = datetime(2025, 1, 1, 10, tzinfo=UTC)
    assert read(A, paystack()).facts == ChargeFacts("5000000001", "card", 2250, 150_000, paid_at)
    assert read(A, paystack(fees=None)).facts.fee is None
    on_top = payaza(amount_received="1522.50", transaction_fee="22.50")
    assert read(B, on_top).facts == ChargeFacts("P-C-20250101-AAAAAAAAAA", "Card", 2250, 152_250)


# Trap 20: secrets.
def test_trap_20_clients_print_no_headers_even_at_debug_and_no_text_of_a_provider_becomes_a_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    assert not any(logging.getLogger(name).isEnabledFor(logging.DEBUG) for name in ("httpx", "httpcore.http11"))
    for text in ("4084084084084081 was declined", "<b>no</b>", "insufficient funds for Ada", "card expired 01/39", 7):
        report = read(A, paystack("failed", gateway_response=text))
        assert report.reason in {"DECLINED", "INSUFFICIENT_FUNDS", "EXPIRED_CARD"}


@pytest.mark.parametrize(
    ("host", "kind"), [("provider.example", FaultKind.MALFORMED), ("other.example", FaultKind.UNREACHABLE)]
)
async def test_tls_is_verified_against_the_name_and_a_record_that_breaks_is_a_fault(
    host: str, kind: FaultKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    server_tls, client_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("provider.example", "127.0.0.1").configure_cert(server_tls)
    authority.configure_trust(client_tls)
    monkeypatch.setattr(transport, "_tls", lambda: client_tls)

    async def resolve(_: str) -> list[Address]:
        return [(socket.AF_INET, "127.0.0.9"), (socket.AF_INET, "127.0.0.1")]  # nobody listens at the first

    def serve(listener: socket.socket) -> None:
        raw, _ = listener.accept()
        with raw, suppress(ssl.SSLError), server_tls.wrap_socket(raw, server_side=True) as tls:
            tls.recv(65_536)
            with socket.socket(fileno=os.dup(tls.fileno())) as beneath:
                beneath.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)  # a record that nobody sealed

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        listener.settimeout(10)
        served = pool.submit(serve, listener)
        url = f"https://{host}:{listener.getsockname()[1]}/"
        with pytest.raises(ProviderFault) as raised:
            await transport.Transport(resolve=resolve).exchange("GET", url, {})
        served.result()
    assert raised.value.kind is kind


async def test_an_ipv4_address_has_all_the_time_although_one_of_ipv6_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where IPv6 leads nowhere, a provider that answers slowly can be reached."""
    monkeypatch.setattr(transport, "ADDRESS_SECONDS", 0.0)

    async def resolve(_: str) -> list[Address]:
        return [(socket.AF_INET6, "::"), (socket.AF_INET, "127.0.0.1")]

    def serve(listener: socket.socket) -> None:
        taken, _ = listener.accept()
        with taken:
            taken.recv(65_536)
            taken.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        listener.settimeout(5)
        served = pool.submit(serve, listener)
        url = f"http://provider.example:{listener.getsockname()[1]}/"
        answer = await transport.Transport(resolve=resolve).exchange("GET", url, {})
        served.result()
    assert answer.status == 204
