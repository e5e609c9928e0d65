-- The whole schema. Enumerations are words held by checks; money is kobo; every time is an instant.

CREATE TABLE businesses (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    kyc_status TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT status_known CHECK (status IN ('ACTIVE', 'RESTRICTED', 'SUSPENDED')),
    CONSTRAINT kyc_status_known CHECK (kyc_status IN ('NOT_SUBMITTED', 'PENDING', 'UNDER_REVIEW', 'APPROVED', 'REJECTED'))
);

CREATE TABLE members (
    business_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (business_id, subject),
    CONSTRAINT role_known CHECK (role IN ('OWNER', 'ADMIN', 'MEMBER')),
    FOREIGN KEY (business_id) REFERENCES businesses (id)
);

CREATE TABLE api_keys (
    id TEXT NOT NULL,
    business_id TEXT NOT NULL,
    environment TEXT NOT NULL,
    name TEXT NOT NULL,
    public_key TEXT NOT NULL,
    secret_hash BYTEA NOT NULL,
    secret_last4 TEXT NOT NULL,
    status TEXT NOT NULL,
    last_used_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    revoked_at TIMESTAMPTZ,
    PRIMARY KEY (id),
    CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    CONSTRAINT status_known CHECK (status IN ('ACTIVE', 'REVOKED')),
    FOREIGN KEY (business_id) REFERENCES businesses (id),
    UNIQUE (public_key),
    UNIQUE (secret_hash)
);
CREATE INDEX api_keys_of_business ON api_keys (business_id, environment, status);

CREATE TABLE gateways (
    id TEXT NOT NULL,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    logo_path TEXT,
    display_order INTEGER NOT NULL,
    is_built_in BOOLEAN NOT NULL,
    status TEXT NOT NULL,
    drain_started_at TIMESTAMPTZ,
    drain_ends_at TIMESTAMPTZ,
    credentials BYTEA,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT status_known CHECK (status IN ('ACTIVE', 'DRAINING', 'DISABLED', 'DELETED')),
    CONSTRAINT drain_has_an_end CHECK ((status = 'DRAINING') = (drain_ends_at IS NOT NULL)),
    CONSTRAINT built_in_stays_active CHECK (NOT is_built_in OR status = 'ACTIVE')
);
CREATE UNIQUE INDEX gateways_slug ON gateways (slug) WHERE status <> 'DELETED';

CREATE TABLE business_gateways (
    business_id TEXT NOT NULL,
    gateway_id TEXT NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    display_name TEXT,
    display_order INTEGER,
    is_default BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (business_id, gateway_id),
    CONSTRAINT default_is_enabled CHECK (is_enabled OR NOT is_default),
    FOREIGN KEY (business_id) REFERENCES businesses (id),
    FOREIGN KEY (gateway_id) REFERENCES gateways (id)
);
CREATE INDEX business_gateways_of_gateway ON business_gateways (gateway_id);
CREATE UNIQUE INDEX one_default_per_business ON business_gateways (business_id) WHERE is_default;

CREATE TABLE webhook_endpoints (
    id TEXT NOT NULL,
    business_id TEXT NOT NULL,
    environment TEXT NOT NULL,
    url TEXT NOT NULL,
    description TEXT,
    events TEXT[] NOT NULL,
    is_active BOOLEAN NOT NULL,
    secret BYTEA NOT NULL,
    secret_last4 TEXT NOT NULL,
    previous_secret BYTEA,
    previous_secret_expires_at TIMESTAMPTZ,
    failing_since TIMESTAMPTZ,
    last_test_at TIMESTAMPTZ,
    successful BIGINT DEFAULT 0 NOT NULL,
    failed BIGINT DEFAULT 0 NOT NULL,
    purged BIGINT DEFAULT 0 NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    FOREIGN KEY (business_id) REFERENCES businesses (id)
);
CREATE INDEX webhook_endpoints_of_business ON webhook_endpoints (business_id, environment);

CREATE TABLE payments (
    reference TEXT NOT NULL,
    business_id TEXT NOT NULL,
    environment TEXT NOT NULL,
    amount BIGINT NOT NULL,
    currency TEXT NOT NULL,
    status TEXT NOT NULL,
    gateway TEXT,
    customer_email TEXT,
    customer_name TEXT,
    customer_phone TEXT,
    callback_url TEXT,
    webhook_url TEXT,
    metadata JSONB,
    idempotency_key TEXT,
    fingerprint BYTEA,
    failure_reason TEXT,
    sequence SMALLINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    settled_at TIMESTAMPTZ,
    PRIMARY KEY (reference),
    CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    CONSTRAINT status_known CHECK (status IN ('INITIATED', 'PENDING', 'SUCCESS', 'FAILED', 'REVERSED')),
    CONSTRAINT amount_in_bounds CHECK (amount BETWEEN 100 AND 9007199254740991),
    CONSTRAINT currency_is_ngn CHECK (currency = 'NGN'),
    CONSTRAINT live_never_simulated CHECK (NOT (environment = 'LIVE' AND gateway = 'sandbox')),
    CONSTRAINT final_is_settled CHECK ((status IN ('SUCCESS', 'FAILED', 'REVERSED')) = (settled_at IS NOT NULL)),
    CONSTRAINT only_failures_have_a_reason CHECK (failure_reason IS NULL OR status = 'FAILED')
);
CREATE INDEX payments_to_expire ON payments (expires_at, reference) WHERE status = 'INITIATED';

CREATE TABLE idempotency_keys (
    business_id TEXT NOT NULL,
    environment TEXT NOT NULL,
    key TEXT NOT NULL,
    reference TEXT NOT NULL,
    PRIMARY KEY (business_id, environment, key)
);

CREATE TABLE transitions (
    reference TEXT NOT NULL,
    sequence SMALLINT NOT NULL,
    from_status TEXT NOT NULL,
    to_status TEXT NOT NULL,
    trigger TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (reference, sequence)
);

CREATE TABLE attempts (
    reference TEXT NOT NULL,
    number SMALLINT NOT NULL,
    gateway_id TEXT,
    gateway TEXT NOT NULL,
    provider_reference TEXT NOT NULL,
    token TEXT NOT NULL,
    state TEXT NOT NULL,
    lease_until TIMESTAMPTZ NOT NULL,
    scenario TEXT,
    hand_off_kind TEXT,
    hand_off_url TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    handed_off_at TIMESTAMPTZ,
    asks SMALLINT NOT NULL,
    next_ask_at TIMESTAMPTZ,
    last_ask_at TIMESTAMPTZ,
    PRIMARY KEY (reference, number),
    CONSTRAINT state_known CHECK (state IN ('CLAIMED', 'HANDED_OFF', 'REFUSED', 'UNKNOWN')),
    CONSTRAINT hand_off_is_whole CHECK ((state = 'HANDED_OFF') = (hand_off_url IS NOT NULL))
);
CREATE INDEX attempts_to_ask ON attempts (next_ask_at, reference) WHERE next_ask_at IS NOT NULL;
CREATE UNIQUE INDEX one_claim_per_payment ON attempts (reference) WHERE state = 'CLAIMED';
CREATE UNIQUE INDEX one_hand_off_per_payment ON attempts (reference) WHERE state = 'HANDED_OFF';

CREATE TABLE provider_calls (
    reference TEXT NOT NULL,
    id TEXT NOT NULL,
    attempt SMALLINT NOT NULL,
    gateway TEXT NOT NULL,
    operation TEXT NOT NULL,
    result TEXT NOT NULL,
    word TEXT,
    duration_ms INTEGER NOT NULL,
    actor TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (reference, id)
);

CREATE TABLE anomalies (
    id TEXT NOT NULL,
    reference TEXT,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    details JSONB NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX anomalies_of_payment ON anomalies (reference);

CREATE TABLE provider_health (
    gateway TEXT NOT NULL,
    environment TEXT NOT NULL,
    faults INTEGER NOT NULL,
    open_until TIMESTAMPTZ,
    open_for INTERVAL NOT NULL,
    PRIMARY KEY (gateway, environment),
    CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE'))
);

CREATE TABLE inbox (
    id TEXT NOT NULL,
    provider TEXT NOT NULL,
    environment TEXT NOT NULL,
    digest BYTEA NOT NULL,
    body BYTEA NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    attempts SMALLINT DEFAULT 0 NOT NULL,
    next_attempt_at TIMESTAMPTZ,
    handled_at TIMESTAMPTZ,
    result TEXT,
    PRIMARY KEY (id),
    CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    CONSTRAINT inbox_once UNIQUE (provider, environment, digest)
);
CREATE INDEX inbox_due ON inbox (next_attempt_at) WHERE next_attempt_at IS NOT NULL;

CREATE TABLE events (
    reference TEXT NOT NULL,
    sequence SMALLINT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    business_id TEXT NOT NULL,
    environment TEXT NOT NULL,
    body BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (reference, sequence)
);
CREATE INDEX events_of_business ON events (business_id, environment, id);

CREATE TABLE deliveries (
    reference TEXT NOT NULL,
    id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    sequence SMALLINT NOT NULL,
    business_id TEXT NOT NULL,
    environment TEXT NOT NULL,
    endpoint_id TEXT,
    url TEXT,
    lane TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts SMALLINT NOT NULL,
    next_attempt_at TIMESTAMPTZ,
    lease_until TIMESTAMPTZ,
    token TEXT,
    last_status_code SMALLINT,
    last_error TEXT,
    duration_ms INTEGER,
    last_attempt_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (reference, id),
    CONSTRAINT status_known CHECK (status IN ('PENDING', 'DELIVERED', 'FAILED')),
    CONSTRAINT pending_is_scheduled CHECK ((status = 'PENDING') = (next_attempt_at IS NOT NULL)))
WITH (fillfactor = 80);
CREATE INDEX deliveries_due ON deliveries (lane, next_attempt_at, id) WHERE status = 'PENDING';
CREATE INDEX deliveries_of_endpoint ON deliveries (endpoint_id, id);

CREATE UNLOGGED TABLE rate_counters (
    bucket TEXT NOT NULL,
    window_start TIMESTAMPTZ NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (bucket, window_start)
);

CREATE UNLOGGED TABLE tallies (
    key TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
