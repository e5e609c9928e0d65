-- pgbench, after initiate.sql: the least a whole journey asks of the database, each statement a transaction of its own, as
-- each answers somebody who may go away before the next. Facts that belong together are one statement, so one round trip
-- and one commit.
-- The page: the payment and who is paid; the payer may come hours later and on another machine.
SELECT p.*, b.name FROM payments p JOIN businesses b ON b.id = p.business_id
WHERE p.reference = 'BEN-20260101-' || (:nonce)::text;
-- Detail: the same, asked by the page's script.
SELECT p.*, b.name FROM payments p JOIN businesses b ON b.id = p.business_id
WHERE p.reference = 'BEN-20260101-' || (:nonce)::text;
-- Gateways: all there are, the business's settings of each, and whether its provider is well.
SELECT p.*, b.*, g.*, s.*, h.open_until FROM payments p JOIN businesses b ON b.id = p.business_id
LEFT JOIN gateways g ON g.status <> 'DELETED'
LEFT JOIN business_gateways s ON s.business_id = p.business_id AND s.gateway_id = g.id
LEFT JOIN provider_health h ON h.gateway = g.slug AND h.environment = p.environment
WHERE p.reference = 'BEN-20260101-' || (:nonce)::text;
-- Process, before the provider is called: the claim must be durable, or a crash could charge twice.
INSERT INTO attempts (reference, number, gateway, provider_reference, token, state, lease_until, scenario, created_at, asks,
                      next_ask_at)
SELECT p.reference, 1, 'sandbox', p.reference, md5(p.reference), 'CLAIMED', now() + interval '20 s', 'success', now(), 0,
       now() + interval '80 s'
FROM payments p JOIN businesses b ON b.id = p.business_id
WHERE p.reference = 'BEN-20260101-' || (:nonce)::text AND p.status = 'INITIATED' AND p.expires_at > now()
  AND b.status = 'ACTIVE'
  AND NOT EXISTS (SELECT FROM attempts a WHERE a.reference = p.reference);
-- Process, after the call: the hand-off, the payment's move and its event, which no endpoint here asks for.
WITH handed AS (
  UPDATE attempts SET state = 'HANDED_OFF', hand_off_kind = 'SIMULATOR', hand_off_url = 'https://pay.example/checkout',
                      handed_off_at = now(), next_ask_at = now() + interval '1 minute'
  WHERE reference = 'BEN-20260101-' || (:nonce)::text AND number = 1 AND state = 'CLAIMED' RETURNING reference
), moved AS (
  UPDATE payments p SET status = 'PENDING', gateway = 'sandbox', sequence = 1, updated_at = now() FROM handed h
  WHERE p.reference = h.reference AND p.status = 'INITIATED' RETURNING p.reference, p.business_id
), noted AS (
  INSERT INTO transitions (reference, sequence, from_status, to_status, trigger, actor, at)
  SELECT reference, 1, 'INITIATED', 'PENDING', 'PROCESS', 'payer', now() FROM moved
)
INSERT INTO events (reference, sequence, id, type, business_id, environment, body, created_at)
SELECT reference, 1, 'evt_1_' || (:nonce)::text, 'payment.pending', business_id, 'SANDBOX',
       convert_to(repeat('{"a": "0123456789"}', 30), 'UTF8'), now() FROM moved;
-- Verify, before the provider is asked: what to ask about.
SELECT p.*, a.* FROM payments p LEFT JOIN attempts a ON a.reference = p.reference
WHERE p.reference = 'BEN-20260101-' || (:nonce)::text;
-- Verify, after the answer: the payment's end, its event and the deliveries are one fact.
WITH moved AS (
  UPDATE payments SET status = 'SUCCESS', sequence = 2, updated_at = now(), settled_at = now()
  WHERE reference = 'BEN-20260101-' || (:nonce)::text AND status = 'PENDING' RETURNING reference, business_id
), noted AS (
  INSERT INTO transitions (reference, sequence, from_status, to_status, trigger, actor, at)
  SELECT reference, 2, 'PENDING', 'SUCCESS', 'SUCCEED', 'verify', now() FROM moved
), told AS (
  INSERT INTO events (reference, sequence, id, type, business_id, environment, body, created_at)
  SELECT reference, 2, 'evt_2_' || (:nonce)::text, 'payment.success', business_id, 'SANDBOX',
         convert_to(repeat('{"a": "0123456789"}', 30), 'UTF8'), now() FROM moved
  RETURNING reference, id, type, business_id
)
INSERT INTO deliveries (reference, id, event_id, event_type, sequence, business_id, environment, endpoint_id, lane, status,
                        attempts, next_attempt_at, created_at)
SELECT t.reference, 'dlv_' || (:nonce)::text, t.id, t.type, 2, t.business_id, 'SANDBOX', e.id, e.id, 'PENDING', 0, now(),
       now()
FROM told t JOIN webhook_endpoints e ON e.business_id = t.business_id AND e.environment = 'SANDBOX' AND e.is_active
WHERE e.events = '{}' OR t.type = ANY(e.events);
-- Verify again: the page asks until it reads the end.
SELECT p.*, a.* FROM payments p LEFT JOIN attempts a ON a.reference = p.reference
WHERE p.reference = 'BEN-20260101-' || (:nonce)::text;
-- Read: the merchant's server, with its key.
SELECT k.*, b.*, p.* FROM api_keys k JOIN businesses b ON b.id = k.business_id
JOIN payments p ON p.business_id = b.id AND p.reference = 'BEN-20260101-' || (:nonce)::text
WHERE k.secret_hash = sha256(('ssk_sand_' || lpad(to_hex(:n::bigint), 48, '0'))::bytea);
-- Delivery, before it is sent: a lease, or two workers would send it; with what is sent and what signs it.
WITH taken AS (
  UPDATE deliveries SET attempts = attempts + 1, last_attempt_at = now(), lease_until = now() + interval '1 minute',
                        token = md5(id)
  WHERE reference = 'BEN-20260101-' || (:nonce)::text AND id = 'dlv_' || (:nonce)::text AND lease_until IS NULL
  RETURNING *
)
SELECT t.*, v.body, e.url, e.secret FROM taken t
JOIN events v ON v.reference = t.reference AND v.sequence = t.sequence JOIN webhook_endpoints e ON e.id = t.endpoint_id;
-- Delivery, after the answer: what came of it, and the endpoint's count.
WITH ended AS (
  UPDATE deliveries SET status = 'DELIVERED', next_attempt_at = NULL, lease_until = NULL, token = NULL,
                        last_status_code = 200, duration_ms = 5
  WHERE reference = 'BEN-20260101-' || (:nonce)::text AND id = 'dlv_' || (:nonce)::text AND status = 'PENDING'
  RETURNING endpoint_id
)
UPDATE webhook_endpoints e SET successful = successful + 1 FROM ended d WHERE e.id = d.endpoint_id;
