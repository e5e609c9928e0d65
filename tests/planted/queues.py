"""Defects of the inbox of providers' events, the outbox of merchants' webhooks, and the reconciler's asks."""

from tests.planted.defect import Defect

INBOX = (
    Defect(
        "an event is acknowledged before it is kept",
        "returning from receive means that the event is durable",
        "application/provider_events.py",
        {
            "        event = await self._keep(route, hashlib.sha256(body).digest(), kept)\n": (
                "        import asyncio\n\n"
                "        kept_later = asyncio.gather(\n"
                "            self._keep(route, hashlib.sha256(body).digest(), kept), return_exceptions=True\n"
                "        )\n"
                "        event = (await kept_later)[0]\n"
                "        event = event if isinstance(event, ProviderEvent) else None\n"
            )
        },
        "integration/providers/test_providers_inbound.py::test_an_event_that_could_not_be_kept_is_not_acknowledged",
    ),
    Defect(
        "one event is kept as often as it comes",
        "the inbox keeps an event once",
        "adapters/postgres/migrations/versions/0001_first_schema.sql",
        {"CONSTRAINT inbox_once UNIQUE (provider, environment, digest)": "CONSTRAINT inbox_once CHECK (id <> '')"},
        "integration/store/test_store_schema.py::test_an_inbound_event_is_kept_once",
    ),
    Defect(
        "an event whose handling failed is not tried again",
        "what could not be handled stays due until it was",
        "application/provider_events.py",
        {"            next_attempt_at=now + FIRST_RETRY,\n": "            next_attempt_at=None,\n"},
        "integration/providers/test_providers_inbound.py"
        "::test_an_event_whose_handling_fails_is_acknowledged_and_handled_later",
    ),
)

OUTBOX = (
    Defect(
        "an event is written after the commit",
        "a status, its event and its deliveries are one transaction",
        "application/settlement.py",
        {
            "        await self._emit(tx, payment, EVENT_FOR[payment.status], transition.sequence, "
            "subscribers=subscribers)\n": (
                "        import asyncio\n\n"
                "        async def told() -> None:\n"
                "            async with self.store.begin() as own:\n"
                "                await self._emit(own, payment, EVENT_FOR[payment.status], transition.sequence)\n\n"
                "        asyncio.get_running_loop().call_later(0.01, lambda: asyncio.ensure_future(told()))\n"
            )
        },
        "integration/checkout/test_process_crashes.py::test_an_event_survives_its_receiver",
    ),
    Defect(
        "a late worker records over the one that came after it",
        "the result of a try is recorded only while its lease's token holds",
        "adapters/postgres/delivery_queue/statements.py",
        {
            "FROM endpoints) >= 0 AND d.reference = r.reference AND d.id = r.id AND d.token = r.token": (
                "FROM endpoints) >= 0 AND d.reference = r.reference AND d.id = r.id"
            )
        },
        "integration/webhooks/test_webhook_queue.py"
        "::test_a_lease_that_ran_out_is_claimed_again_and_the_late_worker_records_nothing",
    ),
    Defect(
        "a lane is in flight as often as it is claimed",
        "at most so many tries of an endpoint at once",
        "adapters/postgres/delivery_queue/statements.py",
        {"WHEN s.is_on THEN s.most - w.in_flight": "WHEN s.is_on THEN s.most"},
        "integration/webhooks/test_webhook_queue.py"
        "::test_at_most_five_of_a_lane_are_in_flight_and_a_finished_one_makes_room",
    ),
    Defect(
        "a try that was cut short by a stop is counted",
        "a stop uses up no part of the schedule",
        "adapters/postgres/delivery_queue/statements.py",
        {
            "SET attempts = d.attempts - CASE WHEN d.lost_tries = 0 THEN 1 ELSE 0 END, lease_until": (
                "SET attempts = d.attempts, lease_until"
            )
        },
        "integration/webhooks/test_webhook_queue.py::test_a_released_try_is_not_counted",
    ),
    Defect(
        "a dead worker's delivery stays leased for ever",
        "a lease runs out, and another worker sends",
        "adapters/postgres/delivery_queue/statements.py",
        {"coalesce(d.lease_until > :now, false) AS is_leased": "d.lease_until IS NOT NULL AS is_leased"},
        "integration/webhooks/test_webhook_queue.py"
        "::test_a_lease_that_ran_out_is_claimed_again_and_the_late_worker_records_nothing",
    ),
    Defect(
        "each try has an event id of its own",
        "one event is sent under one id",
        "application/dispatcher.py",
        {"signed_headers(keys, one.delivery.event_id,": 'signed_headers(keys, self.entropy.id("evt", now),'},
        "unit/test_webhook_deliveries.py::test_a_dead_endpoint_is_tried_by_the_whole_schedule_under_one_id",
    ),
    Defect(
        "a delivery is given up after one try",
        "a failed try is repeated by the schedule",
        "application/dispatcher.py",
        {"retry_at=at + delay if delay is not None else None)": "retry_at=None)"},
        "unit/test_webhook_deliveries.py::test_a_dead_endpoint_is_tried_by_the_whole_schedule_under_one_id",
    ),
    Defect(
        "a receiver stops us for as long as it likes",
        "Retry-After counts between one and two times the planned delay",
        "domain/webhook.py",
        {"return min(max(retry_after, planned), planned * 2)": "return max(retry_after, planned)"},
        "unit/test_domain_webhook.py::test_retry_after_counts_between_one_and_two_times_the_planned_delay",
    ),
    Defect(
        "410 does not switch an endpoint off",
        "410 ends the deliveries of an endpoint",
        "application/dispatcher.py",
        {"retry_at=None, deactivate=True)": "retry_at=None)"},
        "unit/test_webhook_deliveries.py"
        "::test_gone_ends_the_delivery_and_switches_the_endpoint_off_until_it_is_activated",
    ),
    Defect(
        "an endpoint hears events it did not ask for",
        "events reach the endpoints that asked for them",
        "domain/webhook.py",
        {"(not self.events or event_type.value in self.events)": "event_type is not None"},
        "unit/test_domain_webhook.py::test_an_endpoint_receives_only_what_it_subscribed_to",
    ),
    Defect(
        "an endpoint hears the other environment",
        "only events of its environment are delivered",
        "domain/webhook.py",
        {"self.is_active and self.environment is environment and": "self.is_active and"},
        "unit/test_domain_webhook.py::test_an_endpoint_without_a_list_receives_every_event_of_its_environment",
    ),
)

ASKS = (
    Defect(
        "two workers ask about the same payment",
        "one ask at a time, whoever makes it",
        "adapters/postgres/repositories/payments.py",
        {
            'DUE_ASKS = _asks(":now", "(a.held_until IS NULL OR a.held_until <= :now)")': (
                'DUE_ASKS = _asks(":now", "(a.held_until IS NULL OR a.held_until >= a.held_until)")'
            )
        },
        "integration/checkout/test_process_reconcile.py::test_two_workers_ask_once_about_each_payment",
    ),
    Defect(
        "no answer counts as unpaid",
        "without evidence a payment stays pending, and is named",
        "domain/report.py",
        {"if report is not None and report.proves_unpaid(payment, attempt):": "if payment.status is Status.PENDING:"},
        "integration/checkout/test_process_reconcile.py"
        "::test_without_evidence_a_payment_stays_pending_and_is_named_once",
    ),
    Defect(
        "every verify is a call of the provider",
        "verify asks once for all, at most every two seconds",
        "application/verification.py",
        {
            "        if task is None:\n": "        if task is None or task:\n",
            "attempt.number, now, VERIFY_EVERY\n": "attempt.number, now, VERIFY_EVERY * 0\n",
        },
        "integration/checkout/test_process_verify.py::test_64_verifies_at_once_share_one_provider_call_and_one_event",
    ),
)

DEFECTS = (*INBOX, *OUTBOX, *ASKS)
