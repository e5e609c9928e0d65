"""The limits of the interface, and of the decisions where it is silent, each with the tests that prove it."""

from tests.interface.table import EDGES, HOOKS, INBOUND, KEYS, LIMITS, LOGO, row

GATEWAYS = "u/test_gateways.py::test_"
GATEWAY = "u/test_domain_gateway.py::test_"
PAYMENT = "u/test_domain_payment.py::test_"
JSON = "u/test_strict_json.py::test_"
HOOK_LIMITS = "i/http/test_http_webhook_limits.py::test_"
RATES = "i/http/test_http_rate_limits.py::test_"

LIMIT_ROWS = (
    row("minimum payment amount 100 kobo", LIMITS + "limits_of_initiate_and_of_the_test_payment"),
    row("metadata 50 keys, key 100, depth 5, 16 KB", LIMITS + "limits_of_initiate_and_of_the_test_payment"),
    row(
        "customer name, phone, email, URLs and idempotency key",
        LIMITS + "limits_of_initiate_and_of_the_test_payment",
    ),
    row(
        "a reference lives one hour",
        PAYMENT + "a_new_payment_is_initiated_in_naira_and_expires_one_hour_later",
        PAYMENT + "process_is_taken_until_the_window_closes_and_is_gone_from_that_instant",
    ),
    row(
        "drain window 30 minutes",
        GATEWAY + "disabling_drains_for_thirty_minutes",
        GATEWAYS + "a_drain_ends_at_its_instant_without_a_worker",
    ),
    row(
        "5 active API keys per environment and business",
        LIMITS + "the_fifth_key_and_endpoint_are_made_and_the_sixth_is_not",
        KEYS + "fifty_creates_at_once_leave_exactly_five_keys",
    ),
    row(
        "20 most recently revoked keys are listed",
        KEYS + "the_twenty_most_recently_revoked_keys_are_listed_after_the_active_ones",
    ),
    row(
        "5 active webhook endpoints per business",
        LIMITS + "the_fifth_key_and_endpoint_are_made_and_the_sixth_is_not",
        HOOKS + "five_endpoints_can_be_active_whatever_the_race",
    ),
    row(
        "100 inbound webhooks per minute and address",
        INBOUND + "the_101st_request_of_a_minute_is_refused_on_every_server_and_route",
        "i/http/test_interface_rate.py::test_two_processes_take_exactly_one_hundred_a_minute",
    ),
    row("logo: 2 MB", LOGO + "the_size_limit_is_two_mebibytes_to_the_byte"),
    row("logo: PNG or JPEG by content", LOGO + "a_hostile_file_is_refused_on_file_and_the_logo_stays"),
    row("credentials: 1-50 properties of 4000 characters", LIMITS + "limits_of_credentials"),
    row("gateway slug 2-50, name 2-100, description 1000", LIMITS + "limits_of_a_gateway"),
    row("business display name 50", LIMITS + "limits_of_checkout_settings"),
    row("reorder 1-100 items", LIMITS + "a_reorder_takes_a_hundred_gateways_and_not_one_more"),
    row("perPage 1-100 default 20, page from 1", LIMITS + "limits_of_pages_and_search"),
    row("search 100 characters", LIMITS + "limits_of_pages_and_search"),
    row("API key name 2-100", LIMITS + "limits_of_keys_and_endpoints"),
    row("webhook description 200", LIMITS + "limits_of_keys_and_endpoints"),
    row("public logo is cached for one hour", LOGO + "a_logo_is_served_as_sent_to_anyone_and_kept_for_an_hour"),
    row(
        "bodies are capped route by route",
        EDGES + "a_body_at_the_cap_passes_and_one_past_it_does_not",
        "i/http/test_http_hostile.py::test_every_route_with_a_body_refuses_one_past_its_own_cap",
        "u/test_body_caps.py::test_every_cap_takes_the_longest_body_that_its_fields_allow",
    ),
    row("credentials body 2.5 MB", LIMITS + "limits_of_credentials"),
    row("inbound body 1 MB", INBOUND + "the_body_is_capped_at_one_megabyte_and_never_decompressed"),
    row("60 unknown references per minute and address", EDGES + "unknown_references_are_limited_per_address"),
    row("a valid reference is never refused for guesses", EDGES + "unknown_references_are_limited_per_address"),
    row(
        "limits hold over any minute",
        "u/test_domain_rate_limit.py::test_no_window_has_more_hits_than_the_limit",
        "u/test_domain_rate_limit.py::test_the_turn_of_the_minute_opens_nothing",
    ),
    row("requests per key", RATES + "a_key_has_a_bucket_of_its_own"),
    row(
        "requests per business and environment",
        RATES + "the_keys_of_a_business_and_environment_share_a_bucket",
        RATES + "a_key_that_was_revoked_takes_nothing_of_its_business",
    ),
    row("payers' requests per checkout link", RATES + "a_checkout_link_has_a_bucket_of_its_own"),
    row(
        "process and verify per address",
        RATES + "an_address_has_a_limit_that_guesses_and_full_references_do_not_use_up",
    ),
    row("refused bodies per address", RATES + "refused_bodies_of_public_routes_are_limited_per_address"),
    row("one test delivery per 5 s", HOOKS + "a_test_delivery_is_signed_answered_and_not_counted"),
    row(
        "tests of a business per minute and at once",
        HOOK_LIMITS + "a_business_may_run_so_many_tests_a_minute",
        HOOK_LIMITS + "a_business_may_run_so_many_tests_at_once",
    ),
    row(
        "20 stored webhook endpoints per environment and business",
        HOOK_LIMITS + "a_business_stores_so_many_endpoints_in_an_environment_and_removing_one_makes_room",
        HOOK_LIMITS + "creations_at_once_leave_no_more_endpoints_than_may_be_stored",
    ),
    row("nesting of 32", JSON + "nesting_counts_to_the_cap"),
)
