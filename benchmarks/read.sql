-- pgbench: what one read must look up.
\set n random(1, :keys)
\set p random(1, :payments)
SELECT k.*, b.* FROM api_keys k JOIN businesses b ON b.id = k.business_id
WHERE k.secret_hash = sha256(('ssk_sand_' || lpad(to_hex(:n::bigint), 48, '0'))::bytea);
SELECT * FROM payments WHERE reference = 'PAY-20250101-' || upper(lpad(to_hex(:p::bigint), 6, '0'));
