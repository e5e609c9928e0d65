"""What every Store promises about payments: uniqueness, compare-and-set, fencing, skipping; and of a key as it stood
some time ago, that nothing is done for it unless it stands so."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from payagg_testing.builders import (
    HOUR,
    LIVE,
    MINUTE,
    NOW,
    REFERENCE,
    SANDBOX,
    TICK,
    a_business,
    a_gateway,
    a_key,
    a_payment,
    a_transition,
    an_attempt,
    an_endpoint,
    an_entry,
    an_id,
)

from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.outside import Conflict, KeyStateChanged, ReferenceTaken
from payagg.application.ports.payments import LockedPayment, PaymentAggregate, ProviderCall
from payagg.domain.attempt import FIRST_CHECK_MAX, HASTEN_PAID, AttemptState
from payagg.domain.audit import AuditFilter
from payagg.domain.business import BusinessStatus, KycStatus
from payagg.domain.checks import with_changes
from payagg.domain.gateway import GatewayStatus
from payagg.domain.payment import Payment, Status, Trigger
from payagg.domain.revocation import Revocation, RevokedClaim
from payagg.domain.webhook import Subscriber
from tests.contracts.database import Database, breaks_a_rule, put

OTHER = "PAY-20250131-AAAAAA"


async def stored(db: Database, **fields: Any) -> Payment:
    payment, created = await db.add_payment(a_payment(**fields))
    assert created
    return payment


async def a_holder(db: Database) -> KeyHolder:
    """An active key of an active, approved business, as the store found it."""
    await put(db, a_business(), a_key())
    holder = await db.find_key(a_key().secret_hash)
    assert holder is not None
    return holder


class PaymentContract:
    async def test_a_payment_comes_back_as_it_went_in_and_an_unknown_one_as_nothing(self, db: Database) -> None:
        payment = a_payment(
            gateway="provider_a",
            customer_email="ada@example.com",
            customer_name="Adaeze Òbí 😀 \\ \" ' {}",
            customer_phone="+2348012345678",
            callback_url="https://shop.example/thanks?a=b&c=d",
            webhook_url="https://shop.example/own",
            metadata={"n": 2**63 - 1, "tags": [{"a": None}, True], "é": 0.1, "": "", "text": "line\nbreak\u2028"},
            idempotency_key="key, with {braces} and \\ and NULL",
            fingerprint=bytes(range(31)) + b"\xff",
            amount=2**53 - 1,
            api_key_id="key_1",
        )
        assert await db.add_payment(payment) == (payment, True)
        for read in (db.find_payment, db.payments.get, db.payments.lock):
            assert [await read(reference) for reference in (REFERENCE, OTHER)] == [payment, None]
        assert [await db.find_payment(reference) for reference in ("", "PAY\x00", "\ud800")] == [None] * 3
        assert (await db.attempts.of_payment(OTHER), await db.payments.transitions(OTHER)) == ([], [])

    async def test_a_test_payment_stays_one_and_meets_the_simulator_alone(self, db: Database) -> None:
        payment = await stored(db, is_test=True, gateway="sandbox")
        assert await db.find_payment(REFERENCE) == payment
        assert payment.is_test
        moved, transition = a_transition(payment, Trigger.PROCESS)
        await breaks_a_rule(db.payments.save(replace(moved, gateway="provider_a"), transition))
        await db.payments.save(moved, transition)
        assert (await db.payments.get(REFERENCE)) == moved

    async def test_a_gateway_has_open_attempts_while_any_is_to_be_asked_about(self, db: Database) -> None:
        await stored(db)
        attempt = an_attempt(next_ask_at=NOW)
        await db.attempts.add(attempt)
        await db.attempts.add(an_attempt(number=2, state=AttemptState.REFUSED, gateway="provider_b", next_ask_at=None))
        counts = [await db.attempts.count_open("gw_provider_a", most) for most in (0, 1, 5)]
        assert counts == [0, 1, 1]
        assert await db.attempts.count_open("gw_provider_b", 5) == 0
        await db.attempts.save(replace(attempt, next_ask_at=None), attempt.token)
        assert await db.attempts.count_open("gw_provider_a", 5) == 0

    async def test_a_taken_reference_is_refused_and_a_taken_key_gives_the_original(self, db: Database) -> None:
        """A key is taken in its business and environment alone, and payments without one never meet."""
        first = await stored(db, idempotency_key="order-1")
        with pytest.raises(ReferenceTaken):
            await db.add_payment(a_payment(amount=999, business_id="biz_2"))
        again = await db.add_payment(a_payment(reference=OTHER, amount=999, idempotency_key="order-1"))
        assert again == (first, False)
        assert await db.find_payment(REFERENCE) == first
        assert await db.find_payment(OTHER) is None
        await stored(db, reference=OTHER, idempotency_key="order-1", business_id="biz_2")
        live = {"reference": "PAY-20250131-LIVE00", "idempotency_key": "order-1", "environment": LIVE}
        taken_there = await stored(db, **live)
        assert await db.find_original("biz_1", SANDBOX, "order-1") == first
        assert await db.find_original("biz_1", LIVE, "order-1") == taken_there
        assert await db.find_original("biz_1", SANDBOX, "Order-1") is None
        for number in range(2):
            await stored(db, reference=f"PAY-20250131-00000{number}")

    async def test_a_payment_that_is_added_in_a_transaction_meets_what_is_taken_too(self, db: Database) -> None:
        first = a_payment(idempotency_key="order-1", metadata={"a": [1, None]})
        assert await db.payments.add(first)
        assert await db.find_payment(REFERENCE) == await db.find_original("biz_1", SANDBOX, "order-1") == first
        other = replace(first, reference=OTHER)
        async with db.begin() as tx:
            assert not await tx.payments.add(other)
            assert await tx.payments.add(replace(other, environment=LIVE))
        with pytest.raises(ReferenceTaken):
            await db.payments.add(a_payment(idempotency_key="order-2"))
        assert await db.find_original("biz_1", SANDBOX, "order-2") is None

    async def test_of_two_moves_only_the_first_is_stored_and_a_final_payment_is_never_moved_again(
        self, db: Database
    ) -> None:
        payment = await stored(db)
        moved, transition = a_transition(payment)
        await db.payments.save(moved, transition)
        with pytest.raises(Conflict):
            await db.payments.save(*a_transition(payment, Trigger.FAIL))
        # What a careless caller might write: the right sequence, and a move that the machine does not have.
        overwritten = with_changes(moved, status=Status.FAILED, sequence=2)
        forbidden = with_changes(transition, sequence=2, from_status=Status.SUCCESS, to_status=Status.FAILED)
        await breaks_a_rule(db.payments.save(overwritten, forbidden))
        assert await db.find_payment(REFERENCE) == moved
        assert await db.payments.transitions(REFERENCE) == [transition]

    @pytest.mark.parametrize(
        ("field", "value"),
        [("amount", 150001), ("business_id", "biz_2"), ("environment", LIVE), ("expires_at", NOW + 2 * HOUR)],
    )
    async def test_what_a_payment_is_never_changes(self, db: Database, field: str, value: Any) -> None:
        payment = await stored(db)
        moved, transition = a_transition(payment)
        try:
            await db.payments.save(with_changes(moved, **{field: value}), transition)
        except Exception:  # noqa: BLE001 - refusing the write and leaving the fact out of it are both right
            moved = payment
        assert await db.find_payment(REFERENCE) == moved

    async def test_a_raised_block_leaves_nothing_behind(self, db: Database) -> None:
        payment = await stored(db)
        moved, transition = a_transition(payment, Trigger.PROCESS)
        with pytest.raises(RuntimeError):  # noqa: PT012 - the block is what is tested
            async with db.begin() as tx:
                await tx.payments.save(moved, transition)
                await tx.attempts.add(an_attempt(payment))
                await tx.audit.add(an_entry())
                await tx.members.revoke(Revocation(RevokedClaim.TOKEN, "t-1", NOW))
                raise RuntimeError
        assert await db.find_payment(REFERENCE) == payment
        assert not await db.is_revoked("t-1", "ada", NOW)
        assert await db.payments.transitions(REFERENCE) == []
        assert await db.attempts.of_payment(REFERENCE) == []
        assert await db.audit.list_entries(AuditFilter(), None, 10) == []

    async def test_initiated_payments_are_found_by_the_ends_of_their_windows_oldest_first(self, db: Database) -> None:
        """All of them, and those whose window has ended."""
        young, old = await stored(db, reference=OTHER, now=NOW + MINUTE), await stored(db)
        await db.payments.save(*a_transition(await stored(db, reference="PAY-20250131-PEND00"), Trigger.PROCESS))
        expired, listed = db.upkeep.lock_expired, db.upkeep.list_initiated
        asked = ((NOW + HOUR - TICK, 10), (NOW + HOUR, 10), (NOW + 2 * HOUR, 10), (NOW + 2 * HOUR, 1))
        assert [await expired(*one) for one in asked] == [[], [old], [old, young], [old]]
        assert [await listed(NOW, "", limit) for limit in (10, 1)] == [[old, young], [old]]
        assert [await listed(one.expires_at, one.reference, 10) for one in (old, young)] == [[young], []]
        twin = await stored(db, reference="PAY-20250131-ZZZZZZ")  # of the same end as the old one
        assert await listed(old.expires_at, old.reference, 10) == [twin, young]

    async def test_only_the_holder_of_the_token_writes_an_attempt(self, db: Database) -> None:
        payment = await stored(db)
        claim = an_attempt(payment)
        taken = replace(claim, token=f"{claim.token} again", lease_until=claim.lease_until + MINUTE)
        late = an_attempt(payment, 1, AttemptState.HANDED_OFF)
        await db.attempts.add(claim)
        await db.attempts.save(taken, claim.token)
        for attempt in (late, an_attempt(payment, 2)):  # taken over, and never added
            with pytest.raises(Conflict):
                await db.attempts.save(attempt, attempt.token)
        assert await db.attempts.of_payment(REFERENCE) == [taken]

    @pytest.mark.parametrize("state", [AttemptState.CLAIMED, AttemptState.HANDED_OFF])
    async def test_at_most_one_attempt_is_claimed_and_one_handed_off(self, db: Database, state: AttemptState) -> None:
        payment = await stored(db)
        await db.attempts.add(an_attempt(payment, 1, state))
        await breaks_a_rule(db.attempts.add(an_attempt(payment, 2, state)))
        assert [attempt.number for attempt in await db.attempts.of_payment(REFERENCE)] == [1]

    async def test_due_asks_are_held_back_from_everybody_else(self, db: Database) -> None:
        payment, other = await stored(db), await stored(db, reference=OTHER)
        first = an_attempt(payment, 1, AttemptState.HANDED_OFF, next_ask_at=NOW + MINUTE)
        second = an_attempt(other, 1, AttemptState.UNKNOWN, gateway="provider_b", next_ask_at=NOW)
        await put(db, *(a_gateway(slug, GatewayStatus.DISABLED) for slug in ("provider_a", "provider_b")))
        await put(db, first, second)
        ask, at_a, at_b = db.attempts, ("provider_a", SANDBOX), ("provider_b", SANDBOX)
        now = NOW + MINUTE
        assert await ask.oldest_check(NOW - TICK) is None
        assert await ask.oldest_check(NOW + HOUR) == NOW
        assert await ask.due_checks(*at_a, NOW, 10, MINUTE) == []
        found = [await ask.due_checks(*place, now, 10, HOUR) for place in (at_a, at_b, at_a)]
        assert [[one.reference for one in due] for due in found] == [[REFERENCE], [OTHER], []]
        assert await ask.oldest_check(NOW + HOUR) == NOW  # held, and late all the same
        [again] = await ask.due_checks(*at_b, now + HOUR, 1, HOUR)
        assert again.reference == OTHER
        await ask.save(again, again.token)
        assert await ask.due_checks(*at_b, now + HOUR, 1, HOUR) == [again]  # saved, so free

    async def test_charges_open_when_a_process_began_are_checked_once_ahead_of_time(self, db: Database) -> None:
        """One each: held by a worker before; handed off; asked about since; made since; a claim; far from its ask."""
        began, place = NOW + MINUTE, ("provider_a", SANDBOX)
        claim = {"state": AttemptState.CLAIMED, "lease_until": began + HOUR}
        far = {"next_ask_at": began + FIRST_CHECK_MAX + TICK}
        attempts: list[dict[str, Any]] = [{}, {}, {"last_ask_at": began}, {"created_at": began}, claim, far]
        for number, fields in enumerate(attempts):
            payment = await stored(db, reference=f"PAY-20250131-00000{number}")
            whole = {"state": AttemptState.HANDED_OFF, "next_ask_at": began + TICK, **fields}
            await db.attempts.add(an_attempt(payment, **whole))
        # A worker that began earlier, and died.
        [held] = await db.attempts.due_checks(*place, began - TICK, 1, HOUR, began - TICK)
        assert held.reference[-1] == "0"
        assert await db.attempts.due_checks(*place, began, 10, HOUR) == []
        found = await db.attempts.due_checks(*place, began, 10, HOUR, began)
        assert [attempt.reference[-1] for attempt in found] == ["0", "1"]
        assert await db.attempts.due_checks(*place, began, 10, HOUR, began) == []
        assert len(await db.attempts.due_checks(*place, NOW + 3 * HOUR, 10, HOUR, began)) == len(attempts)

    async def test_businesses_take_turns_at_being_asked_about_and_environments_do_not_meet(self, db: Database) -> None:
        """Eight old payments of one business, a younger one of another, and one in the other environment."""
        for number in range(10):
            own = {"business_id": "biz_2"} if number == 8 else {"environment": LIVE} if number == 9 else {}
            payment = await stored(db, reference=f"PAY-20250131-00000{number}", **own)
            at = NOW + number * MINUTE
            await db.attempts.add(an_attempt(payment, 1, AttemptState.HANDED_OFF, next_ask_at=at))
        for environment, limit, numbers in ((SANDBOX, 3, "018"), (SANDBOX, 100, "234567"), (LIVE, 100, "9")):
            found = await db.attempts.due_checks("provider_a", environment, NOW + HOUR, limit, MINUTE)
            assert "".join(attempt.reference[-1] for attempt in found) == numbers

    async def test_asks_of_a_later_time_are_made_due(self, db: Database) -> None:
        for number, state in enumerate((AttemptState.HANDED_OFF, AttemptState.UNKNOWN, AttemptState.REFUSED)):
            payment = await stored(db, reference=f"PAY-20250131-00000{number}")
            at = None if state is AttemptState.REFUSED else NOW + HOUR * number
            await db.attempts.add(an_attempt(payment, 1, state, next_ask_at=at))
        for number, age in enumerate((HASTEN_PAID - HOUR, HASTEN_PAID), start=3):  # paid within the time, and before
            payment = await stored(db, reference=f"PAY-20250131-00000{number}")
            paid = an_attempt(payment, 1, AttemptState.HANDED_OFF, confirmed_at=NOW - age, next_ask_at=NOW + HOUR)
            await db.attempts.add(paid)
        live = await stored(db, reference=OTHER, environment=LIVE)
        await db.attempts.add(an_attempt(live, 1, AttemptState.UNKNOWN, next_ask_at=NOW + HOUR))
        assert await db.attempts.hasten_checks("provider_b", SANDBOX, NOW) == 0
        assert await db.attempts.hasten_checks("provider_a", SANDBOX, NOW) == 2
        assert await db.attempts.hasten_checks("provider_a", SANDBOX, NOW) == 0
        due = await db.attempts.due_checks("provider_a", SANDBOX, NOW, 10, HOUR)
        assert sorted(attempt.reference[-1] for attempt in due) == ["0", "1", "3"]
        assert await db.attempts.due_checks("provider_a", LIVE, NOW, 10, HOUR) == []

    async def test_attempts_come_back_by_number(self, db: Database) -> None:
        payment, other = await stored(db), await stored(db, reference=OTHER)
        unknown = an_attempt(payment, 1, AttemptState.UNKNOWN, scenario="declined", asks=3, next_ask_at=NOW)
        handed_off = an_attempt(payment, 2, AttemptState.HANDED_OFF, next_ask_at=NOW)
        elsewhere = an_attempt(other, 1, AttemptState.UNKNOWN, next_ask_at=NOW)
        await put(db, handed_off, unknown, elsewhere)
        assert await db.attempts.of_payment(REFERENCE) == [unknown, handed_off]

    async def test_a_provider_is_asked_once_in_a_while(self, db: Database) -> None:
        await db.attempts.add(an_attempt(await stored(db), 1, AttemptState.HANDED_OFF))
        every = timedelta(seconds=2)
        assert await db.begin_check(REFERENCE, 1, NOW, every)
        assert not await db.begin_check(REFERENCE, 1, NOW + every - TICK, every)
        assert await db.begin_check(REFERENCE, 1, NOW + every, every)
        assert await db.begin_check(REFERENCE, 1, NOW + every, timedelta(0))
        assert not await db.begin_check(REFERENCE, 2, NOW, every)

    async def test_a_payment_is_read_with_what_decides_on_it_and_what_a_change_needs(self, db: Database) -> None:
        payment, business = await stored(db), a_business()
        attempts = [an_attempt(payment, 1, AttemptState.REFUSED), an_attempt(payment, 2, AttemptState.CLAIMED)]
        first, second = an_endpoint(events=("payment.success",)), an_endpoint(id="whe_2", created_at=NOW + TICK)
        others = [
            an_endpoint(id="whe_3", is_active=False),
            an_endpoint(id="whe_4", environment=LIVE),
            an_endpoint(id="whe_5", business_id="biz_2"),
        ]
        await put(db, business, a_business("biz_2"), *attempts, second, first, *others)
        assert await db.payments.lock_aggregate(REFERENCE) == PaymentAggregate(payment, business, attempts)
        assert await db.payments.lock_aggregate(OTHER) is None
        subscribers = [Subscriber("whe_1", SANDBOX, ("payment.success",)), Subscriber("whe_2", SANDBOX, ())]
        assert await db.payments.lock_for_status(REFERENCE) == LockedPayment(payment, attempts, subscribers, [])
        assert await db.payments.lock_for_status(OTHER) is None
        for find, expected in ((db.find_checkout, (payment, business)), (db.find_with_attempts, (payment, attempts))):
            assert await find(REFERENCE) == expected
            assert await find(OTHER) is None
            assert await find("not a reference\x00") is None

    async def test_provider_calls_are_listed_in_order_and_the_last_answer_has_a_status(self, db: Database) -> None:
        about = ("PENDING", "ongoing", 9, "verify", NOW)
        first = ProviderCall(an_id("pcl", 1), REFERENCE, 1, "provider_a", "fetch_charge", *about)
        later = replace(first, id=an_id("pcl", 2), result="SUCCEEDED", word="success", at=NOW + MINUTE)
        silent = replace(later, id=an_id("pcl", 3), result="TIMEOUT", word=None, at=NOW + 2 * MINUTE)
        assert await db.provider_calls.last_answer(REFERENCE) is None
        await put(db, later, first, silent, replace(first, id=an_id("pcl", 4), reference=OTHER, at=NOW + HOUR))
        assert await db.provider_calls.of_payment(REFERENCE) == [first, later, silent]
        assert await db.provider_calls.last_answer(REFERENCE) == later

    async def test_a_cached_key_that_has_not_changed_adds_and_finds_payments(self, db: Database) -> None:
        cached = await a_holder(db)
        assert await db.find_payment(REFERENCE, cached) is None
        assert await db.find_original("biz_1", SANDBOX, "order-1", cached) is None
        payment = a_payment(idempotency_key="order-1")
        assert await db.add_payment(payment, cached) == (payment, True)
        assert await db.find_payment(REFERENCE, cached) == payment
        assert await db.find_original("biz_1", SANDBOX, "order-1", cached) == payment
        again = a_payment(reference=OTHER, idempotency_key="order-1")
        assert await db.add_payment(again, cached) == (payment, False)
        with pytest.raises(ReferenceTaken):
            await db.add_payment(a_payment(amount=999), cached)

    @pytest.mark.parametrize(
        "change",
        [
            lambda holder: KeyHolder(holder.key.revoke(NOW), holder.business),
            lambda holder: KeyHolder(holder.key, replace(holder.business, status=BusinessStatus.SUSPENDED)),
            lambda holder: KeyHolder(holder.key, replace(holder.business, status=BusinessStatus.RESTRICTED)),
            lambda holder: KeyHolder(holder.key, replace(holder.business, kyc_status=KycStatus.UNDER_REVIEW)),
        ],
        ids=["key revoked", "business suspended", "business restricted", "KYC moved"],
    )
    async def test_a_key_that_stands_otherwise_adds_and_learns_nothing(
        self, db: Database, change: Callable[[KeyHolder], KeyHolder]
    ) -> None:
        cached = await a_holder(db)
        first = await stored(db, idempotency_key="order-1")
        now = change(cached)
        if now.key != cached.key:
            await db.api_keys.save(now.key)
        if now.business != cached.business:
            await db.businesses.save(now.business)
        again, new = (a_payment(reference=OTHER, idempotency_key=key) for key in ("order-1", "order-2"))
        for ask in (
            *(db.add_payment(payment, cached) for payment in (again, new)),
            *(db.find_payment(reference, cached) for reference in (REFERENCE, OTHER)),
            *(db.find_original("biz_1", SANDBOX, key, cached) for key in ("order-1", "order-2")),
        ):
            with pytest.raises(KeyStateChanged):
                await ask
        assert await db.find_payment(REFERENCE, now) == first
        assert await db.add_payment(again, now) == (first, False)
        assert await db.add_payment(new, now) == (new, True)  # the idempotency key had stayed free

    async def test_a_cached_key_must_exist(self, db: Database) -> None:
        await stored(db)
        nobody = KeyHolder(a_key(), a_business())
        new = [a_payment(reference=OTHER, idempotency_key=key) for key in (None, "order-1")]
        for ask in (*(db.add_payment(payment, nobody) for payment in new), db.find_payment(REFERENCE, nobody)):
            with pytest.raises(KeyStateChanged):
                await ask
        assert await db.find_payment(OTHER) is None
