-- pgbench: what one initiate must read and write, one payment per transaction, in as few round trips as SQL allows.
\set n random(1, :keys)
\set nonce random(1, 9000000000000000000)
SELECT k.*, b.* FROM api_keys k JOIN businesses b ON b.id = k.business_id
WHERE k.secret_hash = sha256(('ssk_sand_' || lpad(to_hex(:n::bigint), 48, '0'))::bytea);
WITH k AS (
  INSERT INTO idempotency_keys (business_id, environment, key, reference)
  VALUES ('biz_bench_' || (:n)::text, 'SANDBOX', 'pgbench-' || (:nonce)::text, 'BEN-20260101-' || (:nonce)::text)
  ON CONFLICT DO NOTHING RETURNING reference
)
INSERT INTO payments (reference, business_id, environment, amount, currency, status, customer_email, customer_name,
                      callback_url, metadata, idempotency_key, fingerprint, sequence, created_at, updated_at, expires_at)
SELECT k.reference, 'biz_bench_' || (:n)::text, 'SANDBOX', 150000, 'NGN', 'INITIATED', 'payer@example.com', 'Ada Obi',
       'https://shop.example/thanks', '{"order": "1"}', 'pgbench-' || (:nonce)::text, sha256('x'), 0, now(), now(),
       now() + interval '1 hour'
FROM k ON CONFLICT (reference) DO NOTHING;
