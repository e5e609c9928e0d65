"""Defects of who is let in, to what, how often, and where our own calls may lead; and of API keys."""

from tests.planted.defect import Defect

ACCESS = (
    Defect(
        "a merchant's token opens administrators' routes",
        "every route asks for its own realm",
        "application/access.py",
        {'if claims.get("type") != "admin" or not isinstance(role, str)': "if not isinstance(role, str)"},
        "integration/http/test_http_access.py::test_a_role_or_type_of_an_odd_kind_is_forbidden",
    ),
    Defect(
        "support administrators change things",
        "support administrators only read",
        "application/access.py",
        {"allowed = ADMIN_ROLES if changes else READING_ROLES": "allowed = READING_ROLES"},
        "unit/test_access.py::test_administrators_change_by_role_and_support_reads",
    ),
    Defect(
        "an unverified address is enough",
        "business routes want a verified user",
        "application/access.py",
        {'if claims.get("emailVerified") is not True:': 'if claims.get("emailVerified") == "never":'},
        "integration/http/test_merchant_gateways.py::test_only_a_verified_manager_of_the_business_comes_in",
    ),
    Defect(
        "every member manages",
        "owners and administrators of a business manage it",
        "domain/business.py",
        {"MANAGERS = frozenset({Role.OWNER, Role.ADMIN})": "MANAGERS = frozenset(Role)"},
        "unit/test_domain_api_key.py::test_members_and_strangers_are_told_the_same",
    ),
    Defect(
        "a revoked token is let in",
        "a revoked token is refused from the next request on",
        "application/access.py",
        {'if await self.store.is_revoked(claims.get("jti"), str(claims["sub"]), issued_at):': "if issued_at is None:"},
        "unit/test_access.py::test_a_revoked_token_lets_nobody_in_from_the_next_request_on",
    ),
    Defect(
        "another business's payment is read",
        "another's reference is unknown",
        "application/payments.py",
        {"payment.business_id != business_id or": "not business_id or"},
        "integration/http/test_http_payments.py::test_environments_and_businesses_do_not_see_each_other",
    ),
    Defect(
        "a sandbox key reads live payments",
        "a key sees its own environment",
        "application/payments.py",
        {"or payment.environment is not environment:": "or not environment:"},
        "integration/http/test_http_payments.py::test_environments_and_businesses_do_not_see_each_other",
    ),
    Defect(
        "a business that is not active changes things",
        "a restricted business only reads",
        "application/access.py",
        {"            business.ensure_active()\n": "            business.is_active\n"},
        "unit/test_access.py::test_a_manager_of_a_business_that_is_not_active_only_reads",
    ),
    Defect(
        "any client chooses its address by X-Forwarded-For",
        "X-Forwarded-For counts from trusted proxies only",
        "entrypoints/http/client_address.py",
        {
            "if proxies and address is not None:": "if address is not None:",
            "while hops and any(address in network for network in proxies):": "while hops:",
        },
        "integration/http/test_http_edges.py::test_behind_a_trusted_proxy_the_rightmost_untrusted_address_counts",
    ),
    Defect(
        "each process counts inbound events for itself",
        "100 inbound webhooks per minute and address, over all processes",
        "entrypoints/http/rate_limits.py",
        {'count_hit(f"{self.name}:{address}", now': 'count_hit(f"{self.name}:{address}:{id(self)}", now'},
        "integration/providers/test_providers_inbound.py"
        "::test_the_101st_request_of_a_minute_is_refused_on_every_server_and_route",
    ),
    Defect(
        "one public address of a host is enough",
        "every address of a host is checked, and the checked one is dialled",
        "adapters/webhooks/dialer.py",
        {"if not all(is_allowed(": "if not any(is_allowed("},
        "integration/webhooks/test_webhook_sender.py::test_one_refused_address_among_public_ones_refuses_the_host",
    ),
    Defect(
        "addresses that carry private ones inside are dialled",
        "only public addresses are called",
        "adapters/webhooks/addresses.py",
        {"return address.is_global and not any(address in network for network in REFUSED)": "return address.is_global"},
        "integration/webhooks/test_webhook_sender.py::test_an_address_that_is_not_public_is_refused",
    ),
    Defect(
        "certificates are not compared with the host",
        "TLS is verified against the name of the URL",
        "adapters/webhooks/sender.py",
        {"server_hostname=place.host if is_secure else None": 'server_hostname="localhost" if is_secure else None'},
        "integration/webhooks/test_webhook_sender.py"
        "::test_tls_is_verified_against_the_name_of_the_url_while_the_checked_address_is_dialled",
    ),
)

KEYS = (
    Defect(
        "a revoked key is accepted",
        "requests with a revoked key fail at once",
        "domain/api_key.py",
        {
            "if self.status is not ApiKeyStatus.ACTIVE:\n            raise Refusal(": (
                "if self.status is None:\n            raise Refusal("
            )
        },
        "integration/http/test_http_api_keys.py::test_a_revoked_key_answers_like_one_that_never_was",
    ),
    Defect(
        "a remembered key makes payments after its revocation",
        "a key that was revoked is refused at once, remembered or not",
        "adapters/postgres/fast_path/statements.py",
        {"AND (key_id IS NULL OR (key_status,": "AND (true OR (key_status,"},
        "integration/http/test_http_payments.py::test_a_remembered_key_is_refused_at_once_when_it_stands_otherwise",
    ),
    Defect(
        "a sixth key is made",
        "5 active API keys per environment and business",
        "application/api_keys.py",
        {">= ACTIVE_KEYS_MAX:": "> ACTIVE_KEYS_MAX:"},
        "integration/http/test_interface_limits.py::test_the_fifth_key_and_endpoint_are_made_and_the_sixth_is_not",
    ),
    Defect(
        "keys are counted without the business's lock",
        "and five it stays when fifty ask at once",
        "application/api_keys.py",
        {"business = await tx.businesses.lock(business_id)": "business = await tx.businesses.get(business_id)"},
        "integration/store/test_row_locks.py::test_of_two_keys_made_at_once_the_second_is_counted_after_the_first",
    ),
    Defect(
        "a LIVE key needs no approved KYC",
        "LIVE needs an approved KYC",
        "domain/business.py",
        {"environment is Environment.LIVE and self.kyc_status is not KycStatus.APPROVED": "environment is None"},
        "unit/test_domain_api_key.py::test_live_needs_an_approved_kyc_and_everything_an_active_business",
    ),
    Defect(
        "a live key simulates outcomes",
        "simulate takes sandbox keys alone",
        "application/access.py",
        {"if holder.key.environment is not Environment.SANDBOX:": "if holder.key.environment not in Environment:"},
        "unit/test_access.py::test_a_live_key_simulates_nothing_whatever_its_business",
    ),
    Defect(
        "one key has two lives",
        "a key is revoked once, for ever",
        "domain/api_key.py",
        {
            "moves={(ApiKeyStatus.ACTIVE, ApiKeyTrigger.REVOKE): ApiKeyStatus.REVOKED}": (
                "moves={(status, ApiKeyTrigger.REVOKE): ApiKeyStatus.REVOKED for status in ApiKeyStatus}"
            )
        },
        "unit/test_domain_api_key.py::test_a_key_is_revoked_once",
    ),
)

DEFECTS = (*ACCESS, *KEYS)
