-- Payments that live as they do: initiated, a thousand later handed to a provider, two thousand after that at their end, each
-- in an order that is not the order of their rows. One in five is never handed over and expires. `growth` runs it.
CREATE FUNCTION life_reference(n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT 'PAY-' || to_char(date '2025-01-01' + (n / 50000)::int, 'YYYYMMDD') || '-'
    || upper(lpad(to_hex(n % 50000 * 331 % 65536), 4, '0') || lpad(to_hex(n % 251), 2, '0')) $$;
CREATE FUNCTION life_turn(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT n - n % 1000 + n % 1000 * 619 % 1000 $$;
CREATE PROCEDURE live(lives bigint) LANGUAGE plpgsql AS $$
DECLARE
  n bigint;
  moment timestamptz;
BEGIN
  FOR i IN 1..lives + 4000 LOOP
    IF i <= lives THEN
      moment := timestamptz '2025-01-01' + i * interval '1.7 s';
      INSERT INTO payments (reference, business_id, environment, amount, currency, status, customer_email, customer_name,
                            callback_url, metadata, idempotency_key, fingerprint, sequence, created_at, updated_at, expires_at)
      VALUES (life_reference(i), 'biz_' || md5((i * 7 % 1000)::text), 'SANDBOX', 150000, 'NGN', 'INITIATED',
              'payer' || i % 40000 || '@example.com', 'Ada Obi', 'https://shop.example/thanks', '{"order": "1"}', 'order-' || i,
              sha256('x'), 0, moment, moment, moment + interval '1 hour');
    END IF;
    n := life_turn(i - 1000);
    IF n BETWEEN 1 AND lives AND n % 5 <> 0 THEN
      UPDATE payments SET status = 'PENDING', gateway = 'provider_a', sequence = 1, updated_at = now()
      WHERE reference = life_reference(n);
    END IF;
    n := life_turn(i - 3000);
    IF n BETWEEN 1 AND lives THEN
      UPDATE payments SET status = CASE WHEN n % 5 = 0 THEN 'FAILED' ELSE 'SUCCESS' END, sequence = sequence + 1,
        updated_at = now(), settled_at = now(), failure_reason = CASE WHEN n % 5 = 0 THEN 'EXPIRED' END,
        fee = CASE WHEN n % 5 <> 0 THEN 2250 END, net_amount = CASE WHEN n % 5 <> 0 THEN 147750 END
      WHERE reference = life_reference(n);
    END IF;
    IF i % 5 = 0 THEN
      COMMIT;
    END IF;
  END LOOP;
END $$;
