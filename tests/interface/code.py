"""Where the product keeps each limit and rule: `path::name` below src/payagg, for docs/rules.md.

A row without an entry is kept by several parts together. `test_document.py` proves that every place exists.
"""

from typing import Final

ACCESS = "application/access.py::"
API_KEY = "domain/api_key.py::"
ATTEMPT = "domain/attempt.py::"
BUSINESS = "domain/business.py::"
DISPATCHER = "application/dispatcher.py::"
EVENTS = "application/provider_events.py::"
GATEWAY = "domain/gateway.py::"
GATEWAYS = "application/gateways.py::"
JSON = "entrypoints/http/strict_json.py::"
OPTIONS = "application/payment_options.py::"
PAYMENT = "domain/payment.py::"
REPORT = "domain/report.py::"
SCHEMA = "adapters/postgres/schema/tables.py::"
SETTINGS = "application/checkout_settings.py::"
VIEWS = "application/schemas/"
WEBHOOK = "domain/webhook.py::"

CODE: Final[dict[str, str]] = {
    # Limits
    "minimum payment amount 100 kobo": "domain/values.py::MIN_AMOUNT",
    "metadata 50 keys, key 100, depth 5, 16 KB": PAYMENT + "parse_metadata",
    "customer name, phone, email, URLs and idempotency key": VIEWS + "payments.py::InitiatePayment",
    "a reference lives one hour": PAYMENT + "CHECKOUT_TTL",
    "drain window 30 minutes": GATEWAY + "DRAIN_WINDOW",
    "5 active API keys per environment and business": API_KEY + "ACTIVE_KEYS_MAX",
    "20 most recently revoked keys are listed": API_KEY + "REVOKED_KEYS_LISTED",
    "5 active webhook endpoints per business": WEBHOOK + "ACTIVE_ENDPOINTS_MAX",
    "100 inbound webhooks per minute and address": "entrypoints/http/rate_limits.py::SharedLimit",
    "logo: 2 MB": GATEWAY + "LOGO_MAX_BYTES",
    "logo: PNG or JPEG by content": "adapters/images.py::PillowImages",
    "credentials: 1-50 properties of 4000 characters": VIEWS + "gateways.py::UpdateCredentials",
    "gateway slug 2-50, name 2-100, description 1000": VIEWS + "gateways.py::CreateGateway",
    "business display name 50": VIEWS + "gateways.py::UpdateBusinessGateway",
    "reorder 1-100 items": "domain/gateway.py::REORDER_MAX",
    "perPage 1-100 default 20, page from 1": "entrypoints/http/wire.py::page_query",
    "search 100 characters": VIEWS + "gateways.py::SEARCH_MAX",
    "API key name 2-100": "application/schemas/api_keys.py::GenerateApiKey",
    "webhook description 200": WEBHOOK + "DESCRIPTION_MAX",
    "public logo is cached for one hour": "entrypoints/http/routes/gateways.py::routes",
    "bodies are capped route by route": "entrypoints/http/routing.py::Operation",
    "credentials body 2.5 MB": "entrypoints/http/middleware.py::Body",
    "inbound body 1 MB": "entrypoints/http/middleware.py::Body",
    "60 unknown references per minute and address": "entrypoints/http/rate_limits.py::SharedLimit",
    "one test delivery per 5 s": WEBHOOK + "TEST_EVERY",
    "nesting of 32": JSON + "DEPTH_MAX",
    # Envelopes, access, precedence
    "every answer is an envelope": "entrypoints/http/errors.py::EXCEPTION_HANDLERS",
    "answers are what the description says": "entrypoints/http/openapi/document.py::document",
    "every route asks for its own realm": "entrypoints/http/routing.py::Guard",
    "support administrators only read": ACCESS + "Access.administrator",
    "forged tokens are unauthorized": "adapters/security.py::Tokens.read",
    "business routes want a verified manager": ACCESS + "Access.manager",
    "public keys are never accepted": API_KEY + "parse_secret",
    "a credential stands in the header alone": "entrypoints/http/auth.py::bearer",
    "strict JSON": JSON + "decode",
    "null for an optional field is absent": JSON + "decode",
    "`field` names nested input": JSON + "_named",
    "another content type is refused": "entrypoints/http/wire.py::decoded",
    "a valid reference is never refused for guesses": "entrypoints/http/auth.py::_public_reference",
    "limits hold over any minute": "domain/rate_limit.py::RateLimit",
    "requests per key": "entrypoints/http/rate_limits.py::LocalLimit",
    "process and verify per reference": "entrypoints/http/rate_limits.py::LocalLimit",
    "refused bodies per address": "entrypoints/http/auth.py::_refused_body",
    "process and verify per address": "entrypoints/http/rate_limits.py::LocalLimit",
    "token keys are chosen by kid": "adapters/jwks.py::KeySet",
    "issuer and audience": "adapters/security.py::Tokens",
    "dev uses the keys it is given": "entrypoints/dev/secrets.py::with_dev_secrets",
    "named origins alone read answers": "entrypoints/http/cors.py::Origins",
    "metrics ask for their token, and are closed without one": "entrypoints/http/metrics.py::metrics",
    "of an event nothing is kept of payer, card or authorisation": "adapters/providers/reduction.py::reduced",
    "inbox bodies end after 30 days": "application/retention.py::Retention.empty_inbox",
    "payer fields end after a stated time": "application/retention.py::Retention.clear_payers",
    "one payer is erased": "application/retention.py::Retention.erase",
    "a webhookUrl without an endpoint is told": "application/payments.py::Payments.initiate",
    "X-Forwarded-For counts from trusted proxies only": "entrypoints/http/rate_limits.py::client_address",
    "the Host header is never believed": "entrypoints/settings.py::Settings.base_url",
    "dev answers under its own host names alone": "entrypoints/http/own_hosts.py::OwnHosts",
    "who does not read answers is given up, who reads slowly is not": (
        "entrypoints/http/answer_transport.py::AnswerTransport.is_too_slow"
    ),
    "few requests wait on a connection": "entrypoints/http/uvicorn_protocol.py::PIPELINED_MAX",
    "a refusal is logged with its client's address and its id": "entrypoints/http/middleware.py::Edge",
    "a database that is down is 503 with Retry-After": "entrypoints/http/errors.py::unavailable",
    "401, 403, 400 for the path, 400 for the body, then the rest": "entrypoints/http/routing.py::route",
    "the scheme may stand in any letter case": "entrypoints/http/auth.py::bearer",
    # Gateways
    "a new gateway is DISABLED": GATEWAY + "GATEWAY",
    "reserved slugs": GATEWAYS + "Gateways.create",
    "a deleted gateway frees its slug": SCHEMA + "gateways",
    "only the order of the built-in may change": GATEWAYS + "Gateways.update",
    "the built-in is never disabled or deleted": GATEWAY + "Gateway.disable",
    "enabling ends a drain, opt-outs stay": GATEWAY + "Gateway.enable",
    "routing follows every switch at once": GATEWAY + "is_offered",
    "only disabled gateways are deleted": GATEWAY + "GATEWAY",
    "credentials are replaced in full, encrypted, never shown": GATEWAYS + "Gateways.set_credentials",
    "credentials are bound to their gateway": "adapters/security.py::AesVault",
    "encryption keys rotate": "adapters/security.py::AesVault",
    "a replaced logo is removed": GATEWAYS + "Gateways.upload_logo",
    "an absent logo is a 404": GATEWAYS + "Gateways.logo",
    # Checkout settings
    "never configured means enabled, built-in first": GATEWAY + "checkout_order",
    "the built-in is neither disabled nor reordered": GATEWAY + "BusinessGateway.changed",
    "disabling clears the default flag": GATEWAY + "BusinessGateway.changed",
    "a reorder ignores the built-in": SETTINGS + "CheckoutSettings.reorder",
    "a reorder names active gateways only": SETTINGS + "CheckoutSettings.reorder",
    "one default per business": SCHEMA + "business_gateways",
    "not active: reads and no changes": BUSINESS + "Business.ensure_active",
    # API keys
    "a secret is shown once and kept as a hash": API_KEY + "hash_secret",
    "revocation holds at once everywhere": "adapters/postgres/fast_path/statements.py::ADD",
    "a key that was revoked is refused at once, remembered or not": ACCESS + "Access.with_key",
    "live needs KYC, everything an active business": BUSINESS + "Business.ensure_may_use",
    "a restricted business can still revoke": "application/api_keys.py::ApiKeys.revoke",
    "KYC moves by its machine": BUSINESS + "KYC",
    # Payments
    "every state and trigger": "domain/machine.py::Machine",
    "final is final": "adapters/postgres/schema/triggers.py::final_trigger",
    "refusals of initiate in order": "application/payments.py::Payments.initiate",
    "refusals of process in order": PAYMENT + "Payment.ensure_processable",
    "64 equal requests make one payment": "adapters/postgres/fast_path/statements.py::ADD",
    "another body with the same key is answered and marked": "application/payments.py::Initiation",
    "the Idempotency-Key header equals the field": "entrypoints/http/routing.py::_keyed",
    "a completed payment holds its key": PAYMENT + "Payment.replay",
    "no cursor passes a payment by": "adapters/postgres/repositories/payment_search.py::PostgresPaymentSearch.page",
    "lists and summaries stay in their business and environment": "application/payment_search.py::PaymentQuery.filter",
    "expiry counts in lists and summaries": "domain/payment_search.py::PaymentFilter.matches",
    "a summary is of 31 days at most": "domain/payment_search.py::SUMMARY_MAX",
    "no cell of an export is a formula": "application/payment_export.py::_cell",
    "an export that breaks is no whole file": "application/payment_search.py::PaymentSearch.export",
    "only an administrator sees whose a payment is": "application/schemas/payment_search.py::AdminPayment",
    "the delivery log has cursors too": "application/webhooks.py::Webhooks.deliveries",
    "keys are scoped by business and environment": SCHEMA + "idempotency_keys",
    "environments and businesses never meet": "application/payments.py::_owned",
    "another's reference is unknown": "application/payments.py::_owned",
    "expiry is seen at its instant": PAYMENT + "Payment.as_of",
    "the sweep makes expiry durable and tells": "application/settlement.py::Settlement.expire_due",
    "a late report is kept and moves nothing": REPORT + "judge",
    "test payments are sandbox payments": "application/payments.py::Payments.initiate_test",
    # Hosted checkout
    "a payer changes nothing of the payment": "adapters/postgres/schema/triggers.py::fixed_trigger",
    "card numbers are never kept or echoed": "domain/simulator.py::scenario_of",
    "each test card has its result": "domain/simulator.py::TEST_CARDS",
    "a repeat returns the hand-off, no second charge": "application/checkout.py::Checkout.process",
    "provider_b gets launch parameters": "adapters/providers/provider_b/launch.py::launch_url",
    "an unavailable provider stays listed with its reason": OPTIONS + "PaymentOptions.listed",
    "the simulator never serves LIVE": GATEWAY + "simulator_allowed",
    "LIVE lists no simulator": OPTIONS + "PaymentOptions.listed",
    "verify asks once for all": "application/verification.py::Verification.verify",
    "verify: a provider out of reach changes nothing": "application/verification.py::Verification.verify",
    "verify: a difference moves nothing": REPORT + "ProviderReport.mismatch",
    "an open payment is asked about on schedule": ATTEMPT + "ASK_AFTER",
    "a decline found by asking is no end while the page may take another card": ATTEMPT + "Attempt.may_still_be_paid",
    "an attempt is asked about to the end of the schedule, whatever ended its payment": ATTEMPT + "after_ask",
    "news that moves nothing is told to the merchant once": WEBHOOK + "notice_of",
    "an anomaly is closed with a reason and never comes back": "domain/anomaly.py::Anomaly.close",
    "a dispute leaves a trace": "adapters/providers/provider_a/webhook.py::read_event",
    # Inbound events
    "forged signatures leave nothing": EVENTS + "ProviderEvents.receive",
    "events never cross environments": REPORT + "judge",
    "duplicates are idempotent": EVENTS + "ProviderEvents.receive",
    "malformed payloads": EVENTS + "ProviderEventRoute",
    "failed handling is acknowledged": EVENTS + "ProviderEvents.retry_due",
    "a differing event moves nothing": REPORT + "ProviderReport.mismatch",
    "a disabled gateway still hears": OPTIONS + "PaymentOptions.assigned",
    # Merchant webhooks
    "events reach the endpoints of their environment that asked": WEBHOOK + "WebhookEndpoint.receives",
    "HTTPS for LIVE endpoints": WEBHOOK + "parse_endpoint_url",
    "unknown event names are refused": WEBHOOK + "parse_events",
    "every change of status is one event": "application/settlement.py::Settlement.write",
    "Standard Webhooks libraries verify us": "domain/signing.py::signature",
    "X-Service-Signature is the standard one": "domain/signing.py::signed_headers",
    "the old secret signs for a day": WEBHOOK + "WebhookEndpoint.signing_secrets",
    "not active: webhooks are read only": "application/webhooks.py::_lock_business",
    "the schedule of tries": WEBHOOK + "SCHEDULE",
    "Retry-After is heeded within bounds": WEBHOOK + "delay_after",
    "410 switches an endpoint off": DISPATCHER + "GONE",
    "120 hours of failures switch it off": WEBHOOK + "DEACTIVATE_AFTER",
    "five in flight per endpoint at first": "adapters/postgres/delivery_queue/statements.py::CLAIM_DUE",
    "private addresses are never dialled": "adapters/webhooks/addresses.py::is_allowed",
    "redirects are not followed": "adapters/webhooks/sender.py::HttpSender",
    "a payment's own webhookUrl": "application/settlement.py::Settlement.write",
    "without a secret it is silent": "application/settlement.py::Settlement.write",
    # The description
    "the description is valid OpenAPI 3.1": "entrypoints/http/openapi/document.py::document",
    "its links lead somewhere": "entrypoints/http/openapi/document.py::document",
    "its page needs no outside host": "entrypoints/http/openapi/page.py::routes_for",
}
