-- pgbench: what one initiate must read and write, one payment per transaction and one round trip, as the product does:
-- the payment is added if the key and its business stand as they should.
\set n random(1, :keys)
\set nonce random(1, 9000000000000000000)
WITH held AS (
  SELECT b.id AS business_id FROM api_keys k JOIN businesses b ON b.id = k.business_id
  WHERE k.id = 'key_bench_' || (:n)::text AND (k.status, b.status, b.kyc_status) = ('ACTIVE', 'ACTIVE', 'NOT_SUBMITTED')
), keyed AS (
  INSERT INTO idempotency_keys (business_id, environment, key, reference)
  SELECT business_id, 'SANDBOX', 'pgbench-' || (:nonce)::text, 'BEN-20260101-' || (:nonce)::text FROM held
  ON CONFLICT DO NOTHING RETURNING business_id, reference
)
INSERT INTO payments (reference, business_id, environment, amount, currency, status, customer_email, customer_name,
                      callback_url, metadata, idempotency_key, fingerprint, sequence, created_at, updated_at, expires_at)
SELECT reference, business_id, 'SANDBOX', 150000, 'NGN', 'INITIATED', 'payer@example.com', 'Ada Obi',
       'https://shop.example/thanks', '{"order": "1"}', 'pgbench-' || (:nonce)::text, sha256('x'), 0, now(), now(),
       now() + interval '1 hour'
FROM keyed RETURNING reference;
