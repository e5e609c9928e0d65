"""Defects of the one charge, of what settles a payment, and of amounts and keys of idempotency."""

from tests.planted.defect import Defect

CHARGE = (
    Defect(
        "a payment is decided on without its lock",
        "one charge, however many call process",
        "adapters/postgres/repositories/payments.py",
        {"LOCK = Statement(_OF_PAYMENT.with_for_update(key_share=True))": "LOCK = Statement(_OF_PAYMENT)"},
        "integration/store/test_row_locks.py::test_what_one_transaction_decides_on_the_next_one_waits_for",
    ),
    Defect(
        "a payment is saved whatever became of it since it was read",
        "a status is changed from the status that was read, or not at all",
        "adapters/postgres/repositories/payments.py",
        {
            'payments.c.status == bindparam("from_status"), payments.c.sequence == bindparam("before"))': (
                'bindparam("from_status") != "", bindparam("before") >= 0)'
            )
        },
        "integration/store/test_store_failures.py::test_a_stale_payment_cannot_be_saved",
        elsewhere={
            "adapters/postgres/migrations/versions/0001_first_schema.sql": {
                "    at TIMESTAMPTZ NOT NULL,\n    PRIMARY KEY (reference, sequence)": ("    at TIMESTAMPTZ NOT NULL")
            }
        },
    ),
    Defect(
        "the provider is called before the claim is committed",
        "no transaction spans a call of a provider",
        "application/checkout.py",
        {
            "            await tx.payments.add_attempt(claim)\n": (
                "            await tx.payments.add_attempt(claim)\n"
                "            hand_off = await self.provider_calls.start(payment, claim, choice, name)\n"
                "            self.crash_point('P4')\n"
                "            handed = claim.hand_over(hand_off, now, self.entropy.chance())\n"
                "            await tx.payments.save_attempt(handed, token)\n"
                "            moved, transition = payment.hand_over(handed.gateway, now, actor='payer')\n"
                "            await self.settlement.write(tx, moved, transition)\n"
                "            return _processed(moved, handed, hand_off)\n"
            )
        },
        "integration/checkout/test_process_races.py::test_a_claimant_killed_at_any_step_leaves_at_most_one_hand_off",
    ),
    Defect(
        "a claim whose answer never came is passed over",
        "before a new charge begins, the provider is asked about the one before",
        "domain/attempt.py",
        {"return Start(gateway, last if is_unanswered else None)": "return Start(gateway, None)"},
        "unit/test_domain_next_step.py::test_the_next_step",
    ),
    Defect(
        "a timeout counts as no charge",
        "silence of a provider is unknown, never failed",
        "domain/report.py",
        {"FaultKind.BAD_CREDENTIALS, FaultKind.REJECTED, FaultKind.RATE_LIMITED)": "*FaultKind,)"},
        "integration/checkout/test_process_refusals.py"
        "::test_trap_7_a_lost_answer_is_unknown_and_the_provider_is_asked_before_a_second_try",
    ),
    Defect(
        "a live claim is overtaken",
        "while a claimant may be calling, everybody else waits",
        "domain/attempt.py",
        {"if last is not None and last.is_held(now):": "if last is None and payment.is_final:"},
        "unit/test_domain_next_step.py::test_a_claim_is_held_to_the_end_of_its_lease_and_no_longer",
    ),
    Defect(
        "a late claimant records over the one who took over",
        "a result is recorded only while the claim's token holds",
        "adapters/postgres/repositories/payments.py",
        {'.where(_ATTEMPT, attempts.c.token == bindparam("was"))': '.where(_ATTEMPT, bindparam("was") != "")'},
        "integration/checkout/test_process_races.py::test_a_late_claimant_cannot_record_over_the_one_who_took_over",
        elsewhere={
            "application/checkout.py": {
                "if stored.token != claimed.attempt.token:": (
                    "if stored.token != claimed.attempt.token and payment.is_final:"
                )
            }
        },
    ),
    Defect(
        "process is taken past the window",
        "an expired payment is gone, whether or not a sweep has run",
        "domain/payment.py",
        {"if seen.is_final or now >= self.expires_at:": "if seen.is_final and seen.failure_reason == EXPIRED_REASON:"},
        "unit/test_domain_payment.py::test_process_is_taken_until_the_window_closes_and_is_gone_from_that_instant",
    ),
    Defect(
        "a suspended business takes money",
        "a business that is not active takes no new money",
        "application/checkout.py",
        {"business.ensure_takes_money()": "business.is_active"},
        "integration/checkout/test_process_standing.py::test_process_is_refused_on_every_open_link",
    ),
    Defect(
        "the simulator serves LIVE payments",
        "a LIVE payment is never completed by the simulator",
        "domain/gateway.py",
        {"    return environment is Environment.SANDBOX": "    return environment in Environment"},
        "unit/test_domain_gateway.py::test_the_simulator_serves_sandbox_alone",
    ),
    Defect(
        "the database lets the simulator settle LIVE payments",
        "the same rule stands in the database",
        "adapters/postgres/migrations/versions/0001_first_schema.sql",
        {"NOT (environment = 'LIVE' AND gateway = 'sandbox')": "true"},
        "integration/store/test_store_schema.py::test_a_live_payment_is_never_moved_to_the_simulator",
    ),
)

SETTLING = (
    Defect(
        "the amount of a report is not compared",
        "a report of another amount moves nothing",
        "domain/report.py",
        {"if payment.amount not in self.amounts and (": "if payment.amount < 0 and ("},
        "integration/providers/test_providers_inbound.py"
        "::test_a_signed_event_that_differs_is_acknowledged_kept_and_moves_nothing",
    ),
    Defect(
        "an event of the other environment settles a payment",
        "SANDBOX and LIVE never meet",
        "domain/report.py",
        {
            "    if payment.environment is not environment:\n": "    if payment.environment not in Environment:\n",
            "self.environment is not None and self.environment is not payment.environment": "False",
        },
        "integration/providers/test_providers_inbound.py::test_an_event_never_crosses_environments_or_providers",
    ),
    Defect(
        "a failed payment can still succeed",
        "final is final: what comes later is kept and moves nothing",
        "domain/payment.py",
        {
            "(Status.INITIATED, Trigger.FAIL): Status.FAILED,": (
                "(Status.INITIATED, Trigger.FAIL): Status.FAILED, (Status.FAILED, Trigger.SUCCEED): Status.SUCCESS,"
            )
        },
        "unit/test_domain_machines.py::test_each_pair_leads_where_the_table_says_or_is_refused_with_its_code",
    ),
    Defect(
        "the database lets final payments change",
        "the same rule stands in the database",
        "adapters/postgres/schema/triggers.py",
        {
            'f"OLD.{column} IN ({states}) AND OLD.* IS DISTINCT FROM NEW.*"\n        # As JSON': (
                'f"OLD.{column} IN ({states}) AND false"\n        # As JSON'
            )
        },
        "integration/store/test_store_schema.py::test_a_final_payment_never_changes",
    ),
    Defect(
        "a pending payment is failed by our clock",
        "PENDING ends on evidence of a provider alone",
        "domain/payment.py",
        {
            "return self.status is Status.INITIATED and now >= self.expires_at": (
                "return not self.is_final and now >= self.expires_at"
            )
        },
        "unit/test_domain_payment.py::test_only_an_initiated_payment_expires_by_the_clock",
    ),
    Defect(
        "a decline ends a payment whose page takes another card",
        "an answer to asking that a card failed is no end while the window is open",
        "domain/attempt.py",
        {"return is_page and not payment.is_final and now < payment.expires_at": "return is_page and payment.is_final"},
        "integration/checkout/test_process_verify.py::test_a_declined_card_is_no_end_while_the_page_may_take_another",
    ),
    Defect(
        "a second paid charge passes for a repeat",
        "money that came twice is kept as an anomaly",
        "domain/report.py",
        {"list(paid) in ([report.provider_reference], [SIMULATED])": "bool(paid)"},
        "unit/test_settlement.py::test_a_second_paid_charge_of_one_payment_is_told_from_a_repeat",
    ),
    Defect(
        "money for an unknown reference is dropped",
        "what a provider says of money is never lost",
        "domain/report.py",
        {"AnomalyKind.UNKNOWN_REFERENCE if report.is_news else None": "None"},
        "unit/test_settlement.py::test_money_for_an_unknown_reference_is_never_lost",
    ),
    Defect(
        "an answer about another payment settles that one",
        "an answer counts for the reference that was asked about",
        "domain/report.py",
        {"if asked is not None and report.provider_reference != asked.provider_reference:": "if report.word is None:"},
        "integration/checkout/test_process_verify.py::test_an_answer_about_another_payment_moves_neither",
    ),
    Defect(
        "a status word that nobody knows is a success",
        "an unknown word leaves a payment in flight",
        "adapters/providers/provider_b/webhook.py",
        {"OUTCOMES.get(event.status, Outcome.PENDING) if": "OUTCOMES.get(event.status, Outcome.SUCCEEDED) if"},
        "unit/providers/test_traps.py::test_trap_3_and_4_an_amount_without_a_paid_status_is_no_payment",
    ),
    Defect(
        "an underpayment proves the amount",
        "what a provider calls an underpayment proves nothing",
        "adapters/providers/provider_b/webhook.py",
        {'if event.amount_validation == "UNDERPAYMENT":': 'if event.amount_validation == "NOTHING":'},
        "unit/providers/test_traps.py"
        "::test_trap_5_provider_b_accepts_the_amount_with_or_without_its_fee_and_never_less",
    ),
    Defect(
        "the reconciler gives up after three asks",
        "an open payment is asked about for 72 hours",
        "domain/attempt.py",
        {"ahead = (after for after in ASK_AFTER if": "ahead = (after for after in ASK_AFTER[:3] if"},
        "integration/checkout/test_process_reconcile.py"
        "::test_an_open_payment_is_asked_about_on_the_whole_schedule_and_then_expires_on_evidence",
    ),
)

AMOUNTS_AND_KEYS = (
    Defect(
        "an amount goes through a float",
        "amounts are exact",
        "adapters/providers/amounts.py",
        {"kobo = Decimal(text) * unit": "kobo = Decimal(float(text) * unit)"},
        "unit/providers/test_traps.py::test_trap_1_amounts_become_kobo_exactly_or_prove_nothing",
    ),
    Defect(
        "JSON of another type is converted",
        "an amount is a true integer",
        "entrypoints/http/strict_json.py",
        {"_decoders[kind] = msgspec.json.Decoder(kind)": "_decoders[kind] = msgspec.json.Decoder(kind, strict=False)"},
        "unit/test_strict_json.py::test_an_amount_is_a_true_integer_in_bounds",
    ),
    Defect(
        "of two equal keys in a body the last counts",
        "duplicate keys are refused",
        "entrypoints/http/strict_json.py",
        {"    if len(found) != len(pairs):\n        raise _TwiceError\n": ""},
        "unit/test_strict_json.py::test_a_refusal_names_the_field",
    ),
    Defect(
        "an amount of 99 kobo is taken",
        "amounts are 100 kobo and more",
        "domain/values.py",
        {"MIN_AMOUNT = 100 ": "MIN_AMOUNT = 99 "},
        "integration/http/test_interface_limits.py::test_limits_of_initiate_and_of_the_test_payment",
    ),
    Defect(
        "a reference is matched by $",
        "a reference is exactly its form, without a line break behind it",
        "domain/values.py",
        {"not REFERENCE_SHAPE.fullmatch(text)": "not re.match(REFERENCE_PATTERN, text)"},
        "unit/test_domain_values.py::test_no_near_miss_is_a_reference",
    ),
    Defect(
        "idempotency keys are not unique",
        "one key makes one payment, however many ask at once",
        "adapters/postgres/migrations/versions/0001_first_schema.sql",
        {"PRIMARY KEY (business_id, environment, key)": "CHECK (key <> '')"},
        "integration/store/test_races.py::test_one_idempotency_key_makes_one_payment",
    ),
    Defect(
        "idempotency keys of both environments are one",
        "a key belongs to its business and environment",
        "adapters/postgres/migrations/versions/0001_first_schema.sql",
        {"PRIMARY KEY (business_id, environment, key)": "PRIMARY KEY (business_id, key)"},
        "integration/store/test_races.py::test_one_key_in_two_businesses_and_environments_makes_a_payment_in_each",
    ),
    Defect(
        "the key of a completed payment answers again",
        "a completed payment holds its key: 409",
        "domain/payment.py",
        {
            "        if seen.is_final:\n            raise Refusal(ErrorCode.DUPLICATE_PAYMENT": (
                "        if seen is None:\n            raise Refusal(ErrorCode.DUPLICATE_PAYMENT"
            )
        },
        "unit/test_domain_payment.py::test_the_key_of_a_completed_payment_is_refused",
    ),
)

DEFECTS = (*CHARGE, *SETTLING, *AMOUNTS_AND_KEYS)
