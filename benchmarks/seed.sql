-- What seed.py loads, each statement under its name. Numbers `n` go from {first} to {last}; {reference} is the payment of a
-- number, {id} the rest of an id, which begins with its instant in ms, as the product draws them.

-- name: businesses
INSERT INTO businesses (id, name, status, kyc_status, created_at, updated_at)
SELECT 'biz_bench_' || n, 'Bench ' || n, 'ACTIVE', 'NOT_SUBMITTED', now(), now() FROM generate_series({first}, {last}) n

-- name: api keys
INSERT INTO api_keys (id, business_id, environment, name, public_key, secret_hash, secret_last4, status, last_used_at,
                      created_at)
SELECT 'key_bench_' || n, 'biz_bench_' || n, 'SANDBOX', 'bench', 'spk_sand_' || lpad(to_hex(n), 32, '0'),
       sha256(('ssk_sand_' || lpad(to_hex(n), 48, '0'))::bytea), right(lpad(to_hex(n), 48, '0'), 4), 'ACTIVE', now(), now()
FROM generate_series({first}, {last}) n

-- name: endpoints
INSERT INTO webhook_endpoints (id, business_id, environment, url, events, is_active, secret, secret_last4, created_at,
                               updated_at)
SELECT 'whe_bench_' || n, 'biz_bench_' || n, 'SANDBOX', 'https://shop.example/hook', '{{}}', true, 'x', 'abcd', now(), now()
FROM generate_series({first}, {last}) n

-- name: owners
INSERT INTO members SELECT id, 'bench', 'OWNER' FROM businesses

-- name: settled payments
INSERT INTO payments (reference, business_id, environment, amount, currency, status, gateway, customer_email, customer_name,
                      callback_url, metadata, sequence, created_at, updated_at, expires_at, settled_at)
SELECT {reference}, 'biz_bench_' || (n % 1000 + 1), 'SANDBOX', 150000, 'NGN', 'SUCCESS', 'sandbox', 'payer@example.com',
       'Ada Obi', 'https://shop.example/thanks', '{{"order": "1"}}', 2, at, at, at + interval '1 hour', at
FROM generate_series({first}, {last}) n, LATERAL (SELECT timestamptz '2025-01-01' + n * interval '1 s' AS at) t

-- name: their transitions
INSERT INTO transitions (reference, sequence, from_status, to_status, trigger, actor, at)
SELECT {reference}, s, CASE s WHEN 1 THEN 'INITIATED' ELSE 'PENDING' END,
       CASE s WHEN 1 THEN 'PENDING' ELSE 'SUCCESS' END, CASE s WHEN 1 THEN 'PROCESS' ELSE 'SUCCEED' END,
       'bench', timestamptz '2025-01-01' + n * interval '1 s'
FROM generate_series({first}, {last}) n, generate_series(1, 2) s

-- name: their keys
INSERT INTO idempotency_keys (business_id, environment, key, reference)
SELECT 'biz_bench_' || (n % 1000 + 1), 'SANDBOX', 'order-' || n, {reference} FROM generate_series({first}, {last}) n

-- name: their attempts
INSERT INTO attempts (reference, number, gateway_id, gateway, provider_reference, token, state, lease_until, hand_off_kind,
                      hand_off_url, created_at, handed_off_at, asks)
SELECT {reference}, 1, 'gw_provider_a', 'provider_a', {reference}, 'token', 'HANDED_OFF', now(), 'REDIRECT',
       'https://pay.example/', now(), now(), 1 FROM generate_series({first}, {last}) n

-- name: events
INSERT INTO events (reference, sequence, id, type, business_id, environment, body, created_at)
SELECT {reference}, 1, 'evt_' || {id}, 'payment.success', 'biz_bench_' || (n % 1000 + 1), 'SANDBOX',
       convert_to('{{"type":"payment.success","data":{{}}}}', 'UTF8'), now()
FROM generate_series({first}, {last}) n

-- name: deliveries
INSERT INTO deliveries (reference, id, event_id, event_type, sequence, business_id, environment, endpoint_id, lane, status,
                        attempts, next_attempt_at, created_at)
SELECT {reference}, 'dlv_' || {id}, 'evt_' || {id}, 'payment.success', 1, 'biz_bench_' || (n % 1000 + 1), 'SANDBOX',
       'whe_bench_' || (n % 1000 + 1), 'whe_bench_' || (n % 1000 + 1), {standing}, now()
FROM generate_series({first}, {last}) n

-- name: counts of deliveries
UPDATE webhook_endpoints e SET successful = successful + n.number
FROM (SELECT n % 1000 + 1 AS owner, count(*) AS number FROM generate_series({first}, {last}) n GROUP BY 1) n
WHERE e.id = 'whe_bench_' || n.owner

-- name: pending payments
INSERT INTO payments (reference, business_id, environment, amount, currency, status, gateway, sequence, created_at,
                      updated_at, expires_at)
SELECT {reference}, 'biz_bench_' || (n % 1000 + 1), 'SANDBOX', 150000, 'NGN', 'PENDING', {gateway}, 1, now(), now(),
       now() + interval '30 days' FROM generate_series({first}, {last}) n

-- name: their moves
INSERT INTO transitions (reference, sequence, from_status, to_status, trigger, actor, at)
SELECT {reference}, 1, 'INITIATED', 'PENDING', 'PROCESS', 'bench', now() FROM generate_series({first}, {last}) n

-- name: their hand-offs
INSERT INTO attempts (reference, number, gateway_id, gateway, provider_reference, token, state, lease_until, scenario,
                      hand_off_kind, hand_off_url, created_at, handed_off_at, asks)
SELECT {reference}, 1, {gateway_id}, {gateway}, {reference}, 'token', 'HANDED_OFF', now(), {scenario}, {kind},
       'https://pay.example/', now(), now(), 0 FROM generate_series({first}, {last}) n
