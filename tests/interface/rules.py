"""The rules of the interface, and of the decisions where it is silent, each with the tests that prove it."""

from tests.interface.table import (
    ADMIN,
    AUDIT,
    BUSINESSES,
    CODES,
    DESCRIPTION,
    EDGES,
    HOOKS,
    HOSTILE,
    INBOUND,
    KEYS,
    LOGO,
    MATRIX,
    MERCHANT,
    ORDER,
    PAY,
    PUBLIC,
    RACES,
    SEARCH,
    TESTS,
    VERIFY,
    row,
)

TRAIL = "u/test_audit.py::test_"
COMMANDS = "i/process/test_cli.py::test_"
GATEWAYS = "u/test_gateways.py::test_"
SETTINGS = "u/test_checkout_settings.py::test_"
GATEWAY = "u/test_domain_gateway.py::test_"
PAYMENT = "u/test_domain_payment.py::test_"
KEY = "u/test_domain_api_key.py::test_"
WEBHOOK = "u/test_domain_webhook.py::test_"
DELIVERIES = "u/test_webhook_deliveries.py::test_"
SETTLEMENT = "u/test_settlement.py::test_"
MACHINES = "u/test_domain_machines.py::test_"
GUARDS = "u/test_domain_guards.py::test_"
BOUNDS = "u/test_domain_bounds.py::test_"
VALUES = "u/test_domain_values.py::test_"
JSON = "u/test_strict_json.py::test_"
QUEUE = "i/webhooks/test_webhook_queue.py::test_"
SCHEMA = "i/store/test_store_schema.py::test_"
REFUSALS = "i/checkout/test_process_refusals.py::test_"
SENDER = "i/webhooks/test_webhook_sender.py::test_"
SETTLING = "i/checkout/test_gateway_settling.py::test_"
STANDING = "i/checkout/test_process_standing.py::test_"
SECRETS = "i/providers/test_event_secrets.py::test_"
RECONCILE = "i/checkout/test_process_reconcile.py::test_"
READERS = "i/http/test_http_slow_readers.py::test_"

RULES = (
    # Envelopes, access, precedence
    row("every answer is an envelope", EDGES + "unknown_paths_and_wrong_methods_answer_in_the_envelope", HOSTILE),
    row("answers are what the description says", DESCRIPTION + "answers_fit_the_description"),
    row("every route asks for its own realm", MATRIX),
    row("401, 403, 400 for the path, 400 for the body, then the rest", ORDER),
    row("support administrators only read", ADMIN + "support_reads_and_changes_nothing"),
    row("token keys are chosen by kid", "u/test_jwks.py::test_each_key_reads_its_own_tokens"),
    row(
        "a revoked token is refused from the next request on",
        "u/test_access.py::test_a_revoked_token_lets_nobody_in_from_the_next_request_on",
        COMMANDS + "a_revoked_token_is_refused_by_every_process_at_once",
    ),
    row(
        "a token lives no longer than the setting says",
        "u/test_security_tokens.py::test_a_token_that_lives_too_long_is_unauthorized",
    ),
    row(
        "weak keys and settings stop the start",
        "u/test_settings.py::test_a_server_refuses_a_token_key_that_is_weak_or_not_of_its_algorithm",
        "u/test_settings.py::test_every_fault_is_a_line_of_its_own_that_names_the_setting",
    ),
    row("issuer and audience", "u/test_jwks.py::test_issuer_and_audience_are_checked_when_set"),
    row("dev uses the keys it is given", "u/test_settings.py::test_dev_uses_the_keys_it_is_given_and_makes_the_rest"),
    row("named origins alone read answers", EDGES + "named_origins_alone_may_read_answers"),
    row(
        "metrics ask for their token, and are closed without one",
        "i/http/test_metrics.py::test_a_token_guards_the_metrics_where_one_is_set",
        "i/http/test_metrics.py::test_without_a_token_dev_alone_shows_metrics",
    ),
    row("forged tokens are unauthorized", "u/test_security_tokens.py::test_a_forged_token_is_unauthorized"),
    row("business routes want a verified manager", MERCHANT + "only_a_verified_manager_of_the_business_comes_in"),
    row("public keys are never accepted", EDGES + "an_odd_key_is_invalid_and_an_odd_token_unauthorized"),
    row("the scheme may stand in any letter case", EDGES + "the_scheme_may_stand_in_any_letter_case"),
    row("a credential stands in the header alone", EDGES + "a_credential_in_the_query_is_none"),
    row("strict JSON", JSON + "what_is_not_json_is_refused", JSON + "an_amount_is_a_true_integer_in_bounds"),
    row("null for an optional field is absent", JSON + "null_means_absent_and_extras_are_ignored"),
    row("`field` names nested input", JSON + "items_of_arrays_are_named_by_their_place"),
    row("another content type is refused", EDGES + "a_json_body_under_another_content_type_is_refused"),
    row(
        "X-Forwarded-For counts from trusted proxies only",
        EDGES + "behind_a_trusted_proxy_the_rightmost_untrusted_address_counts",
    ),
    row("the Host header is never believed", EDGES + "no_origin_is_reflected_and_no_host_is_believed"),
    row(
        "dev answers under its own host names alone",
        "u/test_own_hosts.py::test_any_other_name_is_refused_in_the_envelope",
        "i/process/test_dev.py::test_another_hosts_name_is_answered_by_nothing_of_it",
    ),
    row(
        "who does not read answers is given up, who reads slowly is not",
        READERS + "who_hardly_reads_is_given_up_and_nothing_is_held_for_him",
        READERS + "ten_kilobytes_a_second_are_enough",
    ),
    row("few requests wait on a connection", READERS + "few_requests_may_wait_on_a_connection"),
    row(
        "a refusal is logged with its client's address and its id",
        "i/http/test_http_logs.py::test_a_refused_request_is_logged_with_its_clients_address_and_its_id",
        "i/http/test_http_logs.py::test_what_is_refused_before_it_is_a_request_is_logged_as_well",
    ),
    row(
        "a database that is down is 503 with Retry-After",
        EDGES + "with_the_database_down_every_answer_is_503_with_retry_after",
    ),
    # Gateways
    row("a new gateway is DISABLED", GATEWAYS + "a_new_gateway_is_disabled_and_listed"),
    row("reserved slugs", GATEWAYS + "a_slug_in_use_or_reserved_is_refused"),
    row(
        "a deleted gateway frees its slug",
        GATEWAYS + "a_deleted_gateway_is_gone_and_its_slug_is_free",
        SCHEMA + "a_slug_is_free_again_once_its_gateway_is_deleted",
    ),
    row("only the order of the built-in may change", GATEWAYS + "only_the_display_order_of_the_built_in_may_change"),
    row("the built-in is never disabled or deleted", GATEWAY + "the_built_in_is_never_disabled_or_deleted"),
    row(
        "enabling ends a drain, opt-outs stay",
        GATEWAYS + "enabling_a_draining_gateway_ends_the_drain_and_keeps_opt_outs",
    ),
    row("routing follows every switch at once", MERCHANT + "routing_follows_every_switch_at_once"),
    row("only disabled gateways are deleted", GATEWAY + "a_gateway_is_deleted_only_when_disabled"),
    row("businessCount", GATEWAYS + "business_count_is_active_businesses_minus_their_opt_outs"),
    row("merchants: active businesses, literal search", GATEWAYS + "a_search_is_literal_and_ignores_case"),
    row(
        "credentials are replaced in full, encrypted, never shown",
        "u/test_gateway_credentials.py::test_credentials_replace_the_previous_ones_in_full",
        "i/http/test_gateways.py::test_a_dump_of_the_database_shows_no_credential",
        ADMIN + "credentials_are_taken_and_never_given_back",
    ),
    row(
        "credentials are bound to their gateway",
        ADMIN + "swapped_ciphertexts_open_nowhere_and_stop_only_their_own_gateways",
    ),
    row(
        "encryption keys rotate",
        "u/test_gateway_credentials.py::test_after_a_key_rotation_old_blobs_open_and_new_ones_use_the_new_key",
    ),
    row(
        "a provider's slug may be created again once its gateway is deleted",
        GATEWAYS + "a_providers_slug_is_in_use_until_its_gateway_is_deleted_and_then_free_for_one",
        ADMIN + "a_providers_slug_is_in_use_until_its_gateway_is_deleted",
    ),
    row(
        "seeding brings no deleted gateway back",
        GATEWAYS + "seeding_brings_no_deleted_gateway_back_and_leaves_the_one_created_again_alone",
    ),
    row(
        "what was handed to a deleted gateway settles",
        SETTLING + "what_was_handed_to_a_deleted_gateway_is_still_verified",
        SETTLING + "what_was_handed_to_a_deleted_gateway_is_still_asked_about",
        SECRETS + "an_event_may_be_signed_for_the_deleted_gateway_or_for_the_one_created_again",
    ),
    row(
        "a deleted gateway takes no new charge",
        SETTLING + "a_deleted_gateway_takes_no_new_charge_and_no_list_shows_it",
    ),
    row(
        "each attempt is asked about through its own gateway",
        SETTLING + "the_deleted_gateway_and_the_one_created_again_each_ask_with_their_own_credentials",
        SETTLING + "an_attempt_of_unknown_outcome_is_taken_over_through_its_own_gateway",
    ),
    row(
        "a deleted gateway's credentials go with its last open attempt, after 72 hours at most",
        SETTLING + "secrets_go_when_the_last_open_attempt_ends",
        SETTLING + "secrets_go_after_72_hours_and_the_doctor_names_what_cannot_be_asked",
        "i/process/test_worker.py::test_the_worker_wipes_the_secrets_of_a_deleted_gateway_and_says_so",
    ),
    row(
        "a replaced signing secret proves events for 24 hours",
        SECRETS + "the_old_secret_proves_events_for_24_hours_beside_the_new_one",
        SECRETS + "a_typing_error_in_the_new_secret_and_its_correction_lose_no_event",
    ),
    row(
        "an administrator ends that at once",
        SECRETS + "ending_the_overlap_refuses_the_old_secret_at_once",
    ),
    row(
        "credentials that are not sent again are named",
        ADMIN + "names_that_are_not_sent_again_are_gone_and_a_header_says_which",
        SECRETS + "events_of_an_environment_whose_credentials_were_removed_are_heard_for_24_hours",
    ),
    row(
        "refused events are counted by why and kept for an hour",
        SECRETS + "refused_events_are_counted_by_why_and_kept_for_an_hour",
        SECRETS + "what_is_kept_of_a_refused_event_holds_neither_secret_nor_person",
        SECRETS + "a_flood_of_refused_events_fills_its_slots_and_no_more",
        SECRETS + "the_doctor_shows_refused_events_of_the_last_hour",
    ),
    row("a replaced logo is removed", "u/test_gateway_logos.py::test_a_replacement_removes_the_previous_file"),
    row("an absent logo is a 404", LOGO + "a_logo_that_is_absent_is_not_found"),
    # Checkout settings
    row(
        "never configured means enabled, built-in first",
        SETTINGS + "a_business_that_never_chose_sees_every_active_gateway_enabled_and_the_built_in_first",
    ),
    row(
        "the built-in is neither disabled nor reordered",
        SETTINGS + "the_built_in_can_be_renamed_and_made_default_but_neither_disabled_nor_reordered",
    ),
    row(
        "disabling clears the default flag",
        SETTINGS + "disabling_clears_the_default_flag_and_enabling_does_not_bring_it_back",
    ),
    row("a reorder ignores the built-in", SETTINGS + "a_reorder_moves_the_named_gateways_and_ignores_the_built_in"),
    row("a reorder names active gateways only", MERCHANT + "a_reorder_is_refused_on_order_or_done_whole"),
    row(
        "one default per business",
        MERCHANT + "sixty_four_new_defaults_at_once_leave_one",
        SCHEMA + "a_business_has_one_default_gateway_and_it_is_enabled",
    ),
    row("not active: reads and no changes", MERCHANT + "a_business_that_is_not_active_reads_and_changes_nothing"),
    row("a gateway always has a name", ADMIN + "a_patch_tells_null_from_absent"),
    # API keys
    row(
        "a secret is shown once and kept as a hash",
        KEYS + "a_generated_key_works_and_its_secret_is_shown_once",
        KEY + "the_secret_itself_is_nowhere_in_what_is_kept",
    ),
    row(
        "revocation holds at once everywhere",
        KEYS + "no_request_that_starts_after_the_revocation_succeeds_on_any_process",
    ),
    row(
        "live needs KYC, everything an active business",
        KEY + "live_needs_an_approved_kyc_and_everything_an_active_business",
    ),
    row("a restricted business can still revoke", KEYS + "a_restricted_business_can_revoke_and_nothing_else"),
    row(
        "KYC moves by its machine",
        MACHINES + "an_operator_moves_kyc_only_along_the_machine",
        BUSINESSES + "a_kyc_move_that_the_machine_lacks_is_refused_on_its_field_and_changes_nothing",
    ),
    row("a business keeps an owner", "u/test_businesses.py::test_a_business_keeps_an_owner"),
    row("support reads businesses and changes none", BUSINESSES + "support_reads_businesses_and_changes_nothing"),
    # Audit
    row(
        "every changing route leaves its entry",
        AUDIT + "every_changing_route_leaves_an_entry_that_says_who_from_where_what_and_which_request",
        AUDIT + "a_refused_request_leaves_no_entry",
    ),
    row(
        "what the clock changes is in the trail",
        TRAIL + "a_drain_that_the_sweep_ends_is_the_clocks_change",
        TRAIL + "the_end_of_secrets_is_told_whoever_brings_it",
        "i/http/test_http_audit.py::test_an_endpoint_that_its_failures_switch_off_is_the_clocks_change",
    ),
    row(
        "what a command changes is in the trail",
        COMMANDS + "what_a_command_changes_is_in_the_audit_trail_with_its_account_and_host",
    ),
    row("an entry is never changed or deleted", SCHEMA + "an_audit_entry_is_never_changed_or_deleted"),
    row(
        "no entry shows a secret",
        TRAIL + "an_endpoint_is_told_without_its_secrets",
        "u/test_domain_audit.py::test_a_sealed_blob_is_refused_even_when_named",
    ),
    row(
        "the log line names who called and which object",
        AUDIT + "the_log_line_names_who_called_and_which_object",
    ),
    # Payments
    row("every state and trigger", MACHINES + "each_pair_leads_where_the_table_says_or_is_refused_with_its_code"),
    row("final is final", SCHEMA + "a_final_payment_never_changes"),
    row("refusals of initiate in order", PAY + "refusals_of_initiate_in_order_of_precedence"),
    row("refusals of read and simulate in order", PAY + "refusals_of_read_and_simulate_in_order_of_precedence"),
    row("refusals of process in order", PUBLIC + "refusals_of_process_in_order_of_precedence"),
    row(
        "64 equal requests make one payment",
        PAY + "equal_requests_at_once_make_one_payment",
        "i/store/test_races.py::test_one_idempotency_key_makes_one_payment",
    ),
    row(
        "another body with the same key is answered and marked",
        PAY + "another_body_with_the_same_key_is_answered_and_marked",
    ),
    row(
        "a key that was revoked is refused at once, remembered or not",
        PAY + "a_remembered_key_is_refused_at_once_when_it_stands_otherwise",
    ),
    row("the Idempotency-Key header equals the field", PAY + "the_header_is_the_equal_of_the_field"),
    row("a completed payment holds its key", PAY + "a_completed_payment_holds_its_key"),
    row("keys are scoped by business and environment", PAY + "a_key_is_scoped_by_business_and_environment"),
    row("environments and businesses never meet", PAY + "environments_and_businesses_do_not_see_each_other"),
    row("another's reference is unknown", PAY + "anothers_reference_answers_exactly_like_an_unknown_one"),
    row(
        "expiry is seen at its instant",
        PAYMENT + "from_its_instant_expiry_is_seen_as_failed_and_dated_to_that_instant_however_late_the_reader",
    ),
    row(
        "the sweep makes expiry durable and tells",
        SETTLEMENT + "the_sweep_fails_what_expired_once_and_leaves_pending_payments_alone",
    ),
    row(
        "a late report is kept and moves nothing",
        SETTLEMENT + "a_different_final_report_is_kept_once_and_moves_nothing",
    ),
    row(
        "an impossible object is refused where it is made",
        GUARDS + "a_payment_that_cannot_be_is_refused_by_field",
        GUARDS + "a_hostile_value_is_taken_or_refused_with_a_field_and_never_an_accident",
    ),
    row(
        "a stricter rule stops no old payment", GUARDS + "a_stored_payment_is_read_and_settled_whatever_rule_came_later"
    ),
    row(
        "one set of bounds for callers, tables and the domain",
        BOUNDS + "what_a_caller_sends_is_bounded_as_the_domain_bounds_it",
        BOUNDS + "the_tables_check_money_as_the_domain_does",
    ),
    row(
        "a URL is what browsers take",
        VALUES + "unusual_but_honest_urls_are_accepted",
        VALUES + "a_hostile_url_is_refused_by_name",
    ),
    row(
        "international hosts are looked up as browsers do",
        VALUES + "a_url_is_normalised_on_use_as_browsers_do",
        SENDER + "an_international_address_is_called_as_browsers_call_it",
    ),
    row("e-mail addresses may be international", VALUES + "international_addresses_are_accepted_as_they_are"),
    row("a reference outlives its prefix", EDGES + "a_reference_made_under_another_prefix_keeps_working"),
    row(
        "any text in a reference's place is INVALID_REFERENCE",
        EDGES + "odd_path_parameters_are_refused_in_the_envelope",
    ),
    row("test payments are sandbox payments", TESTS + "fields_that_a_caller_may_not_choose_are_ignored"),
    row(
        "a test payment is served by the simulator alone",
        TESTS + "a_test_payment_is_served_by_the_simulator_alone",
        SCHEMA + "a_test_payment_is_never_moved_to_a_provider",
    ),
    row(
        "a business that is not active takes no more money",
        STANDING + "process_is_refused_on_every_open_link",
        STANDING + "the_options_stay_listed_and_none_can_be_chosen",
    ),
    row("and what is pending settles", STANDING + "what_is_pending_settles"),
    # Lists, summaries, exports
    row(
        "no cursor passes a payment by",
        "i/store/test_payment_search.py::test_while_an_earlier_payment_may_still_commit_no_later_one_is_listed",
        "i/store/test_payment_search.py::test_a_payment_that_waited_to_be_stored_is_dated_when_it_is",
    ),
    row(
        "lists and summaries stay in their business and environment",
        SEARCH + "businesses_and_environments_do_not_see_each_other",
    ),
    row("expiry counts in lists and summaries", SEARCH + "each_filter_chooses_wherever_it_is_read"),
    row("a summary is of 31 days at most", SEARCH + "a_summary_is_of_31_days_at_most"),
    row("no cell of an export is a formula", SEARCH + "no_cell_of_an_export_is_a_formula"),
    row("an export that breaks is no whole file", SEARCH + "an_export_that_breaks_is_no_whole_file"),
    row("only an administrator sees whose a payment is", SEARCH + "an_administrator_sees_whose_each_payment_is"),
    row("the delivery log has cursors too", HOOKS + "the_log_is_walked_by_cursor_as_by_number"),
    # Hosted checkout
    row("a payer changes nothing of the payment", PUBLIC + "a_payer_cannot_change_what_the_merchant_fixed"),
    row("card numbers are never kept or echoed", PUBLIC + "no_card_number_is_repeated_or_kept"),
    row("each test card has its result", "i/browser/test_browser_checkout.py::test_each_test_card_leads_to_its_result"),
    row(
        "a repeat returns the hand-off, no second charge",
        CODES + "process_hands_over_once_and_verify_settles",
        RACES + "64_callers_on_two_servers_share_one_charge_and_one_hand_off",
    ),
    row("provider_b gets launch parameters", CODES + "launch_parameters_of_provider_b_are_encoded_in_the_checkout_url"),
    row(
        "an unavailable provider stays listed with its reason",
        CODES + "process_without_credentials_names_the_environment_as_not_configured",
        REFUSALS + "after_five_faults_every_server_shows_the_provider_unhealthy_and_leaves_it_alone",
    ),
    row("the simulator never serves LIVE", GATEWAY + "the_simulator_serves_sandbox_alone"),
    row(
        "LIVE lists no simulator",
        "i/browser/test_browser_checkout.py::test_a_sandbox_payment_says_so_and_a_live_one_lists_no_simulator",
    ),
    row("verify asks once for all", VERIFY + "64_verifies_at_once_share_one_provider_call_and_one_event"),
    row("verify: a provider out of reach changes nothing", VERIFY + "an_unreachable_provider_leaves_the_stored_status"),
    row("verify: a difference moves nothing", VERIFY + "a_difference_is_a_502_that_moves_nothing_and_is_kept"),
    row(
        "verify: a difference stands until another answer takes it back",
        VERIFY + "a_difference_that_was_taken_back_is_no_502",
        VERIFY + "an_unanswered_look_up_takes_nothing_back",
    ),
    row("the way home is normalised on use", VERIFY + "the_way_home_is_normalised_and_shown_as_given"),
    row(
        "an open payment is asked about on schedule",
        RECONCILE + "an_open_payment_is_asked_about_on_the_whole_schedule_and_then_expires_on_evidence",
    ),
    # Inbound events
    row("forged signatures leave nothing", INBOUND + "every_forged_signature_is_refused_alike_and_leaves_nothing"),
    row("events never cross environments", INBOUND + "an_event_never_crosses_environments_or_providers"),
    row("duplicates are idempotent", INBOUND + "100_equal_events_at_once_are_one_transition_and_one_event"),
    row("malformed payloads", INBOUND + "a_signed_malformed_body_is_kept_and_only_provider_a_refuses_it"),
    row("failed handling is acknowledged", INBOUND + "an_event_whose_handling_fails_is_acknowledged_and_handled_later"),
    row(
        "a differing event moves nothing",
        INBOUND + "a_signed_event_that_differs_is_acknowledged_kept_and_moves_nothing",
    ),
    row(
        "of an event nothing is kept of payer, card or authorisation",
        "i/store/test_personal_data.py::test_no_authorisation_code_is_ever_stored",
    ),
    row("a disabled gateway still hears", INBOUND + "a_disabled_gateway_still_hears_about_its_own_payments"),
    # Personal data
    row(
        "inbox bodies end after 30 days",
        "u/test_retention.py::test_the_inbox_keeps_bodies_for_thirty_days_after_they_were_handled",
    ),
    row(
        "an idempotency key is known long after its payment ended",
        "u/test_retention.py::test_a_key_is_known_for_two_years_after_its_payment_ended_and_always_while_it_is_open",
    ),
    row(
        "history leaves the database only once it reads back",
        "u/test_archive.py::test_a_damaged_file_is_found_before_anything_is_removed",
        "u/test_archive.py::test_a_crash_at_any_step_loses_and_doubles_nothing",
        "i/store/test_archive.py::test_a_killed_archive_goes_on_and_nothing_is_lost_or_doubled",
        "i/store/test_archive.py::test_an_archived_payment_reads_as_before",
    ),
    row(
        "a late report about an archived payment is judged as before",
        "u/test_archive.py::test_a_late_report_about_an_archived_payment_is_judged_as_before",
        "u/test_archive.py::test_a_second_charge_of_an_archived_payment_is_told",
    ),
    row(
        "payer fields end after a stated time",
        "u/test_retention.py::test_payments_that_ended_long_ago_lose_their_payer_and_nothing_else",
        "i/store/test_personal_data.py::test_after_its_time_a_dump_says_nothing_of_the_payer",
        SCHEMA + "of_a_final_payment_the_payer_may_be_cleared_and_nothing_else",
    ),
    row(
        "one payer is erased",
        "u/test_retention.py::test_one_payer_is_erased_from_all_that_can_no_longer_be_paid",
        "i/store/test_personal_data.py::test_a_payer_who_asks_is_forgotten_and_others_are_not",
    ),
    # Merchant webhooks
    row(
        "events reach the endpoints of their environment that asked",
        HOOKS + "events_reach_the_endpoints_of_their_environment_that_asked_for_them",
        WEBHOOK + "an_endpoint_receives_only_what_it_subscribed_to",
    ),
    row("HTTPS for LIVE endpoints", WEBHOOK + "only_live_endpoints_must_be_https"),
    row("unknown event names are refused", HOOKS + "a_bad_endpoint_is_refused_naming_the_field"),
    row(
        "every change of status is one event",
        HOOKS + "every_change_of_a_payment_is_one_event_in_a_sequence_without_gaps",
    ),
    row(
        "Standard Webhooks libraries verify us",
        "u/test_webhook_signatures.py::test_python_verifies_with_the_current_and_the_previous_secret",
        "u/test_webhook_signatures.py::test_other_languages_verify_ours_and_refuse_the_rest",
    ),
    row(
        "X-Service-Signature is the standard one",
        "u/test_webhook_signatures.py::test_the_service_signature_is_the_standard_one",
    ),
    row("the old secret signs for a day", HOOKS + "after_rotation_the_old_secret_verifies_for_a_day"),
    row("not active: webhooks are read only", HOOKS + "a_business_that_is_not_active_reads_and_changes_nothing"),
    row("the schedule of tries", DELIVERIES + "a_dead_endpoint_is_tried_by_the_whole_schedule_under_one_id"),
    row(
        "Retry-After is heeded within bounds",
        DELIVERIES + "retry_after_is_heeded_between_once_and_twice_the_planned_delay",
    ),
    row(
        "nothing is given up before the schedule's last instant, however many workers die",
        DELIVERIES + "what_kills_every_worker_is_slowed_down_and_given_up_after_the_schedules_last_instant",
        DELIVERIES + "a_delivery_is_sent_by_the_first_worker_that_lives_however_many_died_before",
        "i/webhooks/test_webhook_crash.py::test_workers_that_die_again_and_again_end_no_delivery_of_a_merchant_who_is_up",
    ),
    row(
        "410 switches an endpoint off",
        DELIVERIES + "gone_ends_the_delivery_and_switches_the_endpoint_off_until_it_is_activated",
    ),
    row(
        "120 hours of failures switch it off",
        QUEUE + "a_hundred_and_twenty_hours_of_nothing_but_failures_switch_an_endpoint_off",
    ),
    row(
        "five in flight per endpoint at first",
        QUEUE + "at_most_five_of_a_lane_are_in_flight_and_a_finished_one_makes_room",
    ),
    row(
        "private addresses are never dialled",
        SENDER + "an_address_that_is_not_public_is_refused",
    ),
    row(
        "redirects are not followed",
        SENDER + "a_redirect_is_a_failure_and_is_not_followed",
    ),
    row(
        "a payment's own webhookUrl",
        DELIVERIES + "the_address_of_one_payment_hears_the_same_event_signed_by_the_endpoints_secret",
    ),
    row("a webhookUrl without an endpoint is told", PAY + "a_webhook_url_that_nothing_can_be_sent_to_is_told"),
    row(
        "without a secret it is silent", DELIVERIES + "the_address_of_one_payment_is_silent_where_no_endpoint_can_sign"
    ),
    # The description
    row("the description is valid OpenAPI 3.1", DESCRIPTION + "the_document_is_valid_openapi"),
    row("its links lead somewhere", DESCRIPTION + "links_lead_to_operations_that_take_what_they_carry"),
    row("its site needs no outside host", DESCRIPTION + "the_site_is_served_without_outside_hosts"),
    row(
        "a decline found by asking is no end while the page may take another card",
        "u/test_domain_report.py::test_a_decline_found_by_asking_is_no_end_while_the_page_may_take_another_card",
        VERIFY + "a_declined_card_is_no_end_while_the_page_may_take_another",
        "i/browser/test_browser_providers.py::test_a_refused_card_is_told_in_plain_words_and_another_one_pays",
    ),
    row(
        "an attempt is asked about to the end of the schedule, whatever ended its payment",
        RECONCILE + "a_late_success_is_found_without_its_event_to_the_end_of_the_schedule",
    ),
    row(
        "news that moves nothing is told to the merchant once",
        SETTLEMENT + "the_merchant_is_told_once_of_news_that_moves_nothing",
        SETTLEMENT + "notices_are_numbered_on_and_go_to_their_subscribers_alone",
    ),
    row(
        "an anomaly is closed with a reason and never comes back",
        "u/test_anomalies.py::test_nothing_is_closed_without_saying_what_was_done",
        "u/test_anomalies.py::test_an_anomaly_is_acknowledged_by_one_and_closed_with_a_reason",
    ),
    row(
        "a dispute leaves a trace",
        "u/providers/test_traps.py::test_trap_16_a_dispute_is_one_fact_from_its_start_through_its_reminders",
    ),
)
