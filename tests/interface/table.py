"""The interface row by row, each with the tests that prove it. `test_table.py` keeps it whole and true.

A test is written `i/file::test` or `u/file::test`, for integration and unit, and read as pytest names it.
"""

from dataclasses import dataclass

FOLDERS = {"i": "integration", "u": "unit"}


@dataclass(frozen=True)
class Row:
    """A route, a code, a limit or a sentence of the interface."""

    says: str
    tests: tuple[str, ...]


def row(says: str, *tests: str) -> Row:
    return Row(says, tuple(f"tests/{FOLDERS[test[0]]}/{test[2:]}" for test in tests))


MATRIX = "i/http/test_http_access.py::test_every_route_with_every_kind_of_credential"
ORDER = "i/http/test_http_access.py::test_every_route_refuses_in_the_same_order"
HOSTILE = "i/http/test_http_hostile.py::test_hostile_bodies_are_validation_errors_that_name_the_field"
ANOMALIES = "i/http/test_http_anomalies.py::test_"
ADMIN = "i/http/test_admin_gateways.py::test_"
MERCHANT = "i/http/test_merchant_gateways.py::test_"
LOGO = "i/http/test_gateway_logos.py::test_"
KEYS = "i/http/test_http_api_keys.py::test_"
HOOKS = "i/http/test_http_webhooks.py::test_"
PAY = "i/http/test_http_payments.py::test_"
PUBLIC = "i/http/test_http_public.py::test_"
TESTS = "i/http/test_http_test_payments.py::test_"
INBOUND = "i/providers/test_providers_inbound.py::test_"
EDGES = "i/http/test_http_edges.py::test_"
LIMITS = "i/http/test_interface_limits.py::test_"
CODES = "i/http/test_interface_codes.py::test_"
RACES = "i/checkout/test_process_races.py::test_"
VERIFY = "i/checkout/test_process_verify.py::test_"
SEARCH = "i/http/test_http_payment_search.py::test_"
DESCRIPTION = "i/http/test_http_openapi.py::test_"
AUDIT = "i/http/test_http_audit.py::test_"
BUSINESSES = "i/http/test_http_businesses.py::test_"
STORY = "i/http/test_http_payment_story.py::test_"
BUSINESS = "/merchant/businesses/{businessId}"

ROUTES = (
    row("GET /admin/gateways", ADMIN + "a_gateway_from_creation_to_deletion", MATRIX),
    row("POST /admin/gateways", ADMIN + "a_gateway_from_creation_to_deletion", LIMITS + "limits_of_a_gateway"),
    row("GET /admin/gateways/{gatewayId}", ADMIN + "a_gateway_from_creation_to_deletion"),
    row("PATCH /admin/gateways/{gatewayId}", ADMIN + "a_patch_tells_null_from_absent", LIMITS + "limits_of_a_gateway"),
    row("DELETE /admin/gateways/{gatewayId}", ADMIN + "a_gateway_from_creation_to_deletion"),
    row("POST /admin/gateways/{gatewayId}/enable", ADMIN + "a_gateway_from_creation_to_deletion"),
    row("POST /admin/gateways/{gatewayId}/disable", ADMIN + "a_gateway_from_creation_to_deletion"),
    row("GET /admin/gateways/{gatewayId}/merchants", ADMIN + "merchants_come_in_pages"),
    row("PATCH /admin/gateways/{gatewayId}/credentials", ADMIN + "credentials_are_taken_and_never_given_back"),
    row(
        "POST /admin/gateways/{gatewayId}/credentials/end-overlap",
        ADMIN + "an_administrator_ends_the_overlap_of_replaced_signing_secrets",
    ),
    row("POST /admin/gateways/{gatewayId}/logo", LOGO + "a_logo_is_served_as_sent_to_anyone_and_kept_for_an_hour"),
    row(
        "GET /admin/gateways/{gatewayId}/readiness",
        ADMIN + "readiness_says_what_stands_between_a_gateway_and_a_payment",
    ),
    row("GET /admin/health", "i/http/test_http_health.py::test_what_waits_is_shown_to_administrators"),
    row("GET /admin/businesses", BUSINESSES + "businesses_are_searched_and_paged_while_others_are_made"),
    row("POST /admin/businesses", BUSINESSES + "a_business_from_creation_to_approval"),
    row("GET /admin/businesses/{businessId}", BUSINESSES + "a_business_from_creation_to_approval"),
    row("PATCH /admin/businesses/{businessId}", BUSINESSES + "a_business_from_creation_to_approval"),
    row("GET /admin/businesses/{businessId}/members", BUSINESSES + "members_are_added_changed_and_removed"),
    row("POST /admin/businesses/{businessId}/members", BUSINESSES + "members_are_added_changed_and_removed"),
    row("POST /admin/businesses/{businessId}/members/remove", BUSINESSES + "members_are_added_changed_and_removed"),
    row("GET /merchant/businesses", BUSINESSES + "a_user_is_told_which_businesses_are_managed"),
    row(f"GET {BUSINESS}", BUSINESSES + "a_manager_reads_the_own_business"),
    row("GET /admin/audit", AUDIT + "an_administrator_reads_everything_and_filters_it"),
    row(f"GET {BUSINESS}/audit", AUDIT + "a_manager_reads_the_own_business_alone_and_not_where_operators_sit"),
    row("GET /public/gateways/{gatewayId}/logo", LOGO + "a_logo_is_served_as_sent_to_anyone_and_kept_for_an_hour"),
    row(f"GET {BUSINESS}/gateways", MERCHANT + "the_list_holds_active_gateways_with_the_built_in_first"),
    row(
        f"PATCH {BUSINESS}/gateways/{{gatewayId}}",
        MERCHANT + "a_change_answers_with_the_gateway_as_the_business_now_sees_it",
    ),
    row(f"POST {BUSINESS}/gateways/reorder", MERCHANT + "a_reorder_is_refused_on_order_or_done_whole"),
    row(
        f"GET {BUSINESS}/api-keys",
        KEYS + "the_twenty_most_recently_revoked_keys_are_listed_after_the_active_ones",
    ),
    row(f"POST {BUSINESS}/api-keys", KEYS + "a_generated_key_works_and_its_secret_is_shown_once"),
    row(f"DELETE {BUSINESS}/api-keys/{{keyId}}", KEYS + "a_revoked_key_answers_like_one_that_never_was"),
    row(f"GET {BUSINESS}/webhooks", HOOKS + "the_secret_is_shown_at_creation_and_never_again"),
    row(f"POST {BUSINESS}/webhooks", HOOKS + "the_secret_is_shown_at_creation_and_never_again"),
    row(f"PATCH {BUSINESS}/webhooks/{{endpointId}}", HOOKS + "a_change_touches_what_it_names"),
    row(f"DELETE {BUSINESS}/webhooks/{{endpointId}}", HOOKS + "five_endpoints_can_be_active_whatever_the_race"),
    row(
        f"POST {BUSINESS}/webhooks/{{endpointId}}/test",
        HOOKS + "a_test_delivery_is_signed_answered_and_not_counted",
        HOOKS + "a_failed_test_delivery_says_why",
    ),
    row(
        f"POST {BUSINESS}/webhooks/{{endpointId}}/rotate-secret",
        HOOKS + "after_rotation_the_old_secret_verifies_for_a_day",
    ),
    row(
        f"GET {BUSINESS}/webhooks/{{endpointId}}/deliveries",
        HOOKS + "events_reach_the_endpoints_of_their_environment_that_asked_for_them",
        LIMITS + "limits_of_pages_and_search",
    ),
    row(
        f"POST {BUSINESS}/webhooks/{{endpointId}}/deliveries/{{deliveryId}}/redeliver",
        HOOKS + "events_reach_the_endpoints_of_their_environment_that_asked_for_them",
        HOOKS + "redelivery_to_an_endpoint_that_is_off_is_refused",
    ),
    row(f"GET {BUSINESS}/events", HOOKS + "past_events_are_paged_by_cursor_exactly_as_sent"),
    row("GET /events", HOOKS + "events_are_read_with_the_secret_key_as_on_the_dashboard"),
    row(
        "GET /payments",
        SEARCH + "a_list_is_walked_by_cursor_newest_first_wherever_it_is_read",
        SEARCH + "each_bad_parameter_is_named",
    ),
    row("GET /payments/summary", SEARCH + "a_summary_adds_up_days_and_statuses"),
    row("GET /payments/export", SEARCH + "an_export_holds_every_payment_in_rows"),
    row(
        f"GET {BUSINESS}/payments",
        SEARCH + "a_list_is_walked_by_cursor_newest_first_wherever_it_is_read",
        SEARCH + "each_bad_parameter_is_named",
    ),
    row(f"GET {BUSINESS}/payments/summary", SEARCH + "a_summary_adds_up_days_and_statuses"),
    row(f"GET {BUSINESS}/payments/export", SEARCH + "an_export_holds_every_payment_in_rows"),
    row(
        "GET /admin/payments",
        SEARCH + "a_list_is_walked_by_cursor_newest_first_wherever_it_is_read",
        SEARCH + "each_bad_parameter_is_named",
    ),
    row("GET /admin/payments/{reference}/story", STORY + "the_story_of_a_payment_from_its_choice_to_its_delivery"),
    row(
        f"GET {BUSINESS}/payments/{{reference}}/story",
        STORY + "the_story_of_a_payment_from_its_choice_to_its_delivery",
        STORY + "a_story_is_its_business_and_environment_s_alone",
    ),
    row("GET /admin/payments/summary", SEARCH + "a_summary_adds_up_days_and_statuses"),
    row("GET /admin/payments/export", SEARCH + "an_export_holds_every_payment_in_rows"),
    row("GET /payments/context", PAY + "the_context_shows_what_a_key_stands_for"),
    row("POST /payments/initiate", PAY + "a_payment_from_initiate_to_success"),
    row("GET /payments/{reference}", PAY + "a_payment_from_initiate_to_success"),
    row("POST /payments/{reference}/simulate", PAY + "a_payment_from_initiate_to_success"),
    row("GET /public/payments/{reference}", PAY + "the_sandbox_page_flow_through_the_public_operations"),
    row("GET /public/payments/{reference}/gateways", PAY + "the_sandbox_page_flow_through_the_public_operations"),
    row(
        "POST /public/payments/{reference}/process",
        PAY + "the_sandbox_page_flow_through_the_public_operations",
        CODES + "process_hands_over_once_and_verify_settles",
    ),
    row(
        "GET /public/payments/{reference}/verify",
        PAY + "the_sandbox_page_flow_through_the_public_operations",
        CODES + "process_hands_over_once_and_verify_settles",
    ),
    row(f"POST {BUSINESS}/test-payment", TESTS + "a_test_payment_from_creation_to_a_reversal"),
    row(f"GET {BUSINESS}/test-payment/{{reference}}", TESTS + "a_test_payment_from_creation_to_a_reversal"),
    row(f"POST {BUSINESS}/test-payment/{{reference}}/simulate", TESTS + "a_test_payment_from_creation_to_a_reversal"),
    row("GET /admin/anomalies", ANOMALIES + "anomalies_are_listed_newest_first_and_filtered"),
    row(
        "POST /admin/anomalies/{anomalyId}/acknowledge",
        ANOMALIES + "an_anomaly_is_acknowledged_and_closed_by_administrators_alone",
    ),
    row(
        "POST /admin/anomalies/{anomalyId}/close",
        ANOMALIES + "an_anomaly_is_acknowledged_and_closed_by_administrators_alone",
    ),
    row("POST /webhooks/provider_a/sandbox", INBOUND + "a_signed_event_settles_its_payment_once"),
    row("POST /webhooks/provider_a/live", INBOUND + "a_signed_event_settles_its_payment_once"),
    row("POST /webhooks/provider_a", INBOUND + "a_signed_event_settles_its_payment_once"),
    row("POST /webhooks/provider_b/sandbox", INBOUND + "a_signed_event_settles_its_payment_once"),
    row("POST /webhooks/provider_b/live", INBOUND + "a_signed_event_settles_its_payment_once"),
    row("POST /webhooks/provider_b", INBOUND + "a_signed_event_settles_its_payment_once"),
)

ERROR_CODES = (
    row("ANOMALY_NOT_OPEN", ANOMALIES + "an_anomaly_is_acknowledged_and_closed_by_administrators_alone"),
    row("ANOMALY_ALREADY_CLOSED", ANOMALIES + "an_anomaly_is_acknowledged_and_closed_by_administrators_alone"),
    row("UNAUTHORIZED", MATRIX, EDGES + "what_is_not_one_bearer_credential_is_unauthorized"),
    row("INVALID_API_KEY", MATRIX, KEYS + "a_revoked_key_answers_like_one_that_never_was"),
    row("FORBIDDEN", MATRIX, "i/http/test_http_access.py::test_a_role_or_type_of_an_odd_kind_is_forbidden"),
    row("EMAIL_NOT_VERIFIED", MATRIX),
    row("SANDBOX_ONLY", PAY + "simulate_with_a_live_key_is_sandbox_only_before_anything_else"),
    row("BUSINESS_RESTRICTED", PAY + "refusals_of_initiate_in_order_of_precedence"),
    row("KYC_REQUIRED", KEYS + "a_live_key_stops_when_the_kyc_leaves_approved"),
    row("INVALID_REFERENCE", EDGES + "a_reference_has_exactly_one_form"),
    row("VALIDATION_ERROR", HOSTILE),
    row("INVALID_WEBHOOK_SIGNATURE", INBOUND + "every_forged_signature_is_refused_alike_and_leaves_nothing"),
    row("NO_SANDBOX_KEY", TESTS + "without_an_active_sandbox_key_there_is_no_test_payment"),
    row(
        "GATEWAY_NOT_FOUND",
        PAY + "refusals_of_initiate_in_order_of_precedence",
        CODES + "a_business_that_opted_out_cannot_prefer_the_gateway",
    ),
    row("GATEWAY_DISABLED", CODES + "a_business_that_opted_out_cannot_prefer_the_gateway"),
    row(
        "GATEWAY_NOT_AVAILABLE",
        PUBLIC + "refusals_of_process_in_order_of_precedence",
        CODES + "verify_of_a_payment_whose_provider_lost_its_credentials_is_refused",
    ),
    row(
        "GATEWAY_ENVIRONMENT_NOT_CONFIGURED",
        CODES + "process_without_credentials_names_the_environment_as_not_configured",
    ),
    row("PAYLOAD_TOO_LARGE", EDGES + "a_body_at_the_cap_passes_and_one_past_it_does_not"),
    row("NOT_FOUND", EDGES + "unknown_paths_and_wrong_methods_answer_in_the_envelope"),
    row("PAYMENT_NOT_FOUND", PUBLIC + "every_read_refuses_a_malformed_and_an_unknown_reference"),
    row("MISDIRECTED_REQUEST", "i/http/test_http_cells.py::test_only_the_home_cell_changes_gateways"),
    row("METHOD_NOT_ALLOWED", EDGES + "unknown_paths_and_wrong_methods_answer_in_the_envelope"),
    row("DUPLICATE_PAYMENT", PAY + "a_completed_payment_holds_its_key"),
    row("PAYMENT_ALREADY_FINAL", PAY + "a_payment_from_initiate_to_success"),
    row("PAYMENT_ALREADY_PROCESSED", PUBLIC + "refusals_of_process_in_order_of_precedence"),
    row("KEY_LIMIT_REACHED", LIMITS + "the_fifth_key_and_endpoint_are_made_and_the_sixth_is_not"),
    row("API_KEY_ALREADY_REVOKED", KEYS + "a_revoked_key_answers_like_one_that_never_was"),
    row("WEBHOOK_LIMIT_REACHED", LIMITS + "the_fifth_key_and_endpoint_are_made_and_the_sixth_is_not"),
    row("GATEWAY_SLUG_EXISTS", ADMIN + "the_body_of_a_creation_is_looked_at_before_its_slug_is_looked_up"),
    row("GATEWAY_BUILT_IN", ADMIN + "the_built_in_is_protected"),
    row("GATEWAY_ALREADY_ENABLED", ADMIN + "a_gateway_from_creation_to_deletion"),
    row("GATEWAY_NOT_ACTIVE", ADMIN + "a_gateway_from_creation_to_deletion"),
    row("GATEWAY_IN_USE", ADMIN + "a_gateway_from_creation_to_deletion"),
    row("LAST_OWNER", BUSINESSES + "the_last_owner_stays_whoever_is_quicker"),
    row("PAYMENT_EXPIRED", PUBLIC + "refusals_of_process_in_order_of_precedence"),
    row("RATE_LIMITED", INBOUND + "the_101st_request_of_a_minute_is_refused_on_every_server_and_route"),
    row("PAYMENT_AMOUNT_MISMATCH", CODES + "verify_that_finds_another_amount_is_a_502_and_moves_nothing"),
    row("NO_GATEWAY_AVAILABLE", PAY + "refusals_of_initiate_in_order_of_precedence"),
    row("PROVIDER_NOT_CONFIGURED", INBOUND + "without_credentials_only_provider_as_alias_says_so"),
    row("SERVICE_UNAVAILABLE", EDGES + "with_the_database_down_every_answer_is_503_with_retry_after"),
    row(
        "INTERNAL_ERROR",
        "i/http/test_http_logs.py::test_a_fault_of_ours_is_a_500_without_details_and_a_trace_without_values",
    ),
)
