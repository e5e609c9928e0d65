"""The contract of a provider adapter: its tests inherit it and hand in a `ProviderHarness` with a fake provider.

It says what the use cases rely on: only evidence of a payment is a success, an unclear answer is a fault and never a
failure, and nothing is read from a body before its signature is proven.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest
from payagg_testing.builders import REFERENCE, a_payment
from payagg_testing.provider_faults import Fault

from payagg.application.ports.providers import Provider
from payagg.domain.attempt import Charge, HandOff
from payagg.domain.payment import Payment
from payagg.domain.report import FaultKind, Outcome, ProviderFault
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import Book

OTHER_REFERENCE = "PAY-20250131-ZZZZZZ"
AMOUNT = 150_050


@dataclass(frozen=True)
class ProviderHarness:
    """One adapter and the fake it talks to. `impatient` is the same adapter with a deadline short enough to wait for.

    `open` is what the payer's browser does with a hand-off before paying; `event` gives the body the provider would
    send about a charge now; `sign` the headers that prove a body.
    """

    provider: Provider
    impatient: Provider
    book: Book
    credentials: Mapping[str, str] = field(repr=False)
    header: str
    open: Callable[[HandOff], None]
    pay: Callable[[str, int], None]  # reference, fee on top
    decline: Callable[[str], None]
    event: Callable[[str], bytes]
    sign: Callable[[bytes, Environment], str]
    calls_to_start: bool  # whether starting a charge is a network call
    tells_environment: bool  # whether bodies say test or live
    fails_by_event: bool  # whether a decline sends an event

    def charge(self, environment: Environment = Environment.SANDBOX) -> Charge:
        return Charge(
            reference=REFERENCE,
            amount=AMOUNT,
            currency="NGN",
            environment=environment,
            credentials=self.credentials,
            checkout_url=f"https://pay.example/checkout/{REFERENCE}",
            customer_email="ada@example.com",
            customer_name="Ada Obi",
        )

    async def begun(self, environment: Environment = Environment.SANDBOX) -> Charge:
        """A charge whose payer has reached the provider."""
        charge = self.charge(environment)
        self.open(await self.provider.start_charge(charge))
        return charge


def the_payment(environment: Environment = Environment.SANDBOX) -> Payment:
    return a_payment(amount=AMOUNT, environment=environment)


async def fault_of(call: Awaitable[object]) -> FaultKind:
    """The fault that the call ends in."""
    with pytest.raises(ProviderFault) as raised:
        await call
    return raised.value.kind


class ProviderContract:
    """Inherit, and define an async fixture `rig`."""

    @pytest.mark.parametrize("environment", list(Environment))
    async def test_a_paid_charge_is_a_success_that_matches_the_payment(
        self, rig: ProviderHarness, environment: Environment
    ) -> None:
        """With a fee on top, too."""
        charge = await rig.begun(environment)
        for fee in (0, 2_251):
            rig.pay(charge.reference, fee)
            report = await rig.provider.fetch_charge(charge)
            assert (report.outcome, report.mismatch(the_payment(environment))) == (Outcome.SUCCEEDED, None)

    async def test_a_decline_is_a_failure_with_a_reason_of_ours(self, rig: ProviderHarness) -> None:
        charge = await rig.begun()
        rig.decline(charge.reference)
        report = await rig.provider.fetch_charge(charge)
        assert (report.outcome, report.reason) == (Outcome.FAILED, "DECLINED")

    async def test_only_evidence_of_no_payment_tells_that_there_is_none(self, rig: ProviderHarness) -> None:
        """Of a reference that the provider never saw; one that nobody paid yet may be pending."""
        assert (await rig.provider.fetch_charge(rig.charge())).outcome is Outcome.UNPAID
        report = await rig.provider.fetch_charge(await rig.begun())
        assert report.outcome in (Outcome.PENDING, Outcome.UNPAID)

    @pytest.mark.parametrize("word", ["chargeback-ish", "SUCCESSFUL", "Refunded", "", "success "])
    async def test_an_unknown_word_means_still_pending(self, rig: ProviderHarness, word: str) -> None:
        charge = await rig.begun()
        rig.book.charges[charge.reference].status = word
        assert (await rig.provider.fetch_charge(charge)).outcome is Outcome.PENDING

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("amount", kobo) for kobo in (AMOUNT - 1, AMOUNT + 1, AMOUNT * 100)),
            ("currency", "USD"),
            ("reference", OTHER_REFERENCE),
        ],
    )
    async def test_a_wrong_fact_in_a_paid_answer_is_seen(self, rig: ProviderHarness, name: str, value: object) -> None:
        charge = await rig.begun()
        rig.pay(charge.reference, 0)
        rig.book.alter = {name: value}
        report = await rig.provider.fetch_charge(charge)
        assert (report.outcome, report.mismatch(the_payment())) == (Outcome.SUCCEEDED, name)

    async def test_the_other_environment_in_a_paid_answer_is_seen(self, rig: ProviderHarness) -> None:
        if not rig.tells_environment:
            pytest.skip("this provider's bodies do not say which environment they are of; the key alone tells")
        charge = await rig.begun()
        rig.pay(charge.reference, 0)
        rig.book.alter = {"mode": "live"}
        assert (await rig.provider.fetch_charge(charge)).mismatch(the_payment()) == "environment"

    @pytest.mark.parametrize(
        ("fault", "kind"),
        [
            (Fault.SERVER_ERROR, FaultKind.SERVER_ERROR),
            (Fault.GARBAGE, FaultKind.MALFORMED),
            (Fault.HUGE, FaultKind.MALFORMED),
            (Fault.RESET, FaultKind.MALFORMED),
            (Fault.RATE_LIMITED, FaultKind.RATE_LIMITED),
            (Fault.REFUSED_KEY, FaultKind.BAD_CREDENTIALS),
        ],
    )
    async def test_an_unusable_answer_is_a_fault_and_never_an_outcome(
        self, rig: ProviderHarness, fault: Fault, kind: FaultKind
    ) -> None:
        charge = await rig.begun()
        rig.pay(charge.reference, 0)
        rig.book.faults.append(fault)
        assert await fault_of(rig.provider.fetch_charge(charge)) is kind

    async def test_silence_is_a_timeout_and_nobody_listening_is_unreachable(self, rig: ProviderHarness) -> None:
        charge = await rig.begun()
        rig.book.faults.append(Fault.HANG)
        assert await fault_of(rig.impatient.fetch_charge(charge)) is FaultKind.TIMEOUT
        nowhere = replace(rig.charge(), credentials={**rig.credentials, "sandboxBaseUrl": "http://127.0.0.1:1"})
        assert await fault_of(rig.provider.fetch_charge(nowhere)) is FaultKind.UNREACHABLE

    @pytest.mark.parametrize(
        ("fault", "kind"), [(Fault.LOST_REPLY, FaultKind.TIMEOUT), (Fault.RESET, FaultKind.MALFORMED)]
    )
    async def test_a_lost_reply_leaves_an_uncertain_fault_while_the_charge_was_made(
        self, rig: ProviderHarness, fault: Fault, kind: FaultKind
    ) -> None:
        _only_where_starting_calls(rig)
        rig.book.faults.append(fault)
        assert await fault_of(rig.impatient.start_charge(rig.charge())) is kind
        assert not kind.is_certain
        assert rig.book.charges[REFERENCE].opened == 1

    async def test_one_call_starts_one_charge_and_a_reference_used_before_is_a_duplicate(
        self, rig: ProviderHarness
    ) -> None:
        """It is never repeated by itself, and a refused key is certainly no charge."""
        _only_where_starting_calls(rig)
        for fault, kind in (
            (Fault.SERVER_ERROR, FaultKind.SERVER_ERROR),
            (Fault.REFUSED_KEY, FaultKind.BAD_CREDENTIALS),
        ):
            rig.book.faults.append(fault)
            assert await fault_of(rig.provider.start_charge(rig.charge())) is kind
            assert not rig.book.faults
            assert not rig.book.charges
        assert FaultKind.BAD_CREDENTIALS.is_certain
        await rig.provider.start_charge(rig.charge())
        assert await fault_of(rig.provider.start_charge(rig.charge())) is FaultKind.DUPLICATE

    async def test_the_same_charge_gives_the_same_hand_off_where_no_call_is_made(self, rig: ProviderHarness) -> None:
        if rig.calls_to_start:
            pytest.skip("this provider issues a new page at each call")
        assert await rig.provider.start_charge(rig.charge()) == await rig.provider.start_charge(rig.charge())

    async def test_a_signed_event_of_a_payment_is_a_success_that_matches(self, rig: ProviderHarness) -> None:
        body = await _paid_event(rig)
        assert _is_authentic(rig, body, rig.sign(body, Environment.SANDBOX))
        report = rig.provider.read_event(body)
        assert report is not None
        assert (report.outcome, report.mismatch(the_payment())) == (Outcome.SUCCEEDED, None)

    async def test_a_decline_event_is_a_failure(self, rig: ProviderHarness) -> None:
        if not rig.fails_by_event:
            pytest.skip("this provider sends no event for a decline")
        charge = await rig.begun()
        rig.decline(charge.reference)
        report = rig.provider.read_event(rig.event(charge.reference))
        assert report is not None
        assert (report.outcome, report.reason) == (Outcome.FAILED, "DECLINED")

    async def test_every_altered_signature_is_refused(self, rig: ProviderHarness) -> None:
        body = await _paid_event(rig)
        good = rig.sign(body, Environment.SANDBOX)
        flipped = ("b" if good[0] in "aA" else "a") + good[1:]  # hexadecimal signatures are taken in either letter case
        others = (good[:-1], good[: len(good) // 2], flipped, good + "A", good * 2)
        for bad in (*others, "", " ", "é" * 88, "\x00", "null"):
            assert not _is_authentic(rig, body, bad), bad
        assert not rig.provider.is_authentic(body, {}, rig.credentials, Environment.SANDBOX)

    async def test_a_signature_proves_its_own_bytes_and_environment_alone(self, rig: ProviderHarness) -> None:
        body = await _paid_event(rig)
        good = rig.sign(body, Environment.SANDBOX)
        for changed in (body + b" ", body[:-1], body.replace(b"{", b"{ ", 1), json.dumps(json.loads(body)).encode()):
            assert changed != body
            assert not _is_authentic(rig, changed, good)
        assert not _is_authentic(rig, body, rig.sign(body, Environment.LIVE))
        assert not rig.provider.is_authentic(body, {rig.header: good}, {}, Environment.SANDBOX)

    @pytest.mark.parametrize(
        "body",
        [
            *(b"", b"null", b"[]", b"1", b'"text"', b"{", b'{"data":', b"\xff\xfe", b"[" * 100_000, b"a" * 1_000_000),
            *(b"canary", b'"canary"', b'{"canary', b'{"data":' * 100_000),
        ],
    )
    async def test_a_body_that_is_no_event_is_malformed_and_nothing_of_it_is_kept(
        self, rig: ProviderHarness, body: bytes
    ) -> None:
        kept = rig.provider.redact_event(body)
        assert len(kept) < 20
        for one in (body, kept):
            with pytest.raises(ProviderFault) as raised:
                rig.provider.read_event(one)
            assert raised.value.kind is FaultKind.MALFORMED

    @pytest.mark.parametrize(
        "reference", ["", "PAY-1", "PAY-20250131-ABCDEF\x00", "../../x", "PAY-20250131-abcdef", "X" * 10_000]
    )
    async def test_an_event_about_a_reference_that_cannot_be_ours_is_not_ours(
        self, rig: ProviderHarness, reference: str
    ) -> None:
        body = json.loads(await _paid_event(rig))
        text = json.dumps(body).replace(REFERENCE, json.dumps(reference)[1:-1])
        assert rig.provider.read_event(text.encode()) is None

    async def test_what_is_kept_of_an_event_says_the_same_and_nothing_of_the_payer(self, rig: ProviderHarness) -> None:
        body = await _paid_event(rig)
        payer = {
            "customer": {"email": "canary@payer.example", "customer_code": "CUS_canary"},
            "authorization": {"authorization_code": "AUTH_canary", "last4": "4081", "bin": "408408"},
            "customer_email": "canary@payer.example",
            "ip_address": "203.0.113.7",
            "metadata": {"note": "canary", "reference": "canary"},
        }
        event = json.loads(body)
        data = event["data"] if isinstance(event.get("data"), dict) else event
        data.update(payer, log={"history": [payer]})
        full = json.dumps(event).encode()
        kept = rig.provider.redact_event(full)
        assert rig.provider.read_event(kept) == rig.provider.read_event(full) == rig.provider.read_event(body)
        assert rig.provider.read_event(kept) is not None
        for canary in (b"canary", b"4081", b"408408", b"203.0.113.7"):
            assert canary not in kept

    async def test_it_serves_an_environment_with_credentials_unless_it_is_switched_off(
        self, rig: ProviderHarness
    ) -> None:
        sandbox = {name: value for name, value in rig.credentials.items() if name.startswith("sandbox")}
        assert rig.provider.is_configured(rig.credentials, Environment.LIVE)
        assert rig.provider.is_configured(sandbox, Environment.SANDBOX)
        assert not rig.provider.is_configured(sandbox, Environment.LIVE)
        assert not rig.provider.is_configured(dict.fromkeys(sandbox, " "), Environment.SANDBOX)
        off = {**rig.credentials, "liveEnabled": "false"}
        assert rig.provider.is_switched_on(off, Environment.SANDBOX)
        assert not rig.provider.is_switched_on(off, Environment.LIVE)


def _only_where_starting_calls(rig: ProviderHarness) -> None:
    if not rig.calls_to_start:
        pytest.skip("starting a charge at this provider needs no call")


def _is_authentic(rig: ProviderHarness, body: bytes, signature: str) -> bool:
    return rig.provider.is_authentic(body, {rig.header: signature}, rig.credentials, Environment.SANDBOX)


async def _paid_event(rig: ProviderHarness) -> bytes:
    charge = await rig.begun()
    rig.pay(charge.reference, 0)
    return rig.event(charge.reference)
