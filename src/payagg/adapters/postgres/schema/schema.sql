-- The tables as all migrations together leave them; a test compares. Triggers: triggers.py. Statements take columns from
-- here (tables.py): each begins a line with its name and its type.
--
-- Whatever belongs to one payment is found by `reference` alone, and every unique rule of those tables contains
-- `reference` (idempotency keys are a table of their own), so a table can be partitioned by ranges of it. Events are
-- (see partitions.py); why the others are not is in docs/decisions.md. Columns and dataclass fields share their
-- names. Enumerations are stored as their words.

-- Businesses, who may act for them, their gateways, and the records of who acted.

CREATE TABLE businesses (
    id text PRIMARY KEY,
    name text NOT NULL,
    status text NOT NULL CONSTRAINT status_known CHECK (status IN ('ACTIVE', 'RESTRICTED', 'SUSPENDED')),
    kyc_status text NOT NULL
        CONSTRAINT kyc_status_known
        CHECK (kyc_status IN ('NOT_SUBMITTED', 'PENDING', 'UNDER_REVIEW', 'APPROVED', 'REJECTED')),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE members (
    business_id text REFERENCES businesses,
    subject text,
    role text NOT NULL CONSTRAINT role_known CHECK (role IN ('OWNER', 'ADMIN', 'MEMBER')),
    PRIMARY KEY (business_id, subject)
);
CREATE INDEX members_of_subject ON members (subject);

CREATE TABLE api_keys (
    id text PRIMARY KEY,
    business_id text NOT NULL REFERENCES businesses,
    environment text NOT NULL CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    name text NOT NULL,
    public_key text NOT NULL UNIQUE,
    secret_hash bytea NOT NULL UNIQUE,
    secret_last4 text NOT NULL,
    status text NOT NULL CONSTRAINT status_known CHECK (status IN ('ACTIVE', 'REVOKED')),
    last_used_at timestamptz,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);
CREATE INDEX api_keys_of_business ON api_keys (business_id, environment, status);

CREATE TABLE gateways (
    id text PRIMARY KEY,
    slug text NOT NULL,
    name text NOT NULL,
    description text,
    logo_path text,
    display_order integer NOT NULL,
    is_built_in boolean NOT NULL,
    status text NOT NULL CONSTRAINT status_known CHECK (status IN ('ACTIVE', 'DRAINING', 'DISABLED', 'DELETED')),
    drain_started_at timestamptz,
    drain_ends_at timestamptz,
    credentials bytea,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    replaced_secrets bytea,  -- sealed as the credentials are
    replaced_secrets_until timestamptz,
    CONSTRAINT replaced_secrets_end CHECK ((replaced_secrets IS NULL) = (replaced_secrets_until IS NULL)),
    CONSTRAINT built_in_stays_active CHECK (NOT is_built_in OR status = 'ACTIVE'),
    CONSTRAINT drain_has_an_end CHECK ((status = 'DRAINING') = (drain_ends_at IS NOT NULL))
);
-- A slug is free again once its gateway is deleted.
CREATE UNIQUE INDEX gateways_slug ON gateways (slug) WHERE status <> 'DELETED';

CREATE TABLE business_gateways (
    business_id text REFERENCES businesses,
    gateway_id text REFERENCES gateways,
    is_enabled boolean NOT NULL,
    display_name text,
    display_order integer,
    is_default boolean NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (business_id, gateway_id),
    CONSTRAINT default_is_enabled CHECK (is_enabled OR NOT is_default)
);
CREATE INDEX business_gateways_of_gateway ON business_gateways (gateway_id);
CREATE UNIQUE INDEX one_default_per_business ON business_gateways (business_id) WHERE is_default;

-- Who changed what. Rows are added and read: a trigger refuses every change, and nothing here deletes one.
CREATE TABLE audit (
    id text PRIMARY KEY,
    at timestamptz NOT NULL,
    realm text NOT NULL CONSTRAINT realm_known CHECK (realm IN ('admin', 'merchant', 'key', 'cli', 'clock')),
    subject text NOT NULL,
    address text,
    request_id text,
    action text NOT NULL,  -- no CHECK: a server of the next release writes words of its own
    object_kind text NOT NULL,
    object_id text NOT NULL,
    business_id text,
    changes jsonb NOT NULL
);
CREATE INDEX audit_of_action ON audit (action, id);
CREATE INDEX audit_of_business ON audit (business_id, id);
CREATE INDEX audit_of_object ON audit (object_id, id);
CREATE INDEX audit_of_subject ON audit (subject, id);

-- Tokens that are refused before their end; asked by both columns at each call with a bearer token.
CREATE TABLE token_revocations (
    claim text CONSTRAINT claim_known CHECK (claim IN ('jti', 'sub')),
    value text,
    issued_before timestamptz NOT NULL,
    PRIMARY KEY (claim, value)
);

-- By the SHA-256 of the session's form token. A session that was ended has no row.
CREATE TABLE console_sessions (
    session bytea PRIMARY KEY,
    realm text NOT NULL CONSTRAINT realm_known CHECK (realm IN ('admin', 'merchant')),
    subject text NOT NULL,
    address text,
    started_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    CONSTRAINT session_is_a_digest CHECK (octet_length(session) = 32)
);
CREATE INDEX console_sessions_ends_at ON console_sessions (ends_at);
CREATE INDEX console_sessions_of_subject ON console_sessions (subject, started_at);

-- Where servers of the release before note who has signed out; a later migration drops it.
CREATE TABLE ended_sessions (
    session bytea PRIMARY KEY,
    ends_at timestamptz NOT NULL,  -- by itself; the row may go then
    CONSTRAINT session_is_a_digest CHECK (octet_length(session) = 32)
);
CREATE INDEX ended_sessions_ends_at ON ended_sessions (ends_at);

-- Payments, their charges, and what became of their money.

-- Its rules, and those of attempts, are triggers' (migration 0031): a CHECK is read and compiled anew for each statement.
CREATE TABLE payments (
    reference text PRIMARY KEY,
    business_id text NOT NULL,
    environment text NOT NULL,
    amount bigint NOT NULL,
    currency text NOT NULL,
    status text NOT NULL,
    gateway text,
    customer_email text,
    customer_name text,
    customer_phone text,
    callback_url text,
    webhook_url text,
    metadata jsonb,
    idempotency_key text,
    fingerprint bytea,
    failure_reason text,
    sequence smallint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    settled_at timestamptz,
    is_test boolean NOT NULL DEFAULT false,
    fee bigint,
    net_amount bigint,
    has_adjustments boolean NOT NULL DEFAULT false,
    api_key_id text,
    amount_digest bytea  -- of the reference and the amount; NULL in rows of before migration 0024
-- Room for two more versions of a row on its page.
) WITH (fillfactor = 90);
-- No index has a column that a change of status writes, in its key or its predicate: the change is a new version on the
-- row's own page, and no index gets an entry (docs/decisions.md; a test compares).
-- The first two are partial by what is true of every row, and serve only the queries that say so.
CREATE INDEX payments_by_business ON payments (business_id, environment, created_at, reference) WHERE amount > 0;
CREATE INDEX payments_by_creation ON payments (environment, created_at, reference) WHERE currency = 'NGN';
CREATE INDEX payments_by_expiry ON payments (expires_at);
CREATE INDEX payments_by_payer ON payments (lower(customer_email), business_id, environment, created_at, reference)
    WHERE customer_email IS NOT NULL;
-- Retention finds what it has to clear by the day, which all payments of it share.
CREATE INDEX payments_by_payer_day ON payments (substr(reference, 5, 8))
    WHERE customer_email IS NOT NULL OR customer_name IS NOT NULL OR customer_phone IS NOT NULL OR metadata IS NOT NULL;

-- One row: no payment that expires at `until` or before is INITIATED. The sweep of expiry reads from there on.
CREATE TABLE expiry_progress (
    until timestamptz NOT NULL
);

CREATE TABLE idempotency_keys (
    business_id text,
    environment text,
    key text,
    reference text NOT NULL,
    PRIMARY KEY (business_id, environment, key)
);
-- What has had its end: the day, which all keys of it share.
CREATE INDEX idempotency_keys_by_day ON idempotency_keys (substr(reference, 5, 8));

CREATE TABLE transitions (
    reference text,
    sequence smallint,
    from_status text NOT NULL,
    to_status text NOT NULL,
    trigger text NOT NULL,
    actor text NOT NULL,
    reason text,
    at timestamptz NOT NULL,
    PRIMARY KEY (reference, sequence)
);

CREATE TABLE attempts (
    reference text,
    number smallint,
    gateway_id text,
    gateway text NOT NULL,
    provider_reference text NOT NULL,
    token text NOT NULL,
    state text NOT NULL,
    lease_until timestamptz NOT NULL,
    scenario text,
    hand_off_kind text,
    hand_off_url text,
    created_at timestamptz NOT NULL,
    handed_off_at timestamptz,
    asks smallint NOT NULL,
    next_ask_at timestamptz,
    last_ask_at timestamptz,
    last_decline text,  -- our word for it
    held_until timestamptz,  -- a reconciler is asking, and others keep away
    environment text NOT NULL DEFAULT 'LIVE',  -- the payment's
    account text,
    confirmed_at timestamptz,
    provider_id text,
    channel text,
    fee bigint,
    paid_at timestamptz,
    PRIMARY KEY (reference, number)
);
CREATE INDEX attempts_due ON attempts (gateway, environment, next_ask_at, reference) WHERE next_ask_at IS NOT NULL;
-- What a reconciliation with the provider's own list compares.
CREATE INDEX attempts_handed_off ON attempts (gateway, environment, handed_off_at, reference)
    WHERE handed_off_at IS NOT NULL;
CREATE INDEX attempts_unsettled ON attempts (gateway_id, reference)
    WHERE next_ask_at IS NOT NULL AND gateway_id IS NOT NULL AND confirmed_at IS NULL;
-- The rule that nobody pays twice: two processes may both have won by their own rows, the index admits one.
CREATE UNIQUE INDEX one_claim_per_payment ON attempts (reference) WHERE state = 'CLAIMED';
CREATE UNIQUE INDEX one_hand_off_per_payment ON attempts (reference) WHERE state = 'HANDED_OFF';

CREATE TABLE provider_calls (
    reference text,
    id text,
    attempt smallint NOT NULL,
    gateway text NOT NULL,
    operation text NOT NULL,  -- start_charge or fetch_charge
    result text NOT NULL,  -- an Outcome, a HandOffKind or a FaultKind
    word text,
    duration_ms integer NOT NULL,
    actor text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (reference, id)
);

CREATE TABLE anomalies (
    id text PRIMARY KEY,
    reference text,
    kind text NOT NULL,
    source text NOT NULL,
    details jsonb NOT NULL,
    at timestamptz NOT NULL,
    event_sequence smallint,  -- of the event that told the merchant, where one did
    status text NOT NULL DEFAULT 'OPEN',
    acknowledged_by text,
    acknowledged_at timestamptz,
    closed_by text,
    closed_at timestamptz,
    close_reason text,
    business_id text,
    environment text,
    assignee text,
    notes jsonb NOT NULL DEFAULT '[]',
    CONSTRAINT anomaly_status_known CHECK (status IN ('OPEN', 'ACKNOWLEDGED', 'CLOSED')),
    CONSTRAINT closed_with_a_reason CHECK
        ((status = 'CLOSED') = (closed_at IS NOT NULL AND closed_by IS NOT NULL AND close_reason IS NOT NULL))
);
CREATE INDEX anomalies_needing_attention ON anomalies (business_id, environment, id)
    WHERE business_id IS NOT NULL AND kind IN ('DISPUTE', 'LATE_SUCCESS', 'SECOND_CHARGE', 'MISMATCH', 'NO_EVIDENCE');
CREATE INDEX anomalies_of_business ON anomalies (business_id, environment, id) WHERE business_id IS NOT NULL;
CREATE INDEX anomalies_of_payment ON anomalies (reference);
CREATE INDEX anomalies_to_forget ON anomalies (closed_at)
    WHERE status = 'CLOSED' AND environment = 'SANDBOX' AND event_sequence IS NULL;
-- What merchants were told, by time, for the sums of adjustments.
CREATE INDEX anomalies_told ON anomalies (environment, at) WHERE event_sequence IS NOT NULL;
CREATE INDEX anomalies_told_business ON anomalies (business_id, environment, at) WHERE event_sequence IS NOT NULL;
-- What is still to be worked off, for lists and the gauge.
CREATE INDEX anomalies_unclosed ON anomalies (id) WHERE status <> 'CLOSED';

-- Requests to end a payment by hand. Who asks does not confirm.
CREATE TABLE resolutions (
    id text,
    reference text,
    reason text NOT NULL,
    evidence text NOT NULL,
    requested_by text NOT NULL,
    requested_at timestamptz NOT NULL,
    confirmed_by text,
    confirmed_at timestamptz,
    PRIMARY KEY (reference, id),
    CONSTRAINT confirmed_by_another CHECK
        ((confirmed_by IS NULL) = (confirmed_at IS NULL) AND confirmed_by <> requested_by)
);

-- Events: providers' to us, and ours to merchants.

CREATE TABLE provider_health (
    gateway text,
    environment text CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    faults integer NOT NULL,
    open_until timestamptz,
    open_for interval NOT NULL,
    PRIMARY KEY (gateway, environment)
);

CREATE TABLE inbox (
    id text PRIMARY KEY,
    provider text NOT NULL,
    environment text NOT NULL CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    digest bytea NOT NULL,
    body bytea NOT NULL,
    received_at timestamptz NOT NULL,
    attempts smallint NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,  -- NULL = handled
    handled_at timestamptz,
    result text,
    CONSTRAINT inbox_once UNIQUE (provider, environment, digest)
);
CREATE INDEX inbox_due ON inbox (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX inbox_to_empty ON inbox (handled_at, id) WHERE handled_at IS NOT NULL AND body <> '';

-- Lost on a crash and not replicated: what is kept here is for a day, and at most a few hundred rows.
CREATE UNLOGGED TABLE refused_events (
    provider text,
    environment text CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    fault text
        CONSTRAINT fault_known CHECK (fault IN ('NO_CREDENTIALS', 'NO_SIGNATURE', 'OTHER_ENVIRONMENT', 'WRONG_SECRET')),
    slot smallint,
    path text NOT NULL,
    digest bytea NOT NULL,
    size integer NOT NULL,
    headers jsonb NOT NULL,
    received_at timestamptz NOT NULL,
    PRIMARY KEY (provider, environment, fault, slot),
    CONSTRAINT slot_in_bounds CHECK (slot BETWEEN 0 AND 49)
);

CREATE TABLE webhook_endpoints (
    id text PRIMARY KEY,
    business_id text NOT NULL REFERENCES businesses,
    environment text NOT NULL CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    url text NOT NULL,
    description text,
    events text[] NOT NULL,
    is_active boolean NOT NULL,
    secret bytea NOT NULL,
    secret_last4 text NOT NULL,
    previous_secret bytea,
    previous_secret_expires_at timestamptz,
    failing_since timestamptz,
    last_test_at timestamptz,
    successful bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    purged bigint NOT NULL DEFAULT 0,  -- ended deliveries removed by retention
    concurrency smallint NOT NULL DEFAULT 5,  -- tries at once: grows with good answers
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    removed_at timestamptz
);
CREATE INDEX webhook_endpoints_of_business ON webhook_endpoints (business_id, environment);

CREATE TABLE events (
    reference text,
    sequence smallint,
    id text NOT NULL,
    type text NOT NULL,
    business_id text NOT NULL,
    environment text NOT NULL,
    body bytea NOT NULL,
    created_at timestamptz NOT NULL,
    metadata_at integer,  -- where large metadata lies apart: at which byte of `body` it stood, a null being there now
    metadata_digest bytea,
    body_digest bytea,  -- NULL in rows of before migration 0024
    PRIMARY KEY (reference, sequence)
) PARTITION BY RANGE (reference);
-- Those of the rows that no other partition takes: of before there were any, or of another prefix. The partitions of
-- weeks are made as time goes on.
CREATE TABLE events_other PARTITION OF events DEFAULT;
CREATE INDEX events_of_business ON events (business_id, environment, id);

CREATE TABLE event_metadata (
    reference text,
    digest bytea,
    encoded bytea NOT NULL,
    PRIMARY KEY (reference, digest)
) PARTITION BY RANGE (reference);
CREATE TABLE event_metadata_other PARTITION OF event_metadata DEFAULT;

CREATE TABLE deliveries (
    reference text,
    id text,
    event_id text NOT NULL,
    event_type text NOT NULL,
    sequence smallint NOT NULL,
    business_id text NOT NULL,
    environment text NOT NULL,
    endpoint_id text,  -- NULL = the payment's own webhookUrl
    url text,  -- only for the payment's own webhookUrl; an endpoint's address is read when sending
    lane text NOT NULL,  -- the domain's `partition`: one endpoint, or all webhookUrls of one business
    status text NOT NULL CONSTRAINT status_known CHECK (status IN ('PENDING', 'DELIVERED', 'FAILED')),
    attempts smallint NOT NULL,
    next_attempt_at timestamptz,
    lease_until timestamptz,
    token text,
    last_status_code smallint,
    last_error text,
    duration_ms integer,
    last_attempt_at timestamptz,
    created_at timestamptz NOT NULL,
    lost_tries smallint NOT NULL DEFAULT 0,  -- in a row, their workers dead
    PRIMARY KEY (reference, id),
    CONSTRAINT pending_is_scheduled CHECK ((status = 'PENDING') = (next_attempt_at IS NOT NULL))
-- A delivery row is updated at each try; room on the page keeps those updates off the indexes.
) WITH (fillfactor = 80);
CREATE INDEX deliveries_due ON deliveries (lane, next_attempt_at, id) WHERE status = 'PENDING';
-- Means the same as `status = 'PENDING'`, and keeps it out of the plans of those who say that.
CREATE INDEX deliveries_next ON deliveries (next_attempt_at, lane) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX deliveries_of_endpoint ON deliveries (endpoint_id, id);
CREATE INDEX deliveries_suspect ON deliveries (next_attempt_at) WHERE lost_tries > 1;

-- Reconciliation with providers, and the archive.

CREATE TABLE reconciliation_runs (
    id text PRIMARY KEY,
    gateway text NOT NULL,
    environment text NOT NULL CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    first_day date NOT NULL,
    last_day date NOT NULL,
    source text NOT NULL,  -- list, or file and its SHA-256
    started_by text NOT NULL,
    started_at timestamptz NOT NULL,
    claim text UNIQUE,  -- which of all workers does the day; NULL = somebody's own run
    ended_at timestamptz,  -- NULL = under way, or killed
    totals jsonb NOT NULL,  -- by bucket: payments, ours, lines, theirs; kobo
    CONSTRAINT days_in_order CHECK (first_day <= last_day)
);

CREATE TABLE reconciliation_findings (
    run_id text,
    number integer,
    bucket text NOT NULL,
    reference text,
    provider_reference text,
    line_kind text,
    line_id text,
    ours bigint,  -- kobo
    theirs bigint,
    effect text,  -- what the report of it did
    PRIMARY KEY (run_id, number)
);

-- Some payments of one day whose history lies in the object store, see extensions/archive/writer.py.
CREATE TABLE archive_parts (
    number integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    day text NOT NULL,  -- the beginning of its references: prefix and day
    folder text NOT NULL UNIQUE,
    payments integer NOT NULL,
    last_reference text,
    manifest bytea,  -- SHA-256; NULL = still being written
    started_at timestamptz NOT NULL,
    removed_at timestamptz,  -- NULL = the history still lies here too
    CONSTRAINT written_whole CHECK ((manifest IS NULL) = (last_reference IS NULL)),
    CONSTRAINT removed_after_written CHECK (removed_at IS NULL OR manifest IS NOT NULL)
);
CREATE INDEX archive_parts_of_day ON archive_parts (day, number);

-- Payments whose transitions, attempts and provider calls are in the archive and no longer here; and of those what
-- judges a provider's late report.
CREATE TABLE archived_payments (
    reference text PRIMARY KEY,
    part integer NOT NULL,
    attempts text NOT NULL,  -- gateway, state, provider's id: "provider_a HANDED_OFF 5000000001"
    paid text  -- the reason of its transition to SUCCESS: the charge that was paid
);

-- What processes share, and what moves between cells.

-- Lost on a crash and not replicated, which suits what lives for a minute. One row a bucket, so that its lock is the
-- limit's: `hits` has the number of hits by mark (domain/rate_limit.py).
CREATE UNLOGGED TABLE rate_hits (
    bucket text PRIMARY KEY,
    hits jsonb NOT NULL,
    ends_at timestamptz NOT NULL
);

-- Where servers of the release before count; a later migration drops it.
CREATE UNLOGGED TABLE rate_counters (
    bucket text,
    window_start timestamptz,
    count integer NOT NULL,
    PRIMARY KEY (bucket, window_start)
);

-- What all processes counted, for the metrics; a counter that starts anew after a crash is what Prometheus expects.
CREATE UNLOGGED TABLE tallies (
    key text PRIMARY KEY,  -- JSON: the name and its labels
    value bigint NOT NULL
);

-- What moves to another cell or has gone there. While `rows` is there the thing is on its way, and here is the one
-- place that has it; from then on the row says where it went.
CREATE TABLE moved_businesses (
    business_id text PRIMARY KEY,
    cell text NOT NULL,  -- the other one: where it goes, or for ARRIVING where it comes from
    state text NOT NULL CONSTRAINT state_known CHECK (state IN ('LEAVING', 'MOVING', 'LEFT', 'ARRIVING')),
    rows jsonb,  -- its members
    at timestamptz NOT NULL
);

CREATE TABLE moved_keys (
    secret_hash bytea PRIMARY KEY,
    business_id text NOT NULL,
    cell text NOT NULL,
    rows jsonb,
    at timestamptz NOT NULL
);
CREATE INDEX moved_keys_of_business ON moved_keys (business_id);

CREATE TABLE moved_payments (
    reference text PRIMARY KEY,
    business_id text NOT NULL,
    cell text NOT NULL,
    rows jsonb,  -- the payment, and all that is found by its reference
    at timestamptz NOT NULL
);
CREATE INDEX moved_payments_under_way ON moved_payments (business_id, reference) WHERE rows IS NOT NULL;

-- Tables that grow: by default one is vacuumed when a fifth of it is dead.

DO $$
DECLARE
    growing text;
BEGIN
    FOREACH growing IN ARRAY ARRAY[
        'payments', 'attempts', 'transitions', 'provider_calls', 'idempotency_keys', 'deliveries', 'inbox', 'anomalies',
        'audit', 'archived_payments'
    ] LOOP
        EXECUTE format(
            'ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02,'
            ' autovacuum_analyze_scale_factor = 0.02)', growing
        );
    END LOOP;
END $$;
